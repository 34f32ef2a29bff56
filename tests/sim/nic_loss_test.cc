// SPDX-License-Identifier: GPL-2.0-only
// Lost packets and lost answers: one by one, for every packet of an exchange of mixed opcodes, and the timers
// that notice what no answer tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "libbx/base/rc_timing.h"
#include "sim/model/psn.h"
#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

using Status = CompletionStatus;
using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<std::uint64_t, Status>> outcomes(const std::vector<WorkCompletion>& completions) {
  std::vector<std::pair<std::uint64_t, Status>> out;
  for (const WorkCompletion& c : completions) out.emplace_back(c.id, c.status);
  return out;
}

// The exchange: every opcode, messages of none, one and several packets, a READ between others. Offsets in
// the memory of both sides; each request has a place of its own.
struct Step {
  RequestOpcode opcode;
  std::size_t offset;
  std::uint32_t length;
};
constexpr std::array<Step, 10> kExchange{{
    {RequestOpcode::send, 0, 1000},
    {RequestOpcode::write, 2000, 700},
    {RequestOpcode::read, 4000, 1200},
    {RequestOpcode::fetch_add, 6000, 8},
    {RequestOpcode::write_with_imm, 8000, 300},
    {RequestOpcode::cmp_swap, 6000, 8},
    {RequestOpcode::send_with_imm, 10'000, 0},
    {RequestOpcode::read, 12'000, 256},
    {RequestOpcode::read, 14'000, 700},
    {RequestOpcode::write, 16'000, 257},
}};
constexpr std::uint64_t kCounterStart = 5;
constexpr std::size_t kResults = 20'000;  // originals of the atomics, at the requester

class Exchange {
 public:
  explicit Exchange(const RcPath& path) {
    std::tie(qa_, qb_) = world.connect(path);
    world.a.fill(0, 18'000, 1);
    world.b.fill(0, 18'000, 2);
    std::memcpy(&world.b.memory[6000], &kCounterStart, 8);
    before_b_ = world.b.memory;
    for (std::uint64_t id = 0; id < 3; ++id) world.b.receive_into(100 + id, {world.b.segment(30'000, 2000)});
  }
  void post_all() {
    for (std::size_t i = 0; i < kExchange.size(); ++i) {
      const Step& step = kExchange[i];
      const bool atomic = is_atomic(step.opcode);
      const Segment local = world.a.segment(atomic ? kResults + i * 8 : step.offset, step.length);
      world.a.post(*qa_, {.id = i,
                          .segments = {&local, step.length > 0 ? 1U : 0U},
                          .remote_addr = world.b.at(step.offset),
                          .rkey = world.b.keys.rkey,
                          .imm = 9,
                          .compare_add = step.opcode == RequestOpcode::cmp_swap ? kCounterStart + 3 : 3,
                          .swap = 77,
                          .opcode = step.opcode});
    }
  }
  void check() {
    std::vector<std::pair<std::uint64_t, Status>> all;
    for (std::size_t i = 0; i < kExchange.size(); ++i) all.emplace_back(i, Status::success);
    EXPECT_EQ(outcomes(world.a.sends()), all);
    EXPECT_THAT(
        outcomes(world.b.receives()),
        ElementsAre(Pair(100, Status::success), Pair(101, Status::success), Pair(102, Status::success)));
    for (const Step& step : kExchange) {
      if (step.opcode == RequestOpcode::write || step.opcode == RequestOpcode::write_with_imm) {
        EXPECT_TRUE(std::ranges::equal(world.a.bytes(step.offset, step.length),
                                       world.b.bytes(step.offset, step.length)));
      }
      if (step.opcode == RequestOpcode::read) {
        EXPECT_TRUE(std::equal(before_b_.begin() + static_cast<std::ptrdiff_t>(step.offset),
                               before_b_.begin() + static_cast<std::ptrdiff_t>(step.offset + step.length),
                               world.a.memory.begin() + static_cast<std::ptrdiff_t>(step.offset)));
      }
    }
    // Each atomic was executed once: the second one found what the first one left.
    std::uint64_t originals[3] = {};
    std::memcpy(&originals[0], &world.a.memory[kResults + 3 * 8], 8);
    std::memcpy(&originals[1], &world.a.memory[kResults + 5 * 8], 8);
    std::memcpy(&originals[2], &world.b.memory[6000], 8);
    EXPECT_EQ(originals[0], kCounterStart);
    EXPECT_EQ(originals[1], kCounterStart + 3);
    EXPECT_EQ(originals[2], 77U);
    EXPECT_TRUE(world.at_rest());
    EXPECT_TRUE(world.bytes_conserved());
  }
  World world;

 private:
  RcQueuePair* qa_ = nullptr;
  RcQueuePair* qb_ = nullptr;
  std::vector<std::byte> before_b_;
};

// Runs the exchange over and over, losing frame k of `side`'s arrivals and the `also` - 1 after it, until k
// is past the last frame. Returns how many runs lost something.
std::uint64_t lose_each(const RcPath& path, Side World::*side, std::uint64_t also) {
  for (std::uint64_t k = 0;; ++k) {
    SCOPED_TRACE(k);
    Exchange exchange(path);
    LossFilter& filter = (exchange.world.*side).filter;
    filter.lose = [&](const Frame&) { return filter.seen > k && filter.seen <= k + also; };
    exchange.post_all();
    EXPECT_TRUE(exchange.world.run());
    exchange.check();
    if (testing::Test::HasFailure() || filter.lost == 0) return k;
  }
}

constexpr RcPath kPath{.mtu = 256, .ack_timeout = 5};

TEST(nic_loss, nothing_lost__nothing_retransmitted) {
  Exchange exchange(kPath);
  exchange.post_all();
  ASSERT_TRUE(exchange.world.run());
  exchange.check();
  EXPECT_EQ(exchange.world.a.nic.counters().packets_retransmitted, 0U);
  EXPECT_EQ(exchange.world.b.nic.counters().packets_duplicate, 0U);
}

TEST(nic_loss, each_request_packet__is_recovered) {
  EXPECT_GT(lose_each(kPath, &World::b, 1), 15U);
}

TEST(nic_loss, each_answer__is_recovered) {
  EXPECT_GT(lose_each(kPath, &World::a, 1), 10U);
}

TEST(nic_loss, each_run_of_three__is_recovered) {
  EXPECT_GT(lose_each(kPath, &World::b, 3), 15U);
  EXPECT_GT(lose_each(kPath, &World::a, 3), 10U);
}

TEST(nic_loss, psn_wrap__changes_nothing) {
  for (std::uint32_t before_wrap : {1U, 4U, 9U, 15U}) {
    RcPath path = kPath;
    path.send_psn = (kPsnMask + 1) - before_wrap;
    EXPECT_GT(lose_each(path, &World::b, 1), 15U);
    EXPECT_GT(lose_each(path, &World::a, 1), 10U);
  }
}

TEST(nic_loss, gap__gets_one_nak_and_one_retransmission) {
  World world;
  const auto [qa, qb] = world.connect({.mtu = 256});
  const Segment from = world.a.segment(0, 256 * 20);
  world.b.filter.lose = [&](const Frame&) { return world.b.filter.seen == 4; };
  world.write(*qa, {.id = 1, .from = from});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::success)));
  EXPECT_EQ(world.b.nic.counters().sequence_naks_tx, 1U);
  EXPECT_EQ(world.b.nic.counters().packets_out_of_order, 16U);
  EXPECT_EQ(world.a.nic.counters().packets_retransmitted, 17U) << "go-back-N: from the lost one on";
  EXPECT_EQ(world.a.nic.counters().timeouts, 0U);
}

TEST(nic_loss, read_response_lost__asks_for_the_rest_only) {
  World world;
  const auto [qa, qb] = world.connect({.mtu = 256});
  std::vector<Frame> requests;
  world.b.filter.lose = [&](const Frame& f) {
    requests.push_back(f);
    return false;
  };
  world.a.filter.lose = [&](const Frame&) { return world.a.filter.seen == 4; };
  world.b.fill(0, 256 * 20, 3);
  const Segment into = world.a.segment(0, 256 * 20);
  world.a.post(*qa, {.id = 1,
                     .segments = {&into, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = world.b.keys.rkey,
                     .opcode = RequestOpcode::read});
  ASSERT_TRUE(world.run());
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].psn, requests[0].psn + 3);
  EXPECT_EQ(requests[1].va, requests[0].va + 3 * 256);
  EXPECT_EQ(requests[1].dma_length, 17U * 256);
  EXPECT_EQ(world.a.nic.counters().implied_naks, 1U);
  EXPECT_EQ(world.a.nic.counters().timeouts, 0U);
  EXPECT_TRUE(std::ranges::equal(world.a.bytes(0, 256 * 20), world.b.bytes(0, 256 * 20)));
}

// --- Timeouts at exact times.

struct TimeoutCase {
  std::uint8_t ack_timeout;
  std::uint8_t retry_cnt;
};
class NicTimeout : public testing::TestWithParam<TimeoutCase> {};

TEST_P(NicTimeout, silence__is_retry_exceeded_at_the_exact_time) {
  const auto [ack_timeout, retry_cnt] = GetParam();
  World world({.fetch_latency = Picoseconds{0}, .write_back_latency = Picoseconds{0}});
  const auto [qa, qb] = world.connect({.ack_timeout = ack_timeout, .retry_cnt = retry_cnt});
  world.b.filter.lose = [](const Frame&) { return true; };
  world.a.post(*qa, {.id = 1, .opcode = RequestOpcode::write});
  world.a.post(*qa, {.id = 2, .opcode = RequestOpcode::read});
  const Picoseconds end = ack_wait(ack_timeout) * (retry_cnt + 1);
  EXPECT_FALSE(world.run(end - Picoseconds{1}));
  EXPECT_TRUE(world.a.sends().empty());
  world.run(end);
  EXPECT_THAT(outcomes(world.a.sends()),
              ElementsAre(Pair(1, Status::retry_exceeded), Pair(2, Status::flushed)));
  EXPECT_EQ(world.a.nic.counters().timeouts, retry_cnt + 1U);
  EXPECT_EQ(qb->state(), QpState::ready_to_send);
  EXPECT_TRUE(world.run());
  EXPECT_TRUE(world.at_rest());
}
INSTANTIATE_TEST_SUITE_P(all, NicTimeout,
                         testing::Values(TimeoutCase{1, 0}, TimeoutCase{8, 3}, TimeoutCase{14, 7},
                                         TimeoutCase{31, 1}),
                         [](const auto& param_info) {
                           return "timeout" + std::to_string(param_info.param.ack_timeout) + "_retries" +
                                  std::to_string(param_info.param.retry_cnt);
                         });

TEST(nic_loss, ack_timeout_0__waits_for_ever) {
  World world;
  const auto [qa, qb] = world.connect({.ack_timeout = 0});
  world.b.filter.lose = [](const Frame&) { return true; };
  world.a.post(*qa, {.id = 1, .opcode = RequestOpcode::write});
  EXPECT_TRUE(world.run()) << "no timer is pending";
  EXPECT_TRUE(world.a.sends().empty());
  EXPECT_EQ(world.a.nic.audit().sends_outstanding, 1U);
}

TEST(nic_loss, progress__renews_the_retries) {
  // Each packet is lost as often as retry_cnt allows; a hundred of them get through all the same.
  World world;
  const auto [qa, qb] = world.connect({.ack_timeout = 2, .retry_cnt = 2});
  std::uint64_t losses_left = 2;
  world.b.filter.lose = [&](const Frame&) {
    if (losses_left == 0) {
      losses_left = 2;
      return false;
    }
    --losses_left;
    return true;
  };
  for (std::uint64_t id = 0; id < 100; ++id) {
    world.a.post(*qa, {.id = id, .opcode = RequestOpcode::write});
    ASSERT_TRUE(world.run());
  }
  EXPECT_EQ(world.a.sends().size(), 100U);
  EXPECT_EQ(qa->state(), QpState::ready_to_send);
}

TEST(nic_loss, long_message__keeps_its_timer_quiet_by_intermediate_acks) {
  // 1024 packets take 342 us; with an ACK every 64 packets a timeout of 32.8 us never fires.
  World world({.memory_bytes = std::size_t{8} << 20U});
  const auto [qa, qb] = world.connect({.ack_timeout = 3});
  const Segment from = world.a.segment(0, 1024 * 4096);
  world.write(*qa, {.id = 1, .from = from});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::success)));
  EXPECT_EQ(world.a.nic.counters().timeouts, 0U);
  EXPECT_EQ(world.b.nic.counters().acks_tx, 16U);
}

}  // namespace
}  // namespace bx::sim
