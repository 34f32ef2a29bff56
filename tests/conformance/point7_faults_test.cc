// SPDX-License-Identifier: BSD-3-Clause
// Contract point 7: length, key, bounds and permission faults fail both ends with the statuses that verbs
// define. A local fault fails the requester only: nothing of it was sent.
#include "tests/conformance/rig.h"

namespace bx::conformance {
namespace {

class Point7Faults : public ContractTest {
 protected:
  // The request fails with `status`, and what is behind it is flushed; alpha is in the error state.
  static void expect_requester_fails(Rig& rig, const SendWr& request, WcStatus status) {
    const std::array<SendWr, 2> both{request, send_wr(999, {})};
    ASSERT_EQ(rig.alpha->post(both), 2U);
    const auto done = rig.wait_sends(*rig.alpha, 2);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[0].wr_id, request.wr_id);
    EXPECT_EQ(to_string(done[0].status), to_string(status));
    EXPECT_EQ(done[1].status, WcStatus::flushed);
    EXPECT_TRUE(rig.failed(*rig.alpha));
  }
  static void expect_both_fail(Rig& rig, const SendWr& request, WcStatus status) {
    expect_requester_fails(rig, request, status);
    EXPECT_TRUE(rig.failed(*rig.beta));
  }
  // A remote request at [offset, offset + length) of beta with a key and an address as given must fail as an
  // access fault and change nothing.
  static void expect_access_fault(const Provider& provider, Opcode opcode, const RigConfig& config,
                                  const std::function<void(Rig&, SendWr&)>& spoil) {
    Rig rig(provider, config);
    rig.beta->post_recv(1, 4, 0, 64);
    rig.beta->fill(0, config.memory_bytes, 1);
    rig.alpha->fill(0, 4096, 2);
    const bool atomic = opcode == Opcode::fetch_add || opcode == Opcode::cmp_swap;
    const Sge element = rig.alpha->sge(0, atomic ? 8 : 2000);
    SendWr request = remote_wr(opcode, 1, {&element, 1}, rig.beta->remote(0));
    spoil(rig, request);
    expect_both_fail(rig, request, WcStatus::remote_access);
    EXPECT_TRUE(rig.beta->holds(0, config.memory_bytes, 1));
    EXPECT_TRUE(rig.alpha->holds(0, 4096, 2));
    EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
  }
  // The opcodes with a remote address that the provider has.
  static std::vector<Opcode> remote_opcodes(const Provider& provider) {
    std::vector<Opcode> all{Opcode::rdma_write, Opcode::rdma_write_with_imm, Opcode::rdma_read};
    Rig rig(provider);
    if (rig.alpha->host->device().caps().atomics) {
      all.push_back(Opcode::fetch_add);
      all.push_back(Opcode::cmp_swap);
    }
    return all;
  }
};
BX_CONFORMANCE_GROUP(Point7Faults);

TEST_P(Point7Faults, send__longer_than_its_receive) {
  for (const std::size_t room : {std::size_t{0}, std::size_t{1}, std::size_t{99}}) {
    Rig rig(GetParam());
    rig.beta->post_recv(10, 2, 0, room);
    const Sge element = rig.alpha->sge(0, 100);
    expect_both_fail(rig, send_wr(1, {&element, 1}), GetParam().long_message_sent);
    const auto received = rig.wait_recvs(*rig.beta, 2, 5ms);
    ASSERT_EQ(ids(received), numbers(10, 1));  // one receive was used up, the other one survives
    EXPECT_EQ(received[0].status, GetParam().long_message_received);
    EXPECT_EQ(received[0].qp, rig.beta->qp->address().qp);
  }
}

TEST_P(Point7Faults, send__that_spans_packets_and_is_longer_than_its_receive) {
  Rig rig(GetParam());
  rig.beta->post_recv(10, 1, 0, 9999);
  const Sge element = rig.alpha->sge(0, 10'000);
  expect_both_fail(rig, send_wr(1, {&element, 1}), GetParam().long_message_sent);
  EXPECT_EQ(statuses(rig.wait_recvs(*rig.beta, 1)), std::vector{GetParam().long_message_received});
}

TEST_P(Point7Faults, send__longer_than_the_device_allows) {
  RigConfig config;
  const fabric::DeviceCaps caps = Rig(GetParam()).alpha->host->device().caps();
  const std::uint64_t element_bytes = caps.message_bytes_max / caps.sges_max + 1;
  if (element_bytes > (std::uint64_t{1} << 27U)) {
    GTEST_SKIP() << "a message above message_bytes_max would need too much memory here";
  }
  config.memory_bytes = element_bytes;
  config.sges_max = caps.sges_max;
  Rig rig(GetParam(), config);
  const std::vector<Sge> sges(config.sges_max, rig.alpha->sge(0, element_bytes));
  expect_requester_fails(rig, send_wr(1, sges), WcStatus::local_length);
  EXPECT_FALSE(rig.failed(*rig.beta));
}

TEST_P(Point7Faults, receive__into_memory_that_its_lkey_does_not_cover) {
  Rig rig(GetParam());
  Sge target = rig.beta->sge(0, 100);
  target.lkey = fabric::LKey{0x4242};
  rig.beta->post_recv({.wr_id = WrId{10}, .sges = {&target, 1}});
  const Sge element = rig.alpha->sge(0, 100);
  expect_both_fail(rig, send_wr(1, {&element, 1}), WcStatus::remote_operation);
  const auto received = rig.wait_recvs(*rig.beta, 1);
  ASSERT_EQ(ids(received), numbers(10, 1));
  EXPECT_EQ(received[0].status, GetParam().bad_lkey);
}

// What the message does not reach is not looked at: an element behind its end, or an element's rest.
TEST_P(Point7Faults, receive__whose_fault_the_message_does_not_reach) {
  Rig rig(GetParam());
  const Sge good = rig.beta->sge(0, 100);
  Sge unknown = rig.beta->sge(200, 100);
  unknown.lkey = fabric::LKey{0x4242};
  const Sge beyond = rig.beta->sge(rig.beta->memory.size() - 50, 100);
  const std::array<Sge, 2> two{good, unknown};
  rig.beta->post_recv({.wr_id = WrId{1}, .sges = {&unknown, 1}});
  rig.beta->post_recv({.wr_id = WrId{2}, .sges = two});
  rig.beta->post_recv({.wr_id = WrId{3}, .sges = {&beyond, 1}});
  const Sge fifty = rig.alpha->sge(0, 50);
  rig.alpha->post(send_wr(1, {}));
  rig.alpha->post(send_wr(2, {&fifty, 1}));
  rig.alpha->post(send_wr(3, {&fifty, 1}));
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 3)), std::vector(3, WcStatus::success));
  EXPECT_EQ(statuses(rig.wait_recvs(*rig.beta, 3)), std::vector(3, WcStatus::success));
}

