// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/receiver_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "tests/support/property.h"

namespace bx::core {
namespace {

constexpr ReceiverBudget::Limits kLimits{.budget = 1000, .share_min = 100};

// A receiver with peers; what arrives does so in the order in which it was asked for, unless a test says
// else.
struct Receiver {
  struct Chunk {
    std::size_t peer;
    std::uint64_t bytes;
  };
  explicit Receiver(const std::vector<std::uint32_t>& weights, const ReceiverBudget::Limits& limits = kLimits)
      : budget(limits) {
    for (const std::uint32_t weight : weights) peers.emplace_back(weight);
    taken.resize(weights.size());
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver() {
    for (BudgetShare& peer : peers) budget.release(peer);
  }
  void claim_all() {
    for (BudgetShare& peer : peers) budget.claim(peer);
  }
  BudgetVerdict take(std::size_t peer, std::uint64_t bytes) {
    const BudgetVerdict verdict = budget.take(peers[peer], bytes);
    if (verdict == BudgetVerdict::taken) {
      coming.push_back({peer, bytes});
      taken[peer] += bytes;
    }
    return verdict;
  }
  void arrive(std::size_t which = 0) {
    const auto at = coming.begin() + static_cast<std::ptrdiff_t>(which % coming.size());
    budget.on_arrived(peers[at->peer], at->bytes);
    coming.erase(at);
  }
  ReceiverBudget budget;
  std::deque<BudgetShare> peers;
  std::deque<Chunk> coming;
  std::vector<std::uint64_t> taken;
};

TEST(ReceiverBudget, set_budget__lower_than_what_is_on_its_way_lets_nobody_join) {
  Receiver receiver({1, 1});
  receiver.claim_all();
  ASSERT_EQ(receiver.take(0, 500), BudgetVerdict::taken);
  ASSERT_EQ(receiver.take(1, 500), BudgetVerdict::taken);
  receiver.budget.set_budget(600);
  receiver.budget.check_invariants();
  receiver.arrive();
  EXPECT_EQ(receiver.take(0, 200), BudgetVerdict::budget_used);
  EXPECT_EQ(receiver.take(0, 100), BudgetVerdict::taken);
  receiver.arrive();
  receiver.budget.set_budget(2000);
  EXPECT_EQ(receiver.take(1, 1000), BudgetVerdict::taken);
  receiver.budget.check_invariants();
}

TEST(ReceiverBudget, step_aside__leaves_the_line_to_the_next) {
  Receiver receiver({1, 1, 1});
  receiver.claim_all();
  ASSERT_EQ(receiver.take(0, 900), BudgetVerdict::taken);
  ASSERT_EQ(receiver.take(1, 200), BudgetVerdict::budget_used);
  ASSERT_EQ(receiver.take(2, 100), BudgetVerdict::budget_used);  // behind it
  receiver.budget.step_aside(receiver.peers[1]);
  EXPECT_FALSE(receiver.peers[1].waiting());
  EXPECT_EQ(receiver.take(2, 100), BudgetVerdict::taken);
}

TEST(ReceiverBudget, take_undivided__asks_for_no_share_and_counts) {
  Receiver receiver({1, 1});
  receiver.budget.take_undivided(receiver.peers[0], 900);
  EXPECT_FALSE(receiver.budget.admits(101));
  EXPECT_TRUE(receiver.budget.admits(100));
  EXPECT_EQ(receiver.peers[0].outstanding(), 900U);
  receiver.budget.check_invariants();
  receiver.budget.on_arrived(receiver.peers[0], 900);
  EXPECT_EQ(receiver.budget.outstanding(), 0U);
}

TEST(ReceiverBudget, set_weight__counts_from_the_next_claim) {
  Receiver receiver({1, 1});
  receiver.peers[0].set_weight(3);
  receiver.claim_all();
  EXPECT_EQ(receiver.budget.share(receiver.peers[0]), 750U);
  EXPECT_EQ(receiver.budget.share(receiver.peers[1]), 250U);
}

TEST(ReceiverBudget, share__is_by_weight_among_those_that_claim) {
  Receiver receiver({1, 3, 1});
  receiver.budget.claim(receiver.peers[0]);
  EXPECT_EQ(receiver.budget.share(receiver.peers[0]), 1000U);
  receiver.budget.claim(receiver.peers[1]);
  receiver.budget.claim(receiver.peers[1]);
  EXPECT_EQ(receiver.budget.share(receiver.peers[0]), 250U);
  EXPECT_EQ(receiver.budget.share(receiver.peers[1]), 750U);
  EXPECT_EQ(receiver.budget.share(receiver.peers[2]), 0U);
  receiver.budget.release(receiver.peers[1]);
  EXPECT_EQ(receiver.budget.share(receiver.peers[0]), 1000U);
  receiver.budget.check_invariants();
}

TEST(ReceiverBudget, share__is_never_less_than_the_least) {
  Receiver receiver(std::vector<std::uint32_t>(50, 1));
  receiver.claim_all();
  EXPECT_EQ(receiver.budget.share(receiver.peers[7]), 100U);
}

TEST(ReceiverBudget, take__up_to_the_share) {
  Receiver receiver({1, 1});
  receiver.claim_all();
  EXPECT_EQ(receiver.take(0, 400), BudgetVerdict::taken);
  EXPECT_EQ(receiver.take(0, 101), BudgetVerdict::share_used);
  EXPECT_EQ(receiver.take(0, 100), BudgetVerdict::taken);
  EXPECT_EQ(receiver.take(1, 500), BudgetVerdict::taken);
  receiver.budget.check_invariants();
}

TEST(ReceiverBudget, take__any_amount_when_nothing_is_on_its_way) {
  Receiver receiver({1, 1});
  receiver.claim_all();
  EXPECT_EQ(receiver.take(0, 5000), BudgetVerdict::taken);
  EXPECT_EQ(receiver.take(1, 1), BudgetVerdict::budget_used);
  receiver.budget.check_invariants();
  receiver.arrive();
  EXPECT_EQ(receiver.take(1, 1), BudgetVerdict::taken);
}

TEST(ReceiverBudget, take__after_shares_shrank_waits_for_attrition) {
  Receiver receiver({1, 1});
  receiver.budget.claim(receiver.peers[0]);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(receiver.take(0, 100), BudgetVerdict::taken);
  receiver.budget.claim(receiver.peers[1]);
  EXPECT_EQ(receiver.take(1, 100), BudgetVerdict::budget_used);
  for (int i = 0; i < 5; ++i) {
    receiver.arrive();
    EXPECT_EQ(receiver.take(0, 100), BudgetVerdict::share_used) << i;  // 900 to 500 are on their way
    EXPECT_EQ(receiver.take(1, 100), BudgetVerdict::taken) << i;
  }
  EXPECT_EQ(receiver.peers[0].outstanding(), 500U);
}

TEST(ReceiverBudget, take__nobody_overtakes_the_line) {
  Receiver receiver({1, 1, 1}, {.budget = 200, .share_min = 200});
  receiver.claim_all();
  ASSERT_EQ(receiver.take(0, 100), BudgetVerdict::taken);
  ASSERT_EQ(receiver.take(0, 100), BudgetVerdict::taken);
  EXPECT_EQ(receiver.take(1, 150), BudgetVerdict::budget_used);
  receiver.arrive();
  EXPECT_EQ(receiver.take(2, 10), BudgetVerdict::budget_used);  // there is room, and a line
  EXPECT_EQ(receiver.budget.next_waiting(), &receiver.peers[1]);
  receiver.arrive();
  EXPECT_EQ(receiver.take(1, 150), BudgetVerdict::taken);
  EXPECT_EQ(receiver.budget.next_waiting(), &receiver.peers[2]);
  EXPECT_EQ(receiver.take(2, 10), BudgetVerdict::taken);
  EXPECT_EQ(receiver.budget.next_waiting(), nullptr);
}

// Who waits and then may not take for its own sake does not hold up the line.
TEST(ReceiverBudget, take__leaves_the_line_when_the_share_shrank) {
  Receiver receiver({1, 1, 1}, {.budget = 200, .share_min = 100});
  receiver.budget.claim(receiver.peers[0]);
  ASSERT_EQ(receiver.take(0, 150), BudgetVerdict::taken);
  receiver.budget.claim(receiver.peers[1]);
  ASSERT_EQ(receiver.take(1, 40), BudgetVerdict::taken);
  ASSERT_EQ(receiver.take(1, 60), BudgetVerdict::budget_used);
  receiver.budget.claim(receiver.peers[2]);
  ASSERT_EQ(receiver.take(2, 100), BudgetVerdict::budget_used);
  EXPECT_EQ(receiver.take(1, 61), BudgetVerdict::share_used);
  EXPECT_EQ(receiver.budget.next_waiting(), &receiver.peers[2]);
}

TEST(ReceiverBudget, release__leaves_the_line_and_what_is_on_its_way_still_counts) {
  Receiver receiver({1, 1});
  receiver.claim_all();
  ASSERT_EQ(receiver.take(0, 500), BudgetVerdict::taken);
  receiver.budget.release(receiver.peers[0]);
  EXPECT_EQ(receiver.budget.outstanding(), 500U);
  EXPECT_EQ(receiver.take(1, 500), BudgetVerdict::taken);
  EXPECT_EQ(receiver.take(1, 1), BudgetVerdict::budget_used);
  receiver.budget.release(receiver.peers[1]);
  EXPECT_EQ(receiver.budget.next_waiting(), nullptr);
}

// Peers that always have something to send, each tried only when the machine says so: bytes go by weight
// where shares bind, and everybody moves where the least share does.
TEST(ReceiverBudget, standing_claims__go_by_weight) {
  Receiver receiver({1, 2, 3, 4});
  receiver.claim_all();
  for (int round = 0; round < 10'000; ++round) {
    for (std::size_t i = 0; i < receiver.peers.size(); ++i) {
      while (receiver.take(i, 10) == BudgetVerdict::taken) {
      }
    }
    // A round trip: all that was asked for comes.
    while (!receiver.coming.empty()) receiver.arrive();
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(receiver.taken[i], (i + 1) * receiver.taken[0]);
  }
}

TEST(ReceiverBudget, many_claims__starve_nobody) {
  constexpr std::size_t kPeers = 64;
  Receiver receiver(std::vector<std::uint32_t>(kPeers, 1), {.budget = 500, .share_min = 100});
  receiver.claim_all();
  for (std::size_t i = 0; i < kPeers; ++i) (void)receiver.take(i, 100);
  for (int step = 0; step < 6400; ++step) {
    const std::size_t peer = receiver.coming.front().peer;
    receiver.arrive();
    (void)receiver.take(peer, 100);  // whoever has just been served tries first
    for (BudgetShare* next = receiver.budget.next_waiting(); next != nullptr;
         next = receiver.budget.next_waiting()) {
      const auto which = static_cast<std::size_t>(
          std::find_if(receiver.peers.begin(), receiver.peers.end(), [&](auto& p) { return &p == next; }) -
          receiver.peers.begin());
      if (receiver.take(which, 100) == BudgetVerdict::budget_used) break;
    }
    receiver.budget.check_invariants();
  }
  const auto [least, most] = std::minmax_element(receiver.taken.begin(), receiver.taken.end());
  EXPECT_LE(*most - *least, 200U);
}

TEST(ReceiverBudget, any_schedule__keeps_the_budget_and_always_moves) {
  test::expect_property([] {
    Receiver receiver({1, 2, 1, 5});
    const auto steps = *rc::gen::scale(6.0, rc::gen::arbitrary<std::vector<std::uint16_t>>());
    std::uint64_t largest = 0;
    for (const std::uint16_t step : steps) {
      const std::size_t peer = step % 4U;
      const std::uint64_t bytes = (step >> 6U) % 400U;
      switch ((step >> 2U) % 4U) {
        case 0:
          receiver.budget.claim(receiver.peers[peer]);
          break;
        case 1:
          if (receiver.peers[peer].claims() && (step >> 4U) % 4U == 0)
            receiver.budget.release(receiver.peers[peer]);
          else if (!receiver.coming.empty())
            receiver.arrive(step >> 4U);
          break;
        default:
          if (!receiver.peers[peer].claims()) break;
          if (receiver.take(peer, bytes) == BudgetVerdict::taken) {
            largest = std::max(largest, bytes);
          } else {
            RC_ASSERT((receiver.budget.outstanding() > 0U || receiver.budget.next_waiting() != nullptr));
            RC_ASSERT((receiver.budget.outstanding() > 0U ||
                       receiver.budget.next_waiting() != &receiver.peers[peer]));
          }
      }
      receiver.budget.check_invariants();
      RC_ASSERT(receiver.budget.outstanding() <= kLimits.budget);
    }
    // With nothing on its way the first in line can always go.
    while (!receiver.coming.empty()) receiver.arrive();
    while (BudgetShare* next = receiver.budget.next_waiting()) {
      RC_ASSERT(receiver.budget.take(*next, 350) == BudgetVerdict::taken);
      receiver.budget.on_arrived(*next, 350);
    }
  });
}

TEST(ReceiverBudgetDeathTest, misuse__dies) {
  Receiver receiver({1});
  EXPECT_DEATH((void)receiver.take(0, 1), "claims_counted");
  receiver.claim_all();
  EXPECT_DEATH(receiver.budget.on_arrived(receiver.peers[0], 1), "budget_kept");
  EXPECT_DEATH(ReceiverBudget({.budget = 10, .share_min = 11}), "budget_kept");
}

}  // namespace
}  // namespace bx::core
