// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/credits.h"

#include <gtest/gtest.h>

namespace bx::core {
namespace {

constexpr std::uint32_t kNearWrap = 0xffffffff - 3;

class Ledger : public ::testing::TestWithParam<std::uint32_t> {};  // where counting begins
class Issuer : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Ledger, consume__uses_up_what_was_granted) {
  CreditLedger ledger(4, GetParam());
  for (std::uint32_t left = 4; left > 0; --left) {
    EXPECT_EQ(ledger.available(), left);
    ledger.consume();
  }
  EXPECT_EQ(ledger.available(), 0U);
}

TEST_P(Ledger, on_grant__counts_the_latest_total_only) {
  const std::uint32_t start = GetParam();
  CreditLedger ledger(4, start);
  for (int i = 0; i < 3; ++i) ledger.consume();
  EXPECT_TRUE(ledger.on_grant(start + 6, 4));
  EXPECT_EQ(ledger.available(), 3U);
  EXPECT_TRUE(ledger.on_grant(start + 6, 4));  // repeated
  EXPECT_TRUE(ledger.on_grant(start + 5, 4));  // overtaken by the one before
  EXPECT_EQ(ledger.available(), 3U);
  EXPECT_TRUE(ledger.on_grant(start + 7, 4));
  EXPECT_EQ(ledger.available(), 4U);
}

TEST_P(Ledger, on_grant__refuses_more_than_the_window) {
  const std::uint32_t start = GetParam();
  CreditLedger ledger(4, start);
  EXPECT_FALSE(ledger.on_grant(start + 5, 4));
  EXPECT_EQ(ledger.available(), 4U);
  ledger.consume();
  EXPECT_TRUE(ledger.on_grant(start + 5, 4));
  EXPECT_FALSE(ledger.on_grant(start + 0x7fffffff, 4));
  EXPECT_EQ(ledger.available(), 4U);
}

TEST_P(Ledger, ask__soft_at_half_and_hard_at_a_quarter_once_each) {
  const std::uint32_t start = GetParam();
  CreditLedger ledger(16, start);
  for (std::uint32_t left = 15; left > 0; --left) {
    ledger.consume();
    const CreditRequest expected = left == 8   ? CreditRequest::soft
                                   : left == 4 ? CreditRequest::hard
                                               : CreditRequest::none;
    EXPECT_EQ(ledger.ask(16), expected) << left;
  }
  EXPECT_TRUE(ledger.on_grant(start + 16, 16));  // tells nothing new
  EXPECT_EQ(ledger.ask(16), CreditRequest::none);
  EXPECT_TRUE(ledger.on_grant(start + 18, 16));
  EXPECT_EQ(ledger.ask(16), CreditRequest::hard);  // it was not enough
  EXPECT_TRUE(ledger.on_grant(start + 23, 16));
  EXPECT_EQ(ledger.ask(16), CreditRequest::soft);
}

// Whoever has jumped over the half asks for no less.
TEST(CreditLedger, ask__is_hard_with_the_reserved_credit_only) {
  CreditLedger ledger(2);
  EXPECT_EQ(ledger.ask(2), CreditRequest::none);
  ledger.consume();
  EXPECT_EQ(ledger.ask(2), CreditRequest::hard);
}

INSTANTIATE_TEST_SUITE_P(Counting, Ledger, ::testing::Values(0U, kNearWrap, 0x7ffffffeU));

TEST(CreditLedgerDeathTest, consume__without_a_credit_dies) {
  CreditLedger none;
  EXPECT_DEATH(none.consume(), "without a credit");
}

TEST_P(Issuer, on_received__only_as_often_as_was_told) {
  CreditIssuer issuer(2, GetParam());
  EXPECT_TRUE(issuer.on_received());
  EXPECT_TRUE(issuer.on_received());
  EXPECT_FALSE(issuer.on_received());
  issuer.on_reposted();
  EXPECT_FALSE(issuer.on_received());  // posted, but the peer cannot know
  (void)issuer.notice();
  EXPECT_TRUE(issuer.on_received());
  issuer.check_invariants();
}

TEST_P(Issuer, unposted__counts_what_is_owed) {
  CreditIssuer issuer(3, GetParam());
  EXPECT_EQ(issuer.unposted(), 0U);
  EXPECT_TRUE(issuer.on_received());
  EXPECT_TRUE(issuer.on_received());
  EXPECT_EQ(issuer.unposted(), 2U);
  issuer.on_reposted();
  EXPECT_EQ(issuer.unposted(), 1U);
}

TEST_P(Issuer, notice__tells_totals) {
  const std::uint32_t start = GetParam();
  CreditIssuer issuer(2, start);
  EXPECT_TRUE(issuer.on_received());
  issuer.on_reposted();
  EXPECT_TRUE(issuer.on_pure_grant());
  const CreditIssuer::Notice notice = issuer.notice();
  EXPECT_EQ(notice.credit_grant, start + 3);
  EXPECT_EQ(notice.control_ack, static_cast<std::uint16_t>(start + 1));
}

TEST_P(Issuer, on_pure_grant__at_most_two_unacknowledged) {
  CreditIssuer issuer(8, GetParam());
  EXPECT_TRUE(issuer.on_pure_grant());
  EXPECT_TRUE(issuer.on_pure_grant());
  (void)issuer.notice();
  EXPECT_TRUE(issuer.on_pure_grant());
  EXPECT_TRUE(issuer.on_pure_grant());
  EXPECT_FALSE(issuer.on_pure_grant());
}

TEST_P(Issuer, pure_grant_due__at_half_the_window) {
  CreditIssuer issuer(16, GetParam());
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(issuer.on_received());
    issuer.on_reposted();
    EXPECT_FALSE(issuer.pure_grant_due()) << i;
  }
  EXPECT_TRUE(issuer.on_received());
  issuer.on_reposted();
  EXPECT_TRUE(issuer.pure_grant_due());
  (void)issuer.notice();  // a message carried it
  EXPECT_FALSE(issuer.pure_grant_due());
}

