// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/grant_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/property.h"

namespace bx::core {
namespace {

constexpr Amounts kWindow{{4, 1000}};
constexpr std::uint16_t kEpoch = 7;

GrantLedger fresh() {
  return {kEpoch, kWindow, kWindow};
}

std::vector<std::uint32_t> available(const GrantLedger& ledger) {
  return {ledger.available(Resource::receives), ledger.available(Resource::bounce_bytes)};
}
using Left = std::vector<std::uint32_t>;

TEST(GrantLedger, restart__voids_the_epoch_before) {
  GrantLedger ledger = fresh();
  ASSERT_TRUE(ledger.reserve({{4, 1000}}));
  const Grant old{kEpoch, 1, {{8, 2000}}};
  ledger.restart(kEpoch + 1, {{1, 10}}, {{2, 20}});
  EXPECT_EQ(available(ledger), (Left{1, 10}));
  EXPECT_EQ(ledger.on_grant(old), GrantOutcome::other_epoch);
  EXPECT_EQ(available(ledger), (Left{1, 10}));
  EXPECT_EQ(ledger.on_grant({kEpoch + 1, 1, {{2, 20}}}), GrantOutcome::applied);
  EXPECT_EQ(available(ledger), (Left{2, 20}));
}

TEST(GrantLedger, reserve__takes_all_or_nothing) {
  GrantLedger ledger = fresh();
  EXPECT_FALSE(ledger.reserve({{1, 1001}}));
  EXPECT_FALSE(ledger.reserve({{5, 1}}));
  EXPECT_EQ(available(ledger), (Left{4, 1000}));
  EXPECT_TRUE(ledger.reserve({{1, 1000}}));
  EXPECT_FALSE(ledger.reserve({{1, 1}}));
  EXPECT_TRUE(ledger.reserve({{1, 0}}));
  EXPECT_EQ(available(ledger), (Left{2, 0}));
}

TEST(GrantLedger, roll_back__gives_back_what_did_not_leave) {
  GrantLedger ledger = fresh();
  ASSERT_TRUE(ledger.reserve({{2, 300}}));
  ledger.on_sent({{1, 100}});
  ledger.roll_back({{1, 200}});
  EXPECT_EQ(available(ledger), (Left{3, 900}));
  ledger.check_invariants();
}

TEST(GrantLedger, on_grant__repeated_or_overtaken_mints_nothing) {
  GrantLedger ledger = fresh();
  ASSERT_TRUE(ledger.reserve({{4, 1000}}));
  EXPECT_EQ(ledger.on_grant({kEpoch, 2, {{6, 1200}}}), GrantOutcome::applied_after_gap);
  EXPECT_EQ(available(ledger), (Left{2, 200}));
  EXPECT_EQ(ledger.on_grant({kEpoch, 2, {{6, 1200}}}), GrantOutcome::old);
  EXPECT_EQ(ledger.on_grant({kEpoch, 1, {{5, 1100}}}), GrantOutcome::old);
  EXPECT_EQ(ledger.on_grant({kEpoch, 2, {{8, 2000}}}), GrantOutcome::old);  // the number counts
  EXPECT_EQ(available(ledger), (Left{2, 200}));
  EXPECT_EQ(ledger.on_grant({kEpoch, 3, {{8, 1200}}}), GrantOutcome::applied);
  EXPECT_EQ(available(ledger), (Left{4, 200}));
}

TEST(GrantLedger, on_grant__refuses_as_a_whole) {
  GrantLedger ledger = fresh();
  ASSERT_TRUE(ledger.reserve({{2, 500}}));
  EXPECT_EQ(ledger.on_grant({kEpoch, 1, {{5, 1501}}}), GrantOutcome::refused);  // beyond the window
  EXPECT_EQ(ledger.on_grant({kEpoch, 1, {{3, 1500}}}), GrantOutcome::refused);  // less than before
  EXPECT_EQ(available(ledger), (Left{2, 500}));
  EXPECT_EQ(ledger.on_grant({kEpoch, 1, {{5, 1500}}}), GrantOutcome::applied);  // its number was not used up
  EXPECT_EQ(available(ledger), (Left{3, 1000}));
}

TEST(GrantLedger, on_grant__another_epoch_is_void_whether_past_or_to_come) {
  GrantLedger ledger = fresh();
  ASSERT_TRUE(ledger.reserve({{1, 1}}));
  for (const int epoch : {0, kEpoch - 1, kEpoch + 1, 0xffff}) {
    EXPECT_EQ(ledger.on_grant({static_cast<std::uint16_t>(epoch), 1, {{5, 1001}}}),
              GrantOutcome::other_epoch);
  }
  EXPECT_EQ(available(ledger), (Left{3, 999}));
}

TEST(GrantLedgerDeathTest, misuse__dies) {
  GrantLedger ledger = fresh();
  ASSERT_TRUE(ledger.reserve({{1, 10}}));
  EXPECT_DEATH(ledger.roll_back({{1, 11}}), "rollback_bounded");
  ledger.on_sent({{1, 10}});
  EXPECT_DEATH(ledger.roll_back({{1, 0}}), "rollback_bounded");
  EXPECT_DEATH(GrantLedger(0, {{2, 0}}, {{1, 0}}), "grant_within_window");
  EXPECT_DEATH(GrantLedger(0, {{0, 0}}, {{0x80000000, 0}}), "grant_within_window");
}

TEST(GrantIssuer, on_used__only_what_the_peer_was_told_of) {
  GrantIssuer issuer(kEpoch, {{1, 100}}, kWindow);
  EXPECT_FALSE(issuer.on_used({{1, 101}}));
  EXPECT_TRUE(issuer.on_used({{1, 60}}));
  EXPECT_FALSE(issuer.on_used({{1, 0}}));
  issuer.promise({{2, 0}});
  EXPECT_FALSE(issuer.on_used({{1, 0}}));  // promised, but the peer cannot know
  const Grant grant = issuer.next();
  EXPECT_EQ(grant.epoch, kEpoch);
  EXPECT_EQ(grant.sequence, 1U);
  EXPECT_EQ(grant.total, (Amounts{{3, 100}}));
  EXPECT_TRUE(issuer.on_used({{2, 40}}));
  issuer.check_invariants();
}

TEST(GrantIssuer, due__for_the_scarcest_kind) {
  GrantIssuer issuer(kEpoch, kWindow, kWindow);
  ASSERT_TRUE(issuer.on_used({{1, 600}}));
  issuer.promise({{0, 400}});
  EXPECT_FALSE(issuer.due());  // the peer has 400 of 1000 left, and is owed 400
  issuer.promise({{0, 100}});
  EXPECT_TRUE(issuer.due());
  EXPECT_EQ(issuer.next().total, (Amounts{{4, 1500}}));
  EXPECT_FALSE(issuer.due());
  ASSERT_TRUE(issuer.on_used({{2, 0}}));
  issuer.promise({{1, 0}});
  EXPECT_TRUE(issuer.due());  // a quarter of the receives is left
}

TEST(GrantIssuerDeathTest, promise__beyond_the_window_dies) {
  GrantIssuer issuer(kEpoch, kWindow, kWindow);
  EXPECT_DEATH(issuer.promise({{1, 0}}), "credits_conserved");
}

// A ledger and an issuer over a network that delays, reorders, repeats and drops grants, with reconnections
// that leave old grants under way. Messages arrive in order. Both kinds wrap.
class Connection {
 public:
  explicit Connection(const Amounts& window)
      : window_(window), ledger_(epoch_, window, window), issuer_(epoch_, window, window) {}

