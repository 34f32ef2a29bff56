// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/verbs_values.h"

#include <gtest/gtest.h>

namespace bx::verbs {
namespace {

using fabric::Access;
using fabric::DeviceEventKind;
using fabric::Opcode;
using fabric::SendFlags;
using fabric::WcOpcode;
using fabric::WcStatus;

TEST(verbs_values, status_of__every_status_of_the_device_is_one_of_ours_and_only_success_is_success) {
  struct Row {
    ibv_wc_status theirs;
    WcStatus ours;
  };
  constexpr Row kRows[] = {{IBV_WC_SUCCESS, WcStatus::success},
                           {IBV_WC_LOC_LEN_ERR, WcStatus::local_length},
                           {IBV_WC_LOC_QP_OP_ERR, WcStatus::local_qp_operation},
                           {IBV_WC_LOC_PROT_ERR, WcStatus::local_protection},
                           {IBV_WC_WR_FLUSH_ERR, WcStatus::flushed},
                           {IBV_WC_REM_INV_REQ_ERR, WcStatus::remote_invalid_request},
                           {IBV_WC_REM_ACCESS_ERR, WcStatus::remote_access},
                           {IBV_WC_REM_OP_ERR, WcStatus::remote_operation},
                           {IBV_WC_RETRY_EXC_ERR, WcStatus::retry_exceeded},
                           {IBV_WC_RNR_RETRY_EXC_ERR, WcStatus::rnr_retry_exceeded},
                           {IBV_WC_REM_ABORT_ERR, WcStatus::remote_operation},
                           {IBV_WC_FATAL_ERR, WcStatus::fatal},
                           {IBV_WC_GENERAL_ERR, WcStatus::local_qp_operation}};
  for (const Row& row : kRows) EXPECT_EQ(status_of(row.theirs), row.ours) << row.theirs;
  for (int status = 1; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
    EXPECT_NE(status_of(static_cast<ibv_wc_status>(status)), WcStatus::success) << status;
  }
}

TEST(verbs_values, to_ibv__opcodes_and_what_their_completions_are_called) {
  EXPECT_EQ(to_ibv(Opcode::send), IBV_WR_SEND);
  EXPECT_EQ(to_ibv(Opcode::send_with_imm), IBV_WR_SEND_WITH_IMM);
  EXPECT_EQ(to_ibv(Opcode::rdma_write), IBV_WR_RDMA_WRITE);
  EXPECT_EQ(to_ibv(Opcode::rdma_write_with_imm), IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(to_ibv(Opcode::rdma_read), IBV_WR_RDMA_READ);
  EXPECT_EQ(to_ibv(Opcode::fetch_add), IBV_WR_ATOMIC_FETCH_AND_ADD);
  EXPECT_EQ(to_ibv(Opcode::cmp_swap), IBV_WR_ATOMIC_CMP_AND_SWP);
  EXPECT_EQ(opcode_of(IBV_WC_SEND), WcOpcode::send);
  EXPECT_EQ(opcode_of(IBV_WC_RDMA_WRITE), WcOpcode::rdma_write);
  EXPECT_EQ(opcode_of(IBV_WC_RDMA_READ), WcOpcode::rdma_read);
  EXPECT_EQ(opcode_of(IBV_WC_FETCH_ADD), WcOpcode::fetch_add);
  EXPECT_EQ(opcode_of(IBV_WC_COMP_SWAP), WcOpcode::cmp_swap);
  EXPECT_EQ(opcode_of(IBV_WC_RECV), WcOpcode::recv);
  EXPECT_EQ(opcode_of(IBV_WC_RECV_RDMA_WITH_IMM), WcOpcode::recv_rdma_with_imm);
}

TEST(verbs_values, to_ibv__each_flag_by_itself) {
  EXPECT_EQ(to_ibv(SendFlags::none), 0U);
  EXPECT_EQ(to_ibv(SendFlags::signaled), unsigned{IBV_SEND_SIGNALED});
  EXPECT_EQ(to_ibv(SendFlags::inlined), unsigned{IBV_SEND_INLINE});
  EXPECT_EQ(to_ibv(SendFlags::fenced), unsigned{IBV_SEND_FENCE});
  EXPECT_EQ(to_ibv(SendFlags::solicited | SendFlags::signaled), IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
}

// The library relies on the order that verbs give by default: a put is visible before the message that
// follows it, and a payload before its completion.
TEST(verbs_values, to_ibv__no_region_is_ever_registered_with_relaxed_ordering) {
  for (unsigned bits = 0; bits <= static_cast<unsigned>(Access::remote_all); ++bits) {
    const auto access = static_cast<Access>(bits);
    int expected = IBV_ACCESS_LOCAL_WRITE;
    if (allows(access, Access::remote_read)) expected |= IBV_ACCESS_REMOTE_READ;
    if (allows(access, Access::remote_write)) expected |= IBV_ACCESS_REMOTE_WRITE;
    if (allows(access, Access::remote_atomic)) expected |= IBV_ACCESS_REMOTE_ATOMIC;
    EXPECT_EQ(to_ibv(access), expected) << bits;
    EXPECT_EQ(to_ibv(access) & IBV_ACCESS_RELAXED_ORDERING, 0) << bits;
  }
}

TEST(verbs_values, mtu_of__and_back) {
  for (const std::uint32_t bytes : {256U, 512U, 1024U, 2048U, 4096U}) {
    EXPECT_EQ(bytes_of(mtu_of(bytes)), bytes);
  }
}

TEST(verbs_values, event_kind_of__what_ends_queue_pairs_ports_and_devices_and_nothing_else) {
  EXPECT_EQ(event_kind_of(IBV_EVENT_CQ_ERR), DeviceEventKind::cq_overrun);
  EXPECT_EQ(event_kind_of(IBV_EVENT_QP_FATAL), DeviceEventKind::qp_fatal);
  EXPECT_EQ(event_kind_of(IBV_EVENT_QP_ACCESS_ERR), DeviceEventKind::qp_fatal);
  EXPECT_EQ(event_kind_of(IBV_EVENT_PORT_ERR), DeviceEventKind::port_error);
  EXPECT_EQ(event_kind_of(IBV_EVENT_PORT_ACTIVE), DeviceEventKind::port_active);
  EXPECT_EQ(event_kind_of(IBV_EVENT_DEVICE_FATAL), DeviceEventKind::device_fatal);
  EXPECT_EQ(event_kind_of(IBV_EVENT_COMM_EST), std::nullopt);
  EXPECT_EQ(event_kind_of(IBV_EVENT_SM_CHANGE), std::nullopt);
}

}  // namespace
}  // namespace bx::verbs
