// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/send_window.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <utility>

#include "tests/support/property.h"

namespace bx::core {
namespace {

TEST(SendWindow, admits__up_to_the_limit_exactly) {
  SendWindow window(100);
  window.on_posted(60);
  EXPECT_TRUE(window.admits(40));
  EXPECT_FALSE(window.admits(41));
  window.on_posted(40);
  EXPECT_TRUE(window.admits(0));
  EXPECT_FALSE(window.admits(1));
}

TEST(SendWindow, admits__anything_when_nothing_is_in_flight) {
  SendWindow window(100);
  EXPECT_TRUE(window.admits(5000));
  window.on_posted(5000);
  EXPECT_FALSE(window.admits(1));
  EXPECT_TRUE(window.admits(0));
  window.on_retired(5000);
  EXPECT_TRUE(window.admits(5000));
}

TEST(SendWindow, admits__everything_without_a_bound) {
  SendWindow window;
  window.on_posted(std::uint64_t{1} << 63U);
  EXPECT_TRUE(window.admits((std::uint64_t{1} << 63U) - 1));
}

TEST(SendWindow, admits__keeps_the_bound_in_any_sequence) {
  test::expect_property([](const std::vector<std::uint16_t>& amounts) {
    const auto limit = *rc::gen::inRange<std::uint64_t>(1, 100'000);
    SendWindow window(limit);
    std::deque<std::uint64_t> posted;
    std::uint64_t total = 0;
    for (const std::uint64_t bytes : amounts) {
      while (!window.admits(bytes)) {
        RC_ASSERT(!posted.empty());  // else nothing could ever be sent
        window.on_retired(posted.front());
        total -= posted.front();
        posted.pop_front();
      }
      window.on_posted(bytes);
      posted.push_back(bytes);
      total += bytes;
      RC_ASSERT(window.in_flight() == total);
      RC_ASSERT((total <= limit || total == bytes));
    }
  });
}

TEST(SendWindow, set_limit__below_what_is_in_flight_closes_until_it_is_below) {
  SendWindow window(100);
  window.on_posted(80);
  window.set_limit(50);
  EXPECT_FALSE(window.admits(1));
  window.on_retired(40);
  EXPECT_TRUE(window.admits(10));
  EXPECT_FALSE(window.admits(11));
}

struct Nic {
  SendWindow session{100};
  SendWindow peer{150};
  SendWindow other_session{100};
  NicWindow nic{300, 400};
  [[nodiscard]] WindowPath path() { return {session, peer, nic}; }
  [[nodiscard]] WindowPath other() { return {other_session, peer, nic}; }
};

TEST(WindowPath, verdict__within_its_budgets_a_session_sends_up_to_the_high_mark) {
  Nic nic;
  nic.nic.on_posted(320);
  EXPECT_EQ(nic.path().verdict(80), WindowVerdict::open);
  EXPECT_EQ(nic.path().verdict(81), WindowVerdict::nic_closed);
  nic.path().on_posted(80);
  EXPECT_EQ(nic.path().verdict(1), WindowVerdict::nic_closed);
}

TEST(WindowPath, verdict__beyond_a_budget_it_sends_up_to_the_low_mark) {
  Nic nic;
  nic.path().on_posted(100);
  EXPECT_EQ(nic.path().verdict(200), WindowVerdict::lent);
  EXPECT_EQ(nic.path().verdict(201), WindowVerdict::session_closed);
  nic.path().on_posted(60);
  EXPECT_EQ(nic.other().verdict(100), WindowVerdict::lent);  // its peer's budget is used up
  EXPECT_EQ(nic.other().verdict(141), WindowVerdict::peer_closed);
  nic.path().on_retired(160);
  EXPECT_EQ(nic.path().verdict(100), WindowVerdict::open);
}

TEST(WindowPath, verdict__lends_nothing_by_default) {
  SendWindow session(100);
  SendWindow peer(1000);
  NicWindow nic;
  const WindowPath path{session, peer, nic};
  path.on_posted(100);
  EXPECT_EQ(path.verdict(1), WindowVerdict::session_closed);
}

// Nobody is above a budget unless the NIC was under the low mark; nobody at all at the high mark; and what
// is retired opens everything again.
TEST(WindowPath, any_schedule__keeps_the_marks) {
  test::expect_property([](const std::vector<std::uint16_t>& steps) {
    std::array<SendWindow, 3> sessions = {SendWindow(100), SendWindow(50), SendWindow(200)};
    SendWindow peer(220);
    NicWindow nic(150, 300);
    std::deque<std::pair<std::size_t, std::uint64_t>> flying;
    for (const std::uint16_t step : steps) {
      const std::size_t which = step % 3U;
      const std::uint64_t bytes = 1U + (step >> 4U) % 128U;
      const WindowPath path{sessions[which], peer, nic};
      const std::uint64_t before = nic.in_flight();
      const WindowVerdict verdict = path.verdict(bytes);
      if (verdict <= WindowVerdict::lent) {
        path.on_posted(bytes);
        flying.emplace_back(which, bytes);
        const bool within = sessions[which].in_flight() <= sessions[which].limit() && peer.in_flight() <= 220;
        RC_ASSERT((within || before + bytes <= 150 || sessions[which].in_flight() == bytes));
      } else {
        RC_ASSERT(!flying.empty());
        const auto [owner, size] = flying.front();
        flying.pop_front();
        WindowPath{sessions[owner], peer, nic}.on_retired(size);
      }
      nic.check_invariants();
      RC_ASSERT(nic.in_flight() <= 300U);
      RC_ASSERT(nic.in_flight() == peer.in_flight());
    }
  });
}

TEST(SendWindowDeathTest, misuse__dies) {
  SendWindow window(10);
  window.on_posted(10);
  EXPECT_DEATH(window.on_posted(1), "window_kept");
  EXPECT_DEATH(window.on_retired(11), "more bytes were retired");
  Nic nic;
  nic.path().on_posted(300);
  EXPECT_DEATH(nic.path().on_posted(1), "window_kept");
  EXPECT_DEATH(NicWindow(2, 1), "low mark");
}

}  // namespace
}  // namespace bx::core