TEST_P(Point7Faults, local_key__that_does_not_exist) {
  Rig rig(GetParam());
  rig.beta->post_recv(1, 2, 0, 64);
  Sge element = rig.alpha->sge(0, 10);
  element.lkey = fabric::LKey{0x4242};
  expect_requester_fails(rig, send_wr(1, {&element, 1}), GetParam().bad_lkey);
  EXPECT_FALSE(rig.failed(*rig.beta));
  EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
}

TEST_P(Point7Faults, local_key__of_memory_that_is_registered_no_more) {
  Rig rig(GetParam());
  rig.beta->post_recv(1, 2, 0, 64);
  std::vector<std::byte> other(100);
  auto mr = rig.alpha->host->device().register_memory(other, Access::local);
  ASSERT_TRUE(mr.has_value());
  const Sge element{reinterpret_cast<std::uint64_t>(other.data()), 10, (*mr)->lkey()};
  rig.alpha->post(send_wr(0, {&element, 1}));
  ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
  mr->reset();
  auto again = rig.alpha->host->device().register_memory(other, Access::local);  // may reuse the slot
  ASSERT_TRUE(again.has_value());
  EXPECT_NE((*again)->lkey(), element.lkey);
  expect_requester_fails(rig, send_wr(1, {&element, 1}), GetParam().bad_lkey);
}

