// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/error_text.h"

namespace bx::engine {

using fabric::WcStatus;

ErrorText text_of(WcStatus status) noexcept {
  switch (status) {
    case WcStatus::success:
      return {"success", ""};
    case WcStatus::local_length:
      return {"local_length",
              "a message was longer than the receive or the device allows: a bug, or a peer that does "
              "not keep to eager.max"};
    case WcStatus::local_qp_operation:
      return {"local_qp_operation",
              "the device could not carry the request out: its log, and its limits in caps"};
    case WcStatus::local_protection:
      return {"local_protection", "memory was given back or deregistered while the device used it"};
    case WcStatus::flushed:
      return {"flushed", "the queue pair had failed before: look for the first error of this lane"};
    case WcStatus::remote_invalid_request:
      return {"remote_invalid_request",
              "the peer could not take the request: its receives are too small or it lacks "
              "the operation"};
    case WcStatus::remote_access:
      return {"remote_access",
              "memory of the peer that it does not offer any more, or never did: a hostile peer, or "
              "a transfer it has given up"};
    case WcStatus::remote_operation:
      return {"remote_operation", "the peer's device failed: the log of that host"};
    case WcStatus::retry_exceeded:
      return {"retry_exceeded",
              "the peer's host does not answer: is it up, does the path lose frames, does a switch "
              "pause it; path.ack_timeout and path.retry_cnt say how long to wait"};
    case WcStatus::rnr_retry_exceeded:
      return {"rnr_retry_exceeded", "the peer had no receive posted although it had granted a credit: a bug"};
    case WcStatus::fatal:
      return {"fatal", "the device is gone: the kernel's log"};
  }
  return {"unknown", ""};
}

ErrorText text_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return {"invalid_argument",
              "an attribute that the device does not take: path.* and the peer's parameters"};
    case ErrorCode::unsupported:
      return {"unsupported", "this device or the peer cannot do it"};
    case ErrorCode::exhausted:
      return {"exhausted",
              "a limit is reached: raise peers.max or memory.arena on the side that the detail names"};
    case ErrorCode::unreachable:
      return {"unreachable", "nobody listens there: is the server up, are name and port right"};
    case ErrorCode::deadline_exceeded:
      return {"deadline_exceeded",
              "no answer in connect.deadline: is the peer alive and its worker taking turns"};
    case ErrorCode::cancelled:
      return {"cancelled", "given up by the application"};
    case ErrorCode::closed:
      return {"closed", "the peer's process or host is gone: connect again when it is back"};
    case ErrorCode::protocol:
      return {"protocol", "the peer does not keep the rules: another version, or not a friend"};
    case ErrorCode::device:
      return {"device", "the device reported a failure of its own: the kernel's log"};
    case ErrorCode::too_large:
      return {"too_large", "longer than a limit that both ends agreed on"};
    case ErrorCode::draining:
      return {"draining", "the worker there is about to close: call another"};
    case ErrorCode::would_block:
      return {"would_block", "it would have had to wait: try again when the session is ready"};
  }
  return {"unknown", ""};
}

ErrorText text_of(const Error& error) noexcept {
  return error.code == ErrorCode::device && error.sys != 0 ? text_of(static_cast<WcStatus>(error.sys))
                                                           : text_of(error.code);
}

}  // namespace bx::engine
