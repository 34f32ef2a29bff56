// SPDX-License-Identifier: GPL-2.0-only
// What goes wrong without a packet being lost: keys, bounds, permissions, lengths, missing receives, full
// completion queues, queue pairs that fail. Statuses at both ends are those of verbs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libbx/base/rc_timing.h"
#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

using Status = CompletionStatus;
using testing::ElementsAre;
using testing::Pair;

constexpr std::size_t kTarget = 1 << 19;

std::vector<std::pair<std::uint64_t, Status>> outcomes(const std::vector<WorkCompletion>& completions) {
  std::vector<std::pair<std::uint64_t, Status>> out;
  for (const WorkCompletion& c : completions) out.emplace_back(c.id, c.status);
  return out;
}

// --- Remote access.

struct RemoteCase {
  const char* name;
  RequestOpcode opcode;
  std::int64_t addr_offset;  // from the start of the region at the responder
  std::uint32_t length;
  std::uint32_t key_change;
  MemoryAccess access;
  Status expected;
};
constexpr MemoryAccess kAll = MemoryAccess::local_write | MemoryAccess::remote_read |
                              MemoryAccess::remote_write | MemoryAccess::remote_atomic;
constexpr std::uint32_t kRegion = 10'000;

class NicRemote : public testing::TestWithParam<RemoteCase> {};

TEST_P(NicRemote, access__fails_both_ends) {
  const RemoteCase& c = GetParam();
  World world;
  const auto [qa, qb] = world.connect({.mtu = 1024});
  const MemoryKeys keys = world.b.nic.memory().add(world.b.bytes(kTarget, kRegion), c.access).value();
  world.b.receive_into(50, {});
  const Segment local = world.a.segment(0, c.length);
  world.a.post(*qa, {.id = 1,
                     .segments = {&local, 1},
                     .remote_addr = world.b.at(kTarget) + static_cast<std::uint64_t>(c.addr_offset),
                     .rkey = keys.rkey ^ c.key_change,
                     .opcode = c.opcode});
  world.a.post(*qa, {.id = 2, .opcode = RequestOpcode::write});
  ASSERT_TRUE(world.run());
  if (c.expected == Status::success) {
    EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::success), Pair(2, Status::success)));
    EXPECT_EQ(qb->state(), QpState::ready_to_send);
    return;
  }
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, c.expected), Pair(2, Status::flushed)));
  EXPECT_EQ(qa->state(), QpState::error);
  EXPECT_EQ(qb->state(), QpState::error);
  const bool access = c.expected == Status::remote_access;
  EXPECT_THAT(
      world.b.events,
      ElementsAre(Pair(access ? NicEventKind::qp_access_error : NicEventKind::qp_request_error, qb->number()),
                  Pair(NicEventKind::last_wqe_reached, qb->number())));
  EXPECT_TRUE(world.b.receives().empty()) << "no receive was consumed";
  EXPECT_EQ(world.b.srq.size(), 1U);
  EXPECT_TRUE(world.at_rest());
}
INSTANTIATE_TEST_SUITE_P(
    all, NicRemote,
    testing::Values(
        RemoteCase{"write_inside", RequestOpcode::write, 0, kRegion, 0, kAll, Status::success},
        RemoteCase{"write_past_end", RequestOpcode::write, 0, kRegion + 1, 0, kAll, Status::remote_access},
        RemoteCase{"write_before", RequestOpcode::write, -1, 1, 0, kAll, Status::remote_access},
        RemoteCase{"write_bad_slot", RequestOpcode::write, 0, 1, 64U << 8U, kAll, Status::remote_access},
        RemoteCase{"write_bad_generation", RequestOpcode::write, 0, 1, 1U << 7U, kAll, Status::remote_access},
        RemoteCase{"write_with_lkey", RequestOpcode::write, 0, 1, 1U << 31U, kAll, Status::remote_access},
        RemoteCase{"write_no_right", RequestOpcode::write, 0, 1, 0,
                   MemoryAccess::local_write | MemoryAccess::remote_read, Status::remote_access},
        RemoteCase{"write_nothing_needs_no_key", RequestOpcode::write, -9, 0, 64U << 8U, kAll,
                   Status::success},
        RemoteCase{"read_nothing_needs_no_key", RequestOpcode::read, -9, 0, 64U << 8U, kAll, Status::success},
        RemoteCase{"write_imm_no_right", RequestOpcode::write_with_imm, 0, 1, 0, MemoryAccess::remote_read,
                   Status::remote_access},
        RemoteCase{"read_inside", RequestOpcode::read, 0, kRegion, 0, kAll, Status::success},
        RemoteCase{"read_past_end", RequestOpcode::read, 1, kRegion, 0, kAll, Status::remote_access},
        RemoteCase{"read_no_right", RequestOpcode::read, 0, 1, 0,
                   MemoryAccess::local_write | MemoryAccess::remote_write, Status::remote_access},
        RemoteCase{"read_bad_key", RequestOpcode::read, 0, 1, 64U << 8U, kAll, Status::remote_access},
        RemoteCase{"atomic_inside", RequestOpcode::fetch_add, 16, 8, 0, kAll, Status::success},
        RemoteCase{"atomic_no_right", RequestOpcode::fetch_add, 16, 8, 0,
                   MemoryAccess::local_write | MemoryAccess::remote_write, Status::remote_access},
        RemoteCase{"atomic_unaligned", RequestOpcode::cmp_swap, 17, 8, 0, kAll,
                   Status::remote_invalid_request},
        RemoteCase{"atomic_past_end", RequestOpcode::cmp_swap, kRegion, 8, 0, kAll, Status::remote_access}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(nic_fault, stale_rkey__is_refused_after_its_slot_is_used_again) {
  World world;
  const auto [qa, qb] = world.connect();
  MemoryTable& memory = world.b.nic.memory();
  const MemoryKeys stale = memory.add(world.b.bytes(kTarget, 64), kAll).value();
  memory.remove(stale);
  const MemoryKeys fresh = memory.add(world.b.bytes(kTarget, 64), kAll).value();
  ASSERT_NE(stale.rkey, fresh.rkey);
  ASSERT_EQ(stale.rkey >> 8U & 0xfffffU, fresh.rkey >> 8U & 0xfffffU) << "the test needs the same slot";
  const Segment from = world.a.segment(0, 64);
  world.a.post(*qa, {.id = 1,
                     .segments = {&from, 1},
                     .remote_addr = world.b.at(kTarget),
                     .rkey = stale.rkey,
                     .opcode = RequestOpcode::write});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::remote_access)));
}