TEST_P(Point7Faults, local_bounds__one_byte_before_and_after) {
  for (const bool before : {true, false}) {
    Rig rig(GetParam());
    rig.beta->post_recv(1, 2, 0, 64);
    Sge element = rig.alpha->sge(before ? 0 : rig.alpha->memory.size() - 9, 10);
    if (before) --element.addr;
    expect_requester_fails(rig, send_wr(1, {&element, 1}), WcStatus::local_protection);
  }
}

TEST_P(Point7Faults, local_bounds__of_an_element_behind_a_good_one) {
  Rig rig(GetParam());
  rig.beta->post_recv(1, 2, 0, 64);
  const std::array<Sge, 2> sges{rig.alpha->sge(0, 8), rig.alpha->sge(rig.alpha->memory.size() - 1, 2)};
  expect_requester_fails(rig, send_wr(1, sges), WcStatus::local_protection);
  EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
}

TEST_P(Point7Faults, local_bounds__that_wrap_around_the_address_space) {
  Rig rig(GetParam());
  rig.beta->post_recv(1, 2, 0, 64);
  Sge element = rig.alpha->sge(0, 100);
  element.addr = UINT64_MAX - 50;
  expect_requester_fails(rig, send_wr(1, {&element, 1}), WcStatus::local_protection);
}

TEST_P(Point7Faults, remote_key__that_does_not_exist) {
  for (const Opcode opcode : remote_opcodes(GetParam())) {
    expect_access_fault(GetParam(), opcode, {}, [](Rig&, SendWr& request) {
      request.remote.rkey = fabric::RKey{static_cast<std::uint32_t>(request.remote.rkey) ^ 0x100U};
    });
  }
}

TEST_P(Point7Faults, remote_key__of_memory_that_is_registered_no_more) {
  for (const Opcode opcode : remote_opcodes(GetParam())) {
    expect_access_fault(GetParam(), opcode, {}, [](Rig& rig, SendWr&) { rig.beta->mr.reset(); });
  }
}

TEST_P(Point7Faults, remote_key__of_a_slot_that_is_in_use_again) {
  for (const Opcode opcode : remote_opcodes(GetParam())) {
    expect_access_fault(GetParam(), opcode, {}, [](Rig& rig, SendWr&) {
      rig.beta->mr.reset();
      auto again = rig.beta->host->device().register_memory(rig.beta->memory, Access::remote_all);
      rig.beta->mr = std::move(*again);
    });
  }
}

TEST_P(Point7Faults, remote_bounds__one_byte_before_and_after_and_wrapping_around) {
  for (const Opcode opcode : remote_opcodes(GetParam())) {
    const bool atomic = opcode == Opcode::fetch_add || opcode == Opcode::cmp_swap;
    const std::uint64_t step = atomic ? 8 : 1;
    RigConfig config;
    config.memory_bytes = 8192;
    expect_access_fault(GetParam(), opcode, config,
                        [&](Rig&, SendWr& request) { request.remote.addr -= step; });
    expect_access_fault(GetParam(), opcode, config, [&](Rig& rig, SendWr& request) {
      request.remote.addr += rig.beta->memory.size() - request.sges[0].length + step;
    });
    expect_access_fault(GetParam(), opcode, config,
                        [](Rig&, SendWr& request) { request.remote.addr = UINT64_MAX - 7; });
  }
}

TEST_P(Point7Faults, permission__that_was_not_given) {
  for (const Opcode opcode : remote_opcodes(GetParam())) {
    RigConfig config;
    switch (opcode) {
      case Opcode::rdma_read:
        config.access = Access::remote_write | Access::remote_atomic;
        break;
      case Opcode::fetch_add:
      case Opcode::cmp_swap:
        config.access = Access::remote_write | Access::remote_read;
        break;
      default:
        config.access = Access::remote_read | Access::remote_atomic;
    }
    expect_access_fault(GetParam(), opcode, config, [](Rig&, SendWr&) {});
    config.access = Access::local;
    expect_access_fault(GetParam(), opcode, config, [](Rig&, SendWr&) {});
  }
}

