// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/deficit_round_robin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <vector>

#include "tests/support/property.h"

namespace bx::core {
namespace {

constexpr std::uint32_t kQuantum = 100;

struct Session : Flow {
  using Flow::Flow;
  std::int64_t sent = 0;
};
using Scheduler = DeficitRoundRobin<Session>;

// Makes flows and takes them off at the end; a deque, because a flow cannot move.
struct Bench {
  explicit Bench(std::vector<std::uint32_t> weights) : scheduler(kQuantum) {
    for (const std::uint32_t weight : weights) sessions.emplace_back(FlowClass::data, weight);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    for (Session& session : sessions) scheduler.leave(session);
  }
  void join_all() {
    for (Session& session : sessions) scheduler.join(session);
  }
  Session* send(std::uint32_t bytes) {
    Session* next = scheduler.next();
    if (next == nullptr) return nullptr;
    scheduler.on_sent(*next, bytes);
    next->sent += bytes;
    return next;
  }
  [[nodiscard]] std::int64_t total() const {
    return std::accumulate(sessions.begin(), sessions.end(), std::int64_t{0},
                           [](std::int64_t sum, const Session& session) { return sum + session.sent; });
  }
  Scheduler scheduler;
  std::deque<Session> sessions;
};

TEST(DeficitRoundRobin, next__of_nobody_is_nobody) {
  Bench bench({1, 1});
  EXPECT_EQ(bench.scheduler.next(), nullptr);
  EXPECT_TRUE(bench.scheduler.idle());
}

TEST(DeficitRoundRobin, next__keeps_the_turn_while_the_allowance_lasts) {
  Bench bench({1, 1});
  bench.join_all();
  EXPECT_EQ(bench.send(60), &bench.sessions[0]);
  EXPECT_EQ(bench.send(60), &bench.sessions[0]);  // 20 too much: a debt
  EXPECT_EQ(bench.send(100), &bench.sessions[1]);
  EXPECT_EQ(bench.send(79), &bench.sessions[0]);  // 80 are left of its second allowance
  EXPECT_EQ(bench.send(1), &bench.sessions[0]);
  EXPECT_EQ(bench.scheduler.next(), &bench.sessions[1]);
  bench.scheduler.check_invariants();
}

TEST(DeficitRoundRobin, next__asked_twice_gives_one_allowance) {
  Bench bench({1});
  bench.join_all();
  EXPECT_EQ(bench.scheduler.next(), bench.scheduler.next());
  EXPECT_EQ(bench.sessions[0].balance(), kQuantum);
}

TEST(DeficitRoundRobin, next__control_goes_first_and_takes_turns) {
  Bench bench({1});
  Session grants(FlowClass::control);
  Session ends(FlowClass::control);
  bench.join_all();
  ASSERT_EQ(bench.scheduler.next(), &bench.sessions[0]);
  bench.scheduler.join(grants);
  bench.scheduler.join(ends);
  EXPECT_EQ(bench.send(5000), &grants);  // the size does not matter here
  EXPECT_EQ(bench.send(1), &ends);
  EXPECT_EQ(bench.send(1), &grants);
  bench.scheduler.leave(grants);
  EXPECT_EQ(bench.send(1), &ends);
  bench.scheduler.leave(ends);
  EXPECT_EQ(bench.send(1), &bench.sessions[0]);
  EXPECT_EQ(bench.sessions[0].balance(), kQuantum - 1);
}

TEST(DeficitRoundRobin, join__twice_is_once) {
  Bench bench({1, 1});
  bench.join_all();
  bench.join_all();
  bench.scheduler.leave(bench.sessions[0]);
  EXPECT_EQ(bench.send(100), &bench.sessions[1]);
  EXPECT_EQ(bench.send(100), &bench.sessions[1]);
}

TEST(DeficitRoundRobin, leave__loses_what_is_left_of_the_allowance) {
  Bench bench({1, 1});
  bench.join_all();
  bench.send(10);
  bench.scheduler.leave(bench.sessions[0]);
  EXPECT_EQ(bench.sessions[0].balance(), 0);
  bench.scheduler.join(bench.sessions[0]);
  EXPECT_EQ(bench.send(100), &bench.sessions[1]);
  bench.send(1);
  EXPECT_EQ(bench.sessions[0].balance(), kQuantum - 1);  // not 90 more
}

TEST(DeficitRoundRobin, leave__keeps_the_debt) {
  Bench bench({1});
  bench.join_all();
  bench.send(99);
  bench.send(100);
  bench.scheduler.leave(bench.sessions[0]);
  EXPECT_EQ(bench.sessions[0].balance(), -99);
}

// One session runs empty after each of its turns, having taken as much in it as it can; the other never does.
TEST(DeficitRoundRobin, leave__gains_nothing_by_running_empty) {
  Bench bench({1, 1});
  Session& sly = bench.sessions[0];
  bench.join_all();
  for (int i = 0; i < 10'000; ++i) {
    Session* next = bench.scheduler.next();
    const bool last = next == &sly && sly.balance() < kQuantum;
    bench.send(next == &sly && !last
                   ? std::min<std::uint32_t>(
                         99, static_cast<std::uint32_t>(std::max<std::int64_t>(sly.balance() - 1, 1)))
                   : 100);
    if (last) {
      bench.scheduler.leave(sly);
      bench.scheduler.join(sly);
    }
  }
  EXPECT_LE(sly.sent, bench.sessions[1].sent + 2 * kQuantum);
}

// The bound that the header states, after every message, for sessions that always have something to send.
TEST(DeficitRoundRobin, any_sizes__share_by_weight_within_an_allowance_and_a_message) {
  test::expect_property([] {
    const auto weights = *rc::gen::resize(8, rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint32_t>>(
                                                 rc::gen::inRange<std::uint32_t>(1, 9))));
    const auto sizes = *rc::gen::scale(10.0, rc::gen::container<std::vector<std::uint32_t>>(
                                                 rc::gen::inRange<std::uint32_t>(0, kQuantum + 1)));
    Bench bench(weights);
    bench.join_all();
    const std::int64_t weights_sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    for (const std::uint32_t bytes : sizes) {
      RC_ASSERT(bench.send(bytes) != nullptr);
      bench.scheduler.check_invariants();
      const std::int64_t total = bench.total();
      for (const Session& session : bench.sessions) {
        // Times the sum of the weights, so that nothing is rounded.
        const std::int64_t above = session.sent * weights_sum - total * session.weight();
        const std::int64_t allowance = std::int64_t{kQuantum} * session.weight();
        RC_ASSERT(above <= (allowance + kQuantum) * weights_sum);
        RC_ASSERT(above >= -(allowance + std::int64_t{kQuantum} * session.weight()) * weights_sum);
      }
    }
  });
}

// With sessions that come and go: whoever stays waits no longer than one turn of each other one.
TEST(DeficitRoundRobin, any_churn__starves_nobody) {
  test::expect_property([] {
    const auto steps = *rc::gen::scale(10.0, rc::gen::arbitrary<std::vector<std::uint16_t>>());
    Bench bench({1, 2, 3, 1});
    const Session& patient = bench.sessions[0];
    bench.join_all();
    std::int64_t others = 0;
    for (const std::uint16_t step : steps) {
      Session& any = bench.sessions[1 + (step >> 2U) % 3];
      switch (step & 3U) {
        case 0:
          bench.scheduler.leave(any);
          break;
        case 1:
          bench.scheduler.join(any);
          break;
        default: {
          const std::uint32_t bytes = 1 + (step >> 4U) % kQuantum;
          others = bench.send(bytes) == &patient ? 0 : others + bytes;
        }
      }
      bench.scheduler.check_invariants();
      RC_ASSERT(others < (1 + 2 + 3) * kQuantum + 3 * kQuantum);
    }
  });
}

// Every sequence of six steps of two sessions and control, against a list that says the same at length.
struct Reference {
  std::vector<std::size_t> ring;
  std::array<int, 2> balance{};
  bool control = false;
  static constexpr int kUnit = 2;  // quantum of the small scope
  static constexpr std::array<int, 2> kWeights = {1, 2};