  void send(const Amounts& need) {
    const auto before = available(ledger_);
    if (!ledger_.reserve(need)) {
      RC_ASSERT(available(ledger_) == before);
      return;
    }
    ledger_.on_sent(need);
    messages_.push_back(need);
  }
  void receive() {
    if (messages_.empty()) return;
    RC_ASSERT(issuer_.on_used(messages_.front()));  // the promise is behind every message
    held_.push_back(messages_.front());
    messages_.erase(messages_.begin());
  }
  void give_back() {
    if (held_.empty()) return;
    issuer_.promise(held_.back());
    held_.pop_back();
  }
  void grant() { grants_.push_back(issuer_.next()); }
  void hear(std::size_t which, bool again) {
    if (grants_.empty()) return;
    const auto at = grants_.begin() + static_cast<std::ptrdiff_t>(which % grants_.size());
    RC_ASSERT(ledger_.on_grant(*at) != GrantOutcome::refused);
    if (!again) grants_.erase(at);
  }
  void drop(std::size_t which) {
    if (!grants_.empty())
      grants_.erase(grants_.begin() + static_cast<std::ptrdiff_t>(which % grants_.size()));
  }
  void reconnect() {
    messages_.clear();
    held_.clear();
    ++epoch_;
    ledger_.restart(epoch_, window_, window_);
    issuer_.restart(epoch_, window_, window_);  // grants_ stay under way
  }
  void check() const {
    ledger_.check_invariants();
    issuer_.check_invariants();
    Amounts taken;  // of the window: available, under way, held
    for (std::size_t i = 0; i < kResources; ++i) {
      taken.of[i] = ledger_.available(static_cast<Resource>(i));
      for (const Amounts& message : messages_) taken.of[i] += message.of[i];
      for (const Amounts& message : held_) taken.of[i] += message.of[i];
      RC_ASSERT(taken.of[i] <= window_.of[i]);  // nothing is minted
    }
  }
  // Everything arrives, is given back and is granted once: then the whole window is there.
  void settle() {
    while (!messages_.empty()) receive();
    while (!held_.empty()) give_back();
    RC_ASSERT(ledger_.on_grant(issuer_.next()) != GrantOutcome::refused);
    RC_ASSERT(available(ledger_) == (Left{window_.of[0], window_.of[1]}));
  }

 private:
  std::uint16_t epoch_ = 0xfffe;
  Amounts window_;
  GrantLedger ledger_;
  GrantIssuer issuer_;
  std::vector<Amounts> messages_;
  std::vector<Amounts> held_;
  std::vector<Grant> grants_;
};

TEST(GrantModel, any_schedule__neither_mints_nor_loses) {
  test::expect_property([] {
    const Amounts window{{*rc::gen::inRange<std::uint32_t>(1, 9),
                          *rc::gen::element<std::uint32_t>(1, 100, kResourceWindowMax)}};
    Connection connection(window);
    const auto steps = *rc::gen::scale(6.0, rc::gen::arbitrary<std::vector<std::uint16_t>>());
    for (const std::uint16_t step : steps) {
      const std::uint32_t bytes =
          static_cast<std::uint32_t>(std::uint64_t{window.of[1]} * (step >> 8U) / 255);
      switch (step % 16) {
        case 0:
        case 1:
        case 2:
        case 3:
          connection.send({{1U + (step >> 4U) % 2U, bytes}});
          break;
        case 4:
        case 5:
        case 6:
          connection.receive();
          break;
        case 7:
        case 8:
        case 9:
          connection.give_back();
          break;
        case 10:
        case 11:
          connection.grant();
          break;
        case 12:
          connection.drop(step >> 4U);
          break;
        case 13:
          if ((step >> 4U) % 8 == 0) connection.reconnect();
          break;
        default:
          connection.hear(step >> 5U, (step & 16U) != 0);
      }
      connection.check();
    }
    connection.settle();
  });
}

}  // namespace
}  // namespace bx::core