TEST(nic_fault, region_removed_during_a_read__ends_it_with_remote_access) {
  World world;
  const auto [qa, qb] = world.connect();
  const MemoryKeys keys = world.b.nic.memory().add(world.b.bytes(0, 400'000), kAll).value();
  const Segment into = world.a.segment(0, 400'000);
  world.a.post(*qa, {.id = 1,
                     .segments = {&into, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = keys.rkey,
                     .opcode = RequestOpcode::read});
  world.run(microseconds{10});  // about a quarter of it
  world.b.nic.memory().remove(keys);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::remote_access)));
  EXPECT_EQ(qb->state(), QpState::error);
  EXPECT_TRUE(world.at_rest());
}

TEST(nic_fault, region_removed_during_a_write__fails_the_end_that_removed_it) {
  for (const bool at_sender : {true, false}) {
    World world;
    const auto [qa, qb] = world.connect();
    Side& remover = at_sender ? world.a : world.b;
    const MemoryKeys keys = remover.nic.memory().add(remover.bytes(0, 400'000), kAll).value();
    const Segment from{world.a.at(0), 400'000, at_sender ? keys.lkey : world.a.keys.lkey};
    world.a.post(*qa, {.id = 1,
                       .segments = {&from, 1},
                       .remote_addr = world.b.at(0),
                       .rkey = at_sender ? world.b.keys.rkey : keys.rkey,
                       .opcode = RequestOpcode::write});
    world.run(microseconds{10});
    remover.nic.memory().remove(keys);
    ASSERT_TRUE(world.run());
    EXPECT_THAT(outcomes(world.a.sends()),
                ElementsAre(Pair(1, at_sender ? Status::local_protection : Status::remote_access)));
    EXPECT_TRUE(world.at_rest());
  }
}

// --- Local faults: told in their turn, after what was posted before.

struct LocalCase {
  const char* name;
  SendRequest request;
  std::uint32_t length;
  std::uint32_t key_change;
  Status expected;
};
class NicLocal : public testing::TestWithParam<LocalCase> {};

TEST_P(NicLocal, fault__completes_in_turn_and_leaves_the_responder_alone) {
  const LocalCase& c = GetParam();
  World world;
  const auto [qa, qb] = world.connect({.rd_atomic_max = 0});
  const Segment good = world.a.segment(0, 9000);
  Segment bad = world.a.segment(0, c.length);
  bad.key ^= c.key_change;
  world.write(*qa, {.id = 1, .from = good});
  SendRequest request = c.request;
  request.id = 2;
  request.segments = {&bad, 1};
  request.remote_addr = world.b.at(0);
  request.rkey = world.b.keys.rkey;
  world.a.post(*qa, request);
  world.a.post(*qa, {.id = 3, .opcode = RequestOpcode::write, .signaled = false});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()),
              ElementsAre(Pair(1, Status::success), Pair(2, c.expected), Pair(3, Status::flushed)));
  EXPECT_EQ(qa->state(), QpState::error);
  EXPECT_EQ(qb->state(), QpState::ready_to_send);
  EXPECT_TRUE(world.at_rest());
}
INSTANTIATE_TEST_SUITE_P(
    all, NicLocal,
    testing::Values(
        LocalCase{"bad_lkey", {.opcode = RequestOpcode::write}, 10, 64, Status::local_protection},
        LocalCase{"bounds", {.opcode = RequestOpcode::send}, 1U << 21U, 0, Status::local_protection},
        LocalCase{"too_long", {.opcode = RequestOpcode::send}, (1U << 30U) + 1, 0, Status::local_length},
        LocalCase{"atomic_length", {.opcode = RequestOpcode::fetch_add}, 4, 0, Status::local_length},
        LocalCase{"no_reads_allowed", {.opcode = RequestOpcode::read}, 4, 0, Status::local_qp_operation}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(nic_fault, read_into_memory_without_local_write__is_local_protection) {
  World world;
  const auto [qa, qb] = world.connect();
  const MemoryKeys keys = world.a.nic.memory().add(world.a.bytes(0, 64), MemoryAccess::local_read).value();
  const Segment into{world.a.at(0), 64, keys.lkey};
  world.a.post(*qa, {.id = 1,
                     .segments = {&into, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = world.b.keys.rkey,
                     .opcode = RequestOpcode::read});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::local_protection)));
}

// --- Receives.

TEST(nic_fault, short_receive__is_local_length_here_and_invalid_request_there) {
  for (const std::uint32_t length : {65U, 9000U}) {
    World world;
    const auto [qa, qb] = world.connect();
    world.b.receive_into(7, {world.b.segment(0, 64)});
    world.b.receive_into(8, {world.b.segment(64, 64)});
    const Segment from = world.a.segment(0, length);
    world.a.post(*qa, {.id = 1, .segments = {&from, 1}});
    ASSERT_TRUE(world.run());
    EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::remote_invalid_request)));
    EXPECT_THAT(outcomes(world.b.receives()), ElementsAre(Pair(7, Status::local_length)));
    EXPECT_EQ(qb->state(), QpState::error);
    EXPECT_THAT(world.b.events, ElementsAre(Pair(NicEventKind::last_wqe_reached, qb->number())))
        << "the completion tells the rest";
    EXPECT_EQ(world.b.srq.size(), 1U) << "unconsumed receives stay with the SRQ";
  }
}

