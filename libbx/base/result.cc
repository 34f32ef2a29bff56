// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/result.h"

namespace bx {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::exhausted:
      return "exhausted";
    case ErrorCode::unreachable:
      return "unreachable";
    case ErrorCode::deadline_exceeded:
      return "deadline exceeded";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::closed:
      return "closed";
    case ErrorCode::protocol:
      return "protocol violation";
    case ErrorCode::device:
      return "device failure";
    case ErrorCode::too_large:
      return "too large";
    case ErrorCode::draining:
      return "draining";
    case ErrorCode::would_block:
      return "would block";
  }
  return "unknown";
}

std::string_view to_string(ErrorScope scope) noexcept {
  switch (scope) {
    case ErrorScope::operation:
      return "operation";
    case ErrorScope::queue_pair:
      return "queue pair";
    case ErrorScope::session:
      return "session";
    case ErrorScope::device:
      return "device";
  }
  return "unknown";
}

}  // namespace bx
