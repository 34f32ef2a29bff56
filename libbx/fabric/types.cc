// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/types.h"

namespace bx::fabric {

std::string_view to_string(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::send:
      return "SEND";
    case Opcode::send_with_imm:
      return "SEND_WITH_IMM";
    case Opcode::rdma_write:
      return "RDMA_WRITE";
    case Opcode::rdma_write_with_imm:
      return "RDMA_WRITE_WITH_IMM";
    case Opcode::rdma_read:
      return "RDMA_READ";
    case Opcode::fetch_add:
      return "FETCH_ADD";
    case Opcode::cmp_swap:
      return "CMP_SWAP";
  }
  return "unknown";
}

std::string_view to_string(WcStatus status) noexcept {
  switch (status) {
    case WcStatus::success:
      return "success";
    case WcStatus::local_length:
      return "local length error";
    case WcStatus::local_qp_operation:
      return "local QP operation error";
    case WcStatus::local_protection:
      return "local protection error";
    case WcStatus::flushed:
      return "flushed";
    case WcStatus::remote_invalid_request:
      return "remote invalid request error";
    case WcStatus::remote_access:
      return "remote access error";
    case WcStatus::remote_operation:
      return "remote operation error";
    case WcStatus::retry_exceeded:
      return "retry count exceeded";
    case WcStatus::rnr_retry_exceeded:
      return "RNR retry count exceeded";
    case WcStatus::fatal:
      return "fatal device error";
  }
  return "unknown";
}

std::string_view to_string(WcOpcode opcode) noexcept {
  switch (opcode) {
    case WcOpcode::send:
      return "SEND";
    case WcOpcode::rdma_write:
      return "RDMA_WRITE";
    case WcOpcode::rdma_read:
      return "RDMA_READ";
    case WcOpcode::fetch_add:
      return "FETCH_ADD";
    case WcOpcode::cmp_swap:
      return "CMP_SWAP";
    case WcOpcode::recv:
      return "RECV";
    case WcOpcode::recv_rdma_with_imm:
      return "RECV_RDMA_WITH_IMM";
  }
  return "unknown";
}

std::string_view to_string(DeviceEventKind kind) noexcept {
  switch (kind) {
    case DeviceEventKind::cq_overrun:
      return "CQ overrun";
    case DeviceEventKind::qp_fatal:
      return "QP fatal";
    case DeviceEventKind::port_error:
      return "port error";
    case DeviceEventKind::port_active:
      return "port active";
    case DeviceEventKind::device_fatal:
      return "device fatal";
  }
  return "unknown";
}

}  // namespace bx::fabric