TEST(nic_fault, receive_with_bad_lkey__is_local_protection_here_and_remote_operation_there) {
  World world;
  const auto [qa, qb] = world.connect();
  Segment bad = world.b.segment(0, 64);
  bad.key ^= 64U;
  world.b.receive_into(7, {bad});
  const Segment from = world.a.segment(0, 10);
  world.a.post(*qa, {.id = 1, .segments = {&from, 1}});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::remote_operation)));
  EXPECT_THAT(outcomes(world.b.receives()), ElementsAre(Pair(7, Status::local_protection)));
}

TEST(nic_fault, no_receive__waits_the_timer_and_tries_again) {
  for (const std::uint8_t code : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{12}, std::uint8_t{14}}) {
    World world({.fetch_latency = Picoseconds{0}, .write_back_latency = Picoseconds{0}});
    const auto [qa, qb] = world.connect({.min_rnr_timer = code});
    std::vector<Picoseconds> arrivals;
    world.b.filter.lose = [&](const Frame&) {
      arrivals.push_back(world.engine.now());
      return false;
    };
    const Segment from = world.a.segment(0, 10);
    world.a.post(*qa, {.id = 1, .segments = {&from, 1}});
    const Picoseconds round_trip{2 * 1'000'000 + 86 * 80 + 94 * 80};  // 10 bytes are padded to 12
    world.run(round_trip + rnr_wait(code) + microseconds{2});
    ASSERT_EQ(arrivals.size(), 2U) << "code " << int{code};
    EXPECT_EQ(arrivals[1] - arrivals[0], round_trip + rnr_wait(code));
    EXPECT_EQ(world.b.nic.counters().rnr_naks_tx, 2U);
    world.b.receive_into(7, {world.b.segment(0, 64)});
    ASSERT_TRUE(world.run());
    EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::success)));
    EXPECT_THAT(outcomes(world.b.receives()), ElementsAre(Pair(7, Status::success)));
    EXPECT_EQ(world.a.nic.counters().rnr_naks_rx, 2U);
    EXPECT_EQ(world.a.nic.counters().timeouts, 0U);
    EXPECT_TRUE(world.bytes_conserved());
  }
}