  void join(std::size_t i) {
    if (std::find(ring.begin(), ring.end(), i) == ring.end()) ring.push_back(i);
  }
  void leave(std::size_t i) {
    std::erase(ring, i);
    balance[i] = std::min(balance[i], 0);
  }
  int next() {  // 2: control, -1: nobody
    if (control) return 2;
    if (ring.empty()) return -1;
    if (balance[ring[0]] <= 0) balance[ring[0]] += kUnit * kWeights[ring[0]];
    return static_cast<int>(ring[0]);
  }
  void sent(int bytes) {
    const std::size_t i = ring[0];
    balance[i] -= bytes;
    if (balance[i] > 0) return;
    ring.erase(ring.begin());
    ring.push_back(i);
  }
};

void check_against_reference(unsigned sequence, unsigned steps) {
  DeficitRoundRobin<Session> scheduler(Reference::kUnit);
  std::array<Session, 3> flows = {Session(FlowClass::data, 1), Session(FlowClass::data, 2),
                                  Session(FlowClass::control)};
  Reference reference;
  for (unsigned step = 0; step < steps; ++step, sequence /= 8) {
    const unsigned what = sequence % 8;
    if (what < 2) {
      scheduler.join(flows[what]);
      reference.join(what);
    } else if (what < 4) {
      scheduler.leave(flows[what - 2]);
      reference.leave(what - 2);
    } else if (what == 4) {
      reference.control ? scheduler.leave(flows[2]) : scheduler.join(flows[2]);
      reference.control = !reference.control;
    } else {
      const int expected = reference.next();
      Session* next = scheduler.next();
      ASSERT_EQ(next, expected < 0 ? nullptr : &flows[static_cast<std::size_t>(expected)]);
      if (next == nullptr) continue;
      scheduler.on_sent(*next, what - 5);
      if (expected != 2) reference.sent(static_cast<int>(what) - 5);
    }
    scheduler.check_invariants();
    for (std::size_t i = 0; i < 2; ++i) ASSERT_EQ(flows[i].balance(), reference.balance[i]);
  }
  for (Session& flow : flows) scheduler.leave(flow);
}

TEST(DeficitRoundRobin, every_short_sequence__does_what_the_reference_does) {
  constexpr unsigned kSteps = 6;
  for (unsigned sequence = 0; sequence < 1U << (3 * kSteps); ++sequence) {
    ASSERT_NO_FATAL_FAILURE(check_against_reference(sequence, kSteps)) << "sequence " << sequence;
  }
}

TEST(DeficitRoundRobinDeathTest, misuse__dies) {
  Bench bench({1, 1});
  bench.join_all();
  ASSERT_EQ(bench.scheduler.next(), &bench.sessions[0]);
  EXPECT_DEATH(bench.scheduler.on_sent(bench.sessions[1], 1), "out of its turn");
  EXPECT_DEATH(bench.scheduler.on_sent(bench.sessions[0], kQuantum + 1), "deficit_bounded");
  EXPECT_DEATH(Session(FlowClass::data, 0), "weight");
}

}  // namespace
}  // namespace bx::core