TEST_P(Issuer, pure_grant_due__when_the_peer_has_run_low) {
  CreditIssuer issuer(16, GetParam());
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(issuer.on_received());
  EXPECT_FALSE(issuer.pure_grant_due());  // nothing to give
  issuer.on_reposted();
  EXPECT_TRUE(issuer.pure_grant_due());  // it has a quarter left
}

// A peer with the reserved credit only can send no request, however small the window.
TEST_P(Issuer, pure_grant_due__when_the_peer_has_the_reserved_credit_only) {
  CreditIssuer issuer(3, GetParam());
  EXPECT_TRUE(issuer.on_received());
  EXPECT_TRUE(issuer.on_received());
  EXPECT_FALSE(issuer.pure_grant_due());
  issuer.on_reposted();
  EXPECT_TRUE(issuer.pure_grant_due());
}

// A peer that has a part of its window only is not told of every receive that comes back to it, as it would
// be if it were always low.
TEST_P(Issuer, pure_grant_due__goes_by_what_the_peer_has_of_its_window) {
  CreditIssuer issuer(64, GetParam(), 4);
  EXPECT_EQ(issuer.posted(), 4U);
  EXPECT_TRUE(issuer.on_received());
  issuer.on_reposted();
  EXPECT_FALSE(issuer.pure_grant_due());
  EXPECT_TRUE(issuer.on_received());
  issuer.on_reposted();
  EXPECT_TRUE(issuer.pure_grant_due());
  (void)issuer.notice();
  issuer.on_request(CreditRequest::hard);
  EXPECT_FALSE(issuer.pure_grant_due());  // nothing to give
  issuer.on_reposted();
  EXPECT_TRUE(issuer.pure_grant_due());
  issuer.check_invariants();
}

TEST_P(Issuer, keep_to_initial__is_a_window_of_as_many) {
  CreditIssuer issuer(64, GetParam(), 4);
  issuer.keep_to_initial();
  EXPECT_EQ(issuer.window(), 4U);
  EXPECT_EQ(issuer.unposted(), 0U);
  EXPECT_TRUE(issuer.on_received());
  EXPECT_EQ(issuer.unposted(), 1U);
  issuer.on_reposted();
  issuer.check_invariants();
}

TEST_P(Issuer, pure_grant__two_at_a_time_until_acknowledged) {
  const auto start = static_cast<std::uint16_t>(GetParam());
  CreditIssuer issuer(2, GetParam());
  const auto owe_one = [&] {
    EXPECT_TRUE(issuer.on_received());
    issuer.on_reposted();
  };
  for (int i = 0; i < 2; ++i) {
    owe_one();
    ASSERT_TRUE(issuer.pure_grant_due());
    (void)issuer.pure_grant();
  }
  owe_one();
  EXPECT_FALSE(issuer.pure_grant_due());
  EXPECT_TRUE(issuer.on_control_ack(static_cast<std::uint16_t>(start + 1)));
  EXPECT_TRUE(issuer.pure_grant_due());
  issuer.check_invariants();
}