TEST(nic_fault, rnr_retry__is_that_many_attempts_and_then_an_error) {
  for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{6}}) {
    World world;
    const auto [qa, qb] = world.connect({.rnr_retry = retries, .min_rnr_timer = 1});
    world.a.post(*qa, {.id = 1});
    world.a.post(*qa, {.id = 2, .signaled = false});
    ASSERT_TRUE(world.run());
    EXPECT_THAT(outcomes(world.a.sends()),
                ElementsAre(Pair(1, Status::rnr_retry_exceeded), Pair(2, Status::flushed)));
    EXPECT_EQ(world.b.nic.counters().rnr_naks_tx, retries + 1U);
    EXPECT_EQ(qb->state(), QpState::ready_to_send) << "the responder has done nothing wrong";
  }
}

TEST(nic_fault, rnr_retry_7__is_for_ever) {
  World world;
  const auto [qa, qb] = world.connect({.rnr_retry = 7, .min_rnr_timer = 1});
  world.a.post(*qa, {.id = 1});
  world.run(milliseconds{50});
  EXPECT_GT(world.b.nic.counters().rnr_naks_tx, 1000U);
  EXPECT_TRUE(world.a.sends().empty());
  world.b.receive_into(7, {});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::success)));
}

TEST(nic_fault, rnr_in_the_middle__completes_what_is_before_and_keeps_order) {
  World world;
  const auto [qa, qb] = world.connect({.min_rnr_timer = 1});
  const Segment s = world.a.segment(0, 9000);
  const SendRequest write{.segments = {&s, 1},
                          .remote_addr = world.b.at(0),
                          .rkey = world.b.keys.rkey,
                          .opcode = RequestOpcode::write_with_imm};
  SendRequest request = write;
  request.id = 1;
  request.opcode = RequestOpcode::write;
  world.a.post(*qa, request);
  request.id = 2;
  request.opcode = RequestOpcode::write_with_imm;
  world.a.post(*qa, request);
  request.id = 3;
  request.opcode = RequestOpcode::read;
  world.a.post(*qa, request);
  world.run(microseconds{30});
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::success)));
  world.b.receive_into(7, {});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(2, Status::success), Pair(3, Status::success)));
  EXPECT_TRUE(world.bytes_conserved());
}

// --- The error state.

TEST(nic_fault, to_error__flushes_everything_once_in_order_and_then_is_silent) {
  World world;
  const auto [qa, qb] = world.connect();
  const Segment s = world.a.segment(0, 40'000);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    world.a.post(*qa, {.id = id,
                       .segments = {&s, 1},
                       .remote_addr = world.b.at(0),
                       .rkey = world.b.keys.rkey,
                       .opcode = id == 2 ? RequestOpcode::read : RequestOpcode::write,
                       .signaled = id != 3});
  }
  const SendRequest not_rung{.id = 5};
  qa->post_send({&not_rung, 1});
  world.run(microseconds{3});
  qa->to_error();
  world.a.post(*qa, {.id = 6});
  const std::uint64_t packets = world.a.nic.counters().packets_tx;
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()),
              ElementsAre(Pair(1, Status::flushed), Pair(2, Status::flushed), Pair(3, Status::flushed),
                          Pair(4, Status::flushed), Pair(5, Status::flushed), Pair(6, Status::flushed)));
  EXPECT_EQ(world.a.nic.counters().packets_tx, packets);
  EXPECT_TRUE(world.a.nic.audit().at_rest());
  qa->to_error();
  EXPECT_TRUE(world.run());
  EXPECT_TRUE(world.a.sends().empty());
}

