// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/verbs_values.h"

namespace bx::verbs {

using fabric::Access;
using fabric::DeviceEventKind;
using fabric::Opcode;
using fabric::SendFlags;
using fabric::WcOpcode;
using fabric::WcStatus;

WcStatus status_of(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_SUCCESS:
      return WcStatus::success;
    case IBV_WC_LOC_LEN_ERR:
      return WcStatus::local_length;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return WcStatus::local_protection;
    case IBV_WC_WR_FLUSH_ERR:
      return WcStatus::flushed;
    case IBV_WC_REM_INV_REQ_ERR:
      return WcStatus::remote_invalid_request;
    case IBV_WC_REM_ACCESS_ERR:
      return WcStatus::remote_access;
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return WcStatus::remote_operation;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return WcStatus::retry_exceeded;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return WcStatus::rnr_retry_exceeded;
    case IBV_WC_FATAL_ERR:
      return WcStatus::fatal;
    default:
      return WcStatus::local_qp_operation;
  }
}

WcOpcode opcode_of(ibv_wc_opcode opcode) noexcept {
  switch (opcode) {
    case IBV_WC_RDMA_WRITE:
      return WcOpcode::rdma_write;
    case IBV_WC_RDMA_READ:
      return WcOpcode::rdma_read;
    case IBV_WC_FETCH_ADD:
      return WcOpcode::fetch_add;
    case IBV_WC_COMP_SWAP:
      return WcOpcode::cmp_swap;
    case IBV_WC_RECV:
      return WcOpcode::recv;
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return WcOpcode::recv_rdma_with_imm;
    default:
      return WcOpcode::send;
  }
}

ibv_wr_opcode to_ibv(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::send:
      return IBV_WR_SEND;
    case Opcode::send_with_imm:
      return IBV_WR_SEND_WITH_IMM;
    case Opcode::rdma_write:
      return IBV_WR_RDMA_WRITE;
    case Opcode::rdma_write_with_imm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Opcode::rdma_read:
      return IBV_WR_RDMA_READ;
    case Opcode::fetch_add:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Opcode::cmp_swap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
  }
  return IBV_WR_SEND;
}

unsigned to_ibv(SendFlags flags) noexcept {
  unsigned result = 0;
  if (has(flags, SendFlags::signaled)) result |= IBV_SEND_SIGNALED;
  if (has(flags, SendFlags::inlined)) result |= IBV_SEND_INLINE;
  if (has(flags, SendFlags::fenced)) result |= IBV_SEND_FENCE;
  if (has(flags, SendFlags::solicited)) result |= IBV_SEND_SOLICITED;
  return result;
}

int to_ibv(Access access) noexcept {
  int result = IBV_ACCESS_LOCAL_WRITE;
  if (allows(access, Access::remote_read)) result |= IBV_ACCESS_REMOTE_READ;
  if (allows(access, Access::remote_write)) result |= IBV_ACCESS_REMOTE_WRITE;
  if (allows(access, Access::remote_atomic)) result |= IBV_ACCESS_REMOTE_ATOMIC;
  return result;
}

ibv_mtu mtu_of(std::uint32_t bytes) noexcept {
  switch (bytes) {
    case 256:
      return IBV_MTU_256;
    case 512:
      return IBV_MTU_512;
    case 1024:
      return IBV_MTU_1024;
    case 2048:
      return IBV_MTU_2048;
    default:
      return IBV_MTU_4096;
  }
}

std::uint32_t bytes_of(ibv_mtu mtu) noexcept {
  return 128U << static_cast<unsigned>(mtu);  // IBV_MTU_256 is 1
}

std::optional<DeviceEventKind> event_kind_of(ibv_event_type type) noexcept {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return DeviceEventKind::cq_overrun;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return DeviceEventKind::qp_fatal;
    case IBV_EVENT_PORT_ERR:
      return DeviceEventKind::port_error;
    case IBV_EVENT_PORT_ACTIVE:
      return DeviceEventKind::port_active;
    case IBV_EVENT_DEVICE_FATAL:
      return DeviceEventKind::device_fatal;
    default:
      return std::nullopt;
  }
}

}  // namespace bx::verbs