TEST_P(Issuer, on_control_ack__takes_old_ones_and_refuses_those_never_sent) {
  const auto start = static_cast<std::uint16_t>(GetParam());
  const auto ack = [&](int n) { return static_cast<std::uint16_t>(start + n); };
  CreditIssuer issuer(2, GetParam());
  EXPECT_TRUE(issuer.on_control_ack(ack(0)));
  EXPECT_FALSE(issuer.on_control_ack(ack(1)));
  EXPECT_TRUE(issuer.on_received());
  issuer.on_reposted();
  (void)issuer.pure_grant();
  EXPECT_TRUE(issuer.on_control_ack(ack(1)));
  EXPECT_TRUE(issuer.on_control_ack(ack(0)));  // an older message, overtaken
  EXPECT_TRUE(issuer.on_control_ack(ack(1)));
  EXPECT_FALSE(issuer.on_control_ack(ack(2)));
  EXPECT_FALSE(issuer.on_control_ack(ack(-20'000)));
  issuer.check_invariants();
}

TEST_P(Issuer, on_request__hard_makes_one_credit_due_at_once) {
  CreditIssuer issuer(16, GetParam());
  EXPECT_TRUE(issuer.on_received());
  issuer.on_request(CreditRequest::hard);
  EXPECT_FALSE(issuer.pure_grant_due());  // nothing to give yet
  (void)issuer.notice();                  // and nothing was said
  issuer.on_reposted();
  EXPECT_TRUE(issuer.pure_grant_due());
  (void)issuer.pure_grant();
  EXPECT_TRUE(issuer.on_received());
  issuer.on_reposted();
  EXPECT_FALSE(issuer.pure_grant_due());  // answered
}

TEST_P(Issuer, on_request__soft_makes_a_quarter_due) {
  CreditIssuer issuer(16, GetParam());
  issuer.on_request(CreditRequest::hard);
  issuer.on_request(CreditRequest::soft);  // takes nothing back
  EXPECT_TRUE(issuer.on_received());
  issuer.on_reposted();
  EXPECT_TRUE(issuer.pure_grant_due());
  (void)issuer.notice();
  issuer.on_request(CreditRequest::soft);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(issuer.on_received());
    issuer.on_reposted();
    EXPECT_FALSE(issuer.pure_grant_due()) << i;
  }
  EXPECT_TRUE(issuer.on_received());
  issuer.on_reposted();
  EXPECT_TRUE(issuer.pure_grant_due());
}

TEST_P(Issuer, initial__less_than_the_window_grows_by_posting) {
  const std::uint32_t start = GetParam();
  CreditIssuer issuer(4, start, 1);
  EXPECT_EQ(issuer.posted(), 1U);
  EXPECT_TRUE(issuer.on_received());
  EXPECT_FALSE(issuer.on_received());
  for (int i = 0; i < 4; ++i) issuer.on_reposted();
  EXPECT_EQ(issuer.notice().credit_grant, start + 5);
  issuer.check_invariants();
}

INSTANTIATE_TEST_SUITE_P(Counting, Issuer, ::testing::Values(0U, kNearWrap, 0xfffeU, 0xffffU));

TEST(CreditIssuerDeathTest, on_reposted__beyond_the_window_dies) {
  CreditIssuer issuer(2);
  EXPECT_DEATH(issuer.on_reposted(), "more receives were posted");
}

// A grant that is written but has not left pays for nothing: whoever uses it has guessed.
TEST(CreditIssuer, notice_ahead__may_be_used_once_it_has_left) {
  CreditIssuer issuer(2);
  ASSERT_TRUE(issuer.on_received() && issuer.on_received());
  issuer.on_reposted();
  EXPECT_EQ(issuer.notice_ahead().credit_grant, 3U);
  EXPECT_FALSE(issuer.on_received());
  issuer.on_left();
  issuer.check_invariants();
  EXPECT_TRUE(issuer.on_received());
  EXPECT_FALSE(issuer.on_received());
}

// A side whose messages overtake its pure grants: the peer must not be told of credits by a message while it
// may not have the pure grants sent before it, or it spends them without acknowledging those.
TEST(CreditIssuer, unordered__messages_tell_no_more_until_pure_grants_are_acknowledged) {
  CreditIssuer issuer(4);
  issuer.set_unordered();
  CreditLedger peer(4);
  const auto spend = [&](int messages) {
    for (int i = 0; i < messages; ++i) {
      peer.consume();
      ASSERT_TRUE(issuer.on_received());
      issuer.on_reposted();
    }
  };
  spend(1);
  EXPECT_EQ(issuer.notice().credit_grant, 5U);  // nothing is unacknowledged
  ASSERT_TRUE(peer.on_grant(5, 4));
  spend(3);
  ASSERT_TRUE(issuer.pure_grant_due());
  const auto first = issuer.pure_grant();
  EXPECT_EQ(first.credit_grant, 8U);
  const auto overtaking = issuer.notice();
  EXPECT_EQ(overtaking.credit_grant, 5U);
  ASSERT_TRUE(peer.on_grant(overtaking.credit_grant, 4));
  EXPECT_EQ(peer.available(), 1U);  // what it spends beyond, it has the pure grant for
  ASSERT_TRUE(peer.on_grant(first.credit_grant, 4));
  spend(2);
  ASSERT_TRUE(issuer.on_control_ack(1));
  EXPECT_EQ(issuer.notice().credit_grant, 10U);
  issuer.check_invariants();
}

}  // namespace
}  // namespace bx::core
