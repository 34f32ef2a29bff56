// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/receive_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/support/property.h"

namespace bx::core {
namespace {

constexpr ReceiveShares::Limits kLimits{.receives = 12, .peers_max = 3, .floor = 1};
constexpr std::uint32_t kGuaranteed = 4;
constexpr std::uint32_t kMost = 8;

// Three peers of one pool, all open.
struct Pool {
  explicit Pool(const ReceiveShares::Limits& limits = kLimits, std::uint32_t guaranteed = kGuaranteed,
                std::uint32_t most = kMost)
      : shares(limits) {
    for (ReceiveShare& peer : peers) BX_CHECK(shares.open(peer, guaranteed, most), "the peers fit");
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (ReceiveShare& peer : peers) shares.satisfied(peer);
  }
  void use(std::size_t peer, std::uint32_t count = 1) {
    for (std::uint32_t i = 0; i < count; ++i) shares.on_received(peers[peer]);
  }
  void give_back(std::size_t peer, std::uint32_t count = 1) {
    for (std::uint32_t i = 0; i < count; ++i) shares.on_returned(peers[peer]);
  }
  // What the counters should be, from the peers alone.
  void check() const {
    shares.check_invariants();
    std::uint32_t used = 0;
    std::uint32_t promised = 0;
    for (const ReceiveShare& peer : peers) {
      used += peer.used();
      promised += peer.promised();
    }
    ASSERT_EQ(shares.free() + used, kReceives);
    ASSERT_EQ(shares.promised(), promised);
  }
  std::uint32_t kReceives = kLimits.receives;
  ReceiveShares shares;
  std::array<ReceiveShare, 3> peers;
};

TEST(ReceiveShares, open__refuses_what_cannot_be_guaranteed) {
  ReceiveShares shares(kLimits);
  std::array<ReceiveShare, 4> peers;
  EXPECT_FALSE(shares.open(peers[0], 11, 12));  // two floors are to come
  EXPECT_TRUE(shares.open(peers[0], 10, 12));
  EXPECT_FALSE(shares.open(peers[1], 2, 2));
  EXPECT_TRUE(shares.open(peers[1], 1, 2));
  EXPECT_TRUE(shares.open(peers[2], 1, 2));
  EXPECT_FALSE(shares.open(peers[3], 1, 2));  // one too many
  shares.check_invariants();
}

TEST(ReceiveShares, close__gives_back_what_was_promised_and_waits_for_what_is_held) {
  Pool pool;
  EXPECT_EQ(pool.shares.promise(pool.peers[0], 4), 4U);
  pool.use(0, 2);
  pool.shares.close(pool.peers[0]);
  EXPECT_EQ(pool.peers[0].state(), ReceiveShare::State::closing);
  EXPECT_EQ(pool.shares.free(), 10U);
  pool.check();
  ReceiveShare next;
  EXPECT_FALSE(pool.shares.open(next, 4, 4));
  pool.give_back(0, 2);
  EXPECT_EQ(pool.peers[0].state(), ReceiveShare::State::closed);
  EXPECT_TRUE(pool.shares.open(next, 4, 4));
  EXPECT_EQ(pool.shares.promise(next, 4), 4U);
  pool.shares.check_invariants();
}

TEST(ReceiveShares, promise__lends_what_the_others_do_not_use_but_their_floors) {
  Pool pool;
  EXPECT_EQ(pool.shares.promise(pool.peers[0], 100), kMost);
  EXPECT_EQ(pool.peers[0].borrowed(), kMost - kGuaranteed);
  EXPECT_EQ(pool.shares.promise(pool.peers[1], 100), 3U);  // one is left: the floor of the third
  EXPECT_TRUE(pool.peers[1].wanting());
  EXPECT_EQ(pool.shares.promise(pool.peers[2], 1), 1U);
  EXPECT_EQ(pool.shares.free(), 0U);
  EXPECT_FALSE(pool.peers[2].wanting());  // it got what it asked for
  pool.check();
}

TEST(ReceiveShares, promise__renews_no_loan_while_somebody_wants_its_share) {
  Pool pool;
  ASSERT_EQ(pool.shares.promise(pool.peers[0], 8), 8U);
  ASSERT_EQ(pool.shares.promise(pool.peers[1], 4), 3U);
  pool.use(0);
  pool.give_back(0);
  EXPECT_EQ(pool.shares.promise(pool.peers[0], 1), 0U);  // the loan has ended
  ASSERT_EQ(pool.shares.first_wanting(), &pool.peers[1]);
  EXPECT_EQ(pool.shares.promise(pool.peers[1], 1), 1U);
  EXPECT_EQ(pool.shares.first_wanting(), nullptr);
  pool.check();
}

// One borrower lets go of its loan and takes another, the other of its share and takes that: in between, what
// came back is the first in line's.
TEST(ReceiveShares, promise__nobody_takes_its_share_before_the_first_in_line) {
  Pool pool({.receives = 6, .peers_max = 3, .floor = 1}, 2, 4);
  pool.kReceives = 6;
  ASSERT_EQ(pool.shares.promise(pool.peers[1], 3), 3U);
  ASSERT_EQ(pool.shares.promise(pool.peers[2], 2), 2U);
  ASSERT_EQ(pool.shares.promise(pool.peers[0], 2), 1U);
  for (const std::size_t other : {1U, 2U}) {
    pool.use(other);
    pool.give_back(other);
  }
  EXPECT_EQ(pool.shares.promise(pool.peers[1], 1), 1U);
  EXPECT_EQ(pool.shares.promise(pool.peers[2], 1), 0U);
  EXPECT_EQ(pool.shares.promise(pool.peers[0], 1), 1U);
  pool.check();
}

TEST(ReceiveShares, promise__counts_what_is_held_as_used) {
  Pool pool;
  ASSERT_EQ(pool.shares.promise(pool.peers[0], 8), 8U);
  pool.use(0, 8);  // and the application keeps them
  EXPECT_EQ(pool.shares.promise(pool.peers[0], 1), 0U);
  EXPECT_EQ(pool.shares.promise(pool.peers[1], 4), 3U);
  pool.check();
}

// However long the line is.
TEST(ReceiveShares, on_renewed__keeps_the_receive_from_the_pool) {
  Pool pool;
  ASSERT_EQ(pool.shares.promise(pool.peers[0], 8), 8U);
  ASSERT_EQ(pool.shares.promise(pool.peers[1], 4), 3U);  // and wants
  pool.use(0, 8);
  pool.shares.on_renewed(pool.peers[0]);
  EXPECT_EQ(pool.peers[0].promised(), 1U);
  EXPECT_EQ(pool.peers[0].held(), 7U);
  pool.check();
  pool.give_back(0);
  EXPECT_EQ(pool.shares.promise(pool.peers[0], 1), 0U);
  EXPECT_EQ(pool.shares.promise(pool.peers[1], 1), 1U);
  pool.check();
}

TEST(ReceiveShares, satisfied__lets_the_share_be_lent_again) {
  Pool pool;
  ASSERT_EQ(pool.shares.promise(pool.peers[0], 8), 8U);
  ASSERT_EQ(pool.shares.promise(pool.peers[1], 4), 3U);
  pool.use(0);
  pool.give_back(0);
  ASSERT_EQ(pool.shares.promise(pool.peers[0], 1), 0U);
  pool.shares.satisfied(pool.peers[1]);
  EXPECT_EQ(pool.shares.promise(pool.peers[0], 1), 1U);
  pool.check();
}

TEST(ReceiveShares, first_wanting__is_the_longest_waiting) {
  Pool pool({.receives = 12, .peers_max = 3, .floor = 0}, 4, 12);
  ASSERT_EQ(pool.shares.promise(pool.peers[2], 12), 12U);
  EXPECT_EQ(pool.shares.promise(pool.peers[1], 1), 0U);
  EXPECT_EQ(pool.shares.promise(pool.peers[0], 1), 0U);
  EXPECT_EQ(pool.shares.promise(pool.peers[1], 1), 0U);  // keeps its place
  EXPECT_EQ(pool.shares.first_wanting(), &pool.peers[1]);
  pool.check();
}

// One step of the small scope: what a peer can do.
void random_step(Pool& pool, unsigned what, std::size_t peer) {
  ReceiveShare& share = pool.peers[peer];
  switch (what) {
    case 0:
      (void)pool.shares.promise(share, 1);
      break;
    case 1:
      (void)pool.shares.promise(share, 3);
      break;
    case 2:
      if (share.promised() > 0) pool.use(peer);
      break;
    default:
      if (share.held() > 0) pool.give_back(peer);
  }
}

// However the others borrowed, and though they ask for more before anybody else each time: when they have
// used up what they were lent, a peer that wants its share has it.
void check_attrition(Pool& pool, std::uint32_t guaranteed) {
  for (std::size_t lender = 0; lender < pool.peers.size(); ++lender) {
    ReceiveShare& share = pool.peers[lender];
    if (share.used() >= guaranteed) continue;
    (void)pool.shares.promise(share, guaranteed - share.used());
    for (std::size_t other = 0; other < pool.peers.size(); ++other) {
      if (other == lender) continue;
      while (pool.peers[other].promised() > 0) pool.use(other);
      while (pool.peers[other].held() > 0) {
        pool.give_back(other);
        (void)pool.shares.promise(pool.peers[other], 1);
        if (share.used() < guaranteed) (void)pool.shares.promise(share, guaranteed - share.used());
      }
      ASSERT_NO_FATAL_FAILURE(pool.check());
    }
    ASSERT_GE(share.used(), guaranteed) << "lender " << lender;
  }
}

TEST(ReceiveShares, every_short_sequence__keeps_its_invariants_and_returns_every_share) {
  constexpr unsigned kSteps = 5;
  constexpr unsigned kKinds = 12;  // four steps of three peers
  constexpr ReceiveShares::Limits kSmall{.receives = 6, .peers_max = 3, .floor = 1};
  unsigned sequences = 1;
  for (unsigned i = 0; i < kSteps; ++i) sequences *= kKinds;
  for (unsigned sequence = 0; sequence < sequences; ++sequence) {
    Pool pool(kSmall, 2, 4);
    pool.kReceives = kSmall.receives;
    for (unsigned i = 0, rest = sequence; i < kSteps; ++i, rest /= kKinds) {
      random_step(pool, rest % 4, rest / 4 % 3);
      pool.shares.check_invariants();
    }
    ASSERT_NO_FATAL_FAILURE(pool.check()) << "sequence " << sequence;
    ASSERT_NO_FATAL_FAILURE(check_attrition(pool, 2)) << "sequence " << sequence;
  }
}

TEST(ReceiveShares, any_schedule__keeps_its_invariants_and_returns_every_share) {
  test::expect_property([] {
    Pool pool;
    const auto steps = *rc::gen::scale(10.0, rc::gen::arbitrary<std::vector<std::uint8_t>>());
    for (const std::uint8_t step : steps) {
      random_step(pool, step % 4U, (step >> 2U) % 3U);
      pool.shares.check_invariants();
      for (const ReceiveShare& peer : pool.peers) {
        RC_ASSERT(peer.used() <= kMost);
        // The floor is there at once.
        RC_ASSERT((peer.used() >= kLimits.floor || pool.shares.free() > 0));
      }
    }
    check_attrition(pool, kGuaranteed);
    RC_ASSERT(!testing::Test::HasFatalFailure());
  });
}

// A peer that takes nothing and returns nothing takes nothing from the others but what it was lent.
TEST(ReceiveShares, slow_peer__costs_the_others_no_more_than_its_loan) {
  Pool pool;
  ASSERT_EQ(pool.shares.promise(pool.peers[0], 100), kMost);
  pool.use(0, kMost);
  const std::uint32_t others =
      pool.shares.promise(pool.peers[1], 100) + pool.shares.promise(pool.peers[2], 100);
  EXPECT_EQ(others, kLimits.receives - kMost);
  EXPECT_GE(pool.peers[1].promised(), kLimits.floor);
  EXPECT_GE(pool.peers[2].promised(), kLimits.floor);
}

TEST(ReceiveSharesDeathTest, misuse__dies) {
  Pool pool;
  EXPECT_DEATH(pool.shares.on_received(pool.peers[0]), "shares_promised");
  EXPECT_DEATH(pool.shares.on_returned(pool.peers[0]), "does not hold");
  ReceiveShare closed;
  EXPECT_DEATH((void)pool.shares.promise(closed, 1), "to nobody");
  EXPECT_DEATH(ReceiveShares({.receives = 3, .peers_max = 2, .floor = 2}), "floor_kept");
}

}  // namespace
}  // namespace bx::core