TEST_P(Point7Faults, permission__that_was_given_suffices) {
  const std::array<std::pair<Opcode, Access>, 2> pairs{std::pair{Opcode::rdma_write, Access::remote_write},
                                                       std::pair{Opcode::rdma_read, Access::remote_read}};
  for (const auto& [opcode, access] : pairs) {
    RigConfig config;
    config.access = access;
    Rig rig(GetParam(), config);
    const Sge element = rig.alpha->sge(0, 100);
    rig.alpha->post(remote_wr(opcode, 1, {&element, 1}, rig.beta->remote(0)));
    EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
  }
}

TEST_P(Point7Faults, atomic__at_an_address_that_is_not_aligned) {
  Rig rig(GetParam());
  if (!rig.alpha->host->device().caps().atomics) GTEST_SKIP() << "the provider has no atomics";
  const Sge word = rig.alpha->sge(0, 8);
  rig.beta->fill(0, 64, 1);
  const SendWr request = remote_wr(Opcode::fetch_add, 1, {&word, 1}, rig.beta->remote(4));
  expect_requester_fails(rig, request, GetParam().crooked_atomic);
  EXPECT_EQ(rig.failed(*rig.beta), GetParam().crooked_atomic == WcStatus::remote_invalid_request);
  EXPECT_TRUE(rig.beta->holds(0, 64, 1));
}

TEST_P(Point7Faults, atomic__of_another_length_than_eight_bytes) {
  for (const std::size_t length : {std::size_t{4}, std::size_t{16}}) {
    Rig rig(GetParam());
    if (!rig.alpha->host->device().caps().atomics) GTEST_SKIP() << "the provider has no atomics";
    const Sge words = rig.alpha->sge(0, length);
    rig.beta->fill(0, 64, 1);
    const SendWr request = remote_wr(Opcode::cmp_swap, 1, {&words, 1}, rig.beta->remote(8));
    expect_requester_fails(rig, request, WcStatus::local_length);
    EXPECT_FALSE(rig.failed(*rig.beta));
    EXPECT_TRUE(rig.beta->holds(0, 64, 1));
  }
}

TEST_P(Point7Faults, responder__flushes_its_own_requests_when_it_fails) {
  Rig rig(GetParam());
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(rig.beta->post(send_wr(id, {})), 1U);  // RNR for ever
  rig.run_for(50us);
  const Sge element = rig.alpha->sge(0, 100);
  SendWr request = remote_wr(Opcode::rdma_write, 1, {&element, 1}, rig.beta->remote(0));
  request.remote.rkey = fabric::RKey{1};
  rig.alpha->post(request);
  const auto flushed = rig.wait_sends(*rig.beta, 3);
  EXPECT_EQ(ids(flushed), numbers(0, 3));
  EXPECT_EQ(statuses(flushed), std::vector(3, WcStatus::flushed));
}

TEST_P(Point7Faults, fault__of_one_queue_pair_leaves_the_others_alone) {
  Rig rig(GetParam());
  const auto second = rig.alpha->make_qp();
  const auto peer = rig.beta->make_qp();
  Rig::connect(*rig.alpha, *second, *rig.beta, *peer);
  const Sge element = rig.alpha->sge(0, 100);
  SendWr bad = remote_wr(Opcode::rdma_write, 1, {&element, 1}, rig.beta->remote(0));
  bad.remote.rkey = fabric::RKey{1};
  expect_both_fail(rig, bad, WcStatus::remote_access);
  const SendWr good = remote_wr(Opcode::rdma_write, 2, {&element, 1}, rig.beta->remote(0));
  ASSERT_EQ(second->post_send({&good, 1}), 1U);
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
}

}  // namespace
}  // namespace bx::conformance