TEST(nic_fault, half_filled_receive__is_flushed_with_its_queue_pair) {
  World world;
  const auto [qa, qb] = world.connect();
  world.b.receive_into(7, {world.b.segment(0, 400'000)});
  world.b.receive_into(8, {world.b.segment(0, 400'000)});
  const Segment from = world.a.segment(0, 400'000);
  world.a.post(*qa, {.id = 1, .segments = {&from, 1}});
  world.run(microseconds{10});
  EXPECT_EQ(world.b.nic.audit().responders_busy, 1U);
  qb->to_error();
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.b.receives()), ElementsAre(Pair(7, Status::flushed)));
  EXPECT_EQ(world.b.srq.size(), 1U);
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::retry_exceeded)));
  EXPECT_TRUE(world.at_rest());
}

TEST(nic_fault, answers_before_a_fatal_nak__still_leave) {
  World world;
  const auto [qa, qb] = world.connect();
  const Segment s = world.a.segment(0, 100'000);
  world.a.post(*qa, {.id = 1,
                     .segments = {&s, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = world.b.keys.rkey,
                     .opcode = RequestOpcode::read});
  world.a.post(*qa, {.id = 2,
                     .segments = {&s, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = 0,
                     .opcode = RequestOpcode::write});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()),
              ElementsAre(Pair(1, Status::success), Pair(2, Status::remote_access)));
}

TEST(nic_fault, more_reads_than_the_responder_holds__is_an_invalid_request) {
  World world;
  const auto [qa, qb] = world.connect({.rd_atomic_max = 8, .rd_atomic_dest_max = 2});
  std::array<Segment, 4> into{};
  for (std::size_t i = 0; i < 4; ++i) {
    into[i] = world.a.segment(i * 100'000, 100'000);
    world.a.post(*qa, {.id = i,
                       .segments = {&into[i], 1},
                       .remote_addr = world.b.at(0),
                       .rkey = world.b.keys.rkey,
                       .opcode = RequestOpcode::read});
  }
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()),
              ElementsAre(Pair(0, Status::success), Pair(1, Status::success),
                          Pair(2, Status::remote_invalid_request), Pair(3, Status::flushed)));
}

TEST(nic_fault, reset__forgets_everything_and_the_queue_pair_can_live_again) {
  World world;
  const auto [qa, qb] = world.connect();
  const Segment s = world.a.segment(0, 40'000);
  world.write(*qa, {.id = 1, .from = s});
  world.run(microseconds{2});
  qa->to_reset();
  qb->to_reset();
  ASSERT_TRUE(world.run());
  EXPECT_TRUE(world.a.sends().empty());
  EXPECT_TRUE(world.at_rest());
  World::bring_up(*qa, {.peer_host = 1, .peer_qp = qb->number(), .send_psn = 9, .receive_psn = 17});
  World::bring_up(*qb, {.peer_host = 0, .peer_qp = qa->number(), .send_psn = 17, .receive_psn = 9});
  world.write(*qa, {.id = 2, .from = s});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(2, Status::success)));
}

TEST(nic_fault, destroyed_queue_pair__leaves_its_peer_to_time_out) {
  World world;
  const auto [qa, qb] = world.connect({.ack_timeout = 8, .retry_cnt = 2});
  world.b.nic.destroy(*qb);
  world.a.post(*qa, {.id = 1, .opcode = RequestOpcode::write});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::retry_exceeded)));
  EXPECT_EQ(world.b.nic.counters().packets_discarded, 3U);
}

TEST(nic_fault, destroy_order__is_checked) {
  World world;
  world.connect();
  EXPECT_DEATH(world.a.nic.destroy(world.a.send_cq), "before its queue pairs");
  EXPECT_DEATH(world.a.nic.destroy(world.a.srq), "before its queue pairs");
}

// --- Completion queue overrun.

TEST(nic_fault, cq_overrun__is_an_event_and_fails_the_queue_pairs_attached) {
  World world({.cq_depth = 3});
  const auto [qa1, qb1] = world.connect();
  const auto [qa2, qb2] = world.connect();
  for (std::uint64_t id = 1; id <= 5; ++id) world.a.post(*qa1, {.id = id, .opcode = RequestOpcode::write});
  ASSERT_TRUE(world.run());
  EXPECT_TRUE(world.a.send_cq.overrun());
  EXPECT_THAT(world.a.events, ElementsAre(Pair(NicEventKind::cq_overrun, world.a.send_cq.number()),
                                          Pair(NicEventKind::qp_fatal, qa1->number()),
                                          Pair(NicEventKind::last_wqe_reached, qa1->number()),
                                          Pair(NicEventKind::qp_fatal, qa2->number()),
                                          Pair(NicEventKind::last_wqe_reached, qa2->number())));
  EXPECT_EQ(qa2->state(), QpState::error);
  EXPECT_THAT(outcomes(world.a.sends()),
              ElementsAre(Pair(1, Status::success), Pair(2, Status::success), Pair(3, Status::success)));
  EXPECT_EQ(qb1->state(), QpState::ready_to_send);
}

}  // namespace
}  // namespace bx::sim
