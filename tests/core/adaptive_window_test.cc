// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/adaptive_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "libbx/core/send_window.h"
#include "tests/support/property.h"

namespace bx::core {
namespace {

constexpr AdaptiveWindow::Config kConfig{.window_min = 1000,
                                         .window_max = 100'000,
                                         .increase = 1000,
                                         .target = Duration{10'000},
                                         .beta = 1024,
                                         .decrease_max = 512};

DelaySample sample(std::int64_t now, std::int64_t delay, std::uint64_t bytes, std::uint64_t in_flight) {
  return {Instant{Duration{now}}, Duration{delay}, bytes, in_flight};
}

TEST(AdaptiveWindow, limit__begins_with_the_largest) {
  const AdaptiveWindow window(kConfig);
  EXPECT_EQ(window.limit(), 100'000U);
}

AdaptiveWindow::Config beginning_with(std::uint64_t initial) {
  AdaptiveWindow::Config config = kConfig;
  config.initial = initial;
  return config;
}

TEST(AdaptiveWindow, limit__begins_where_it_is_told_within_its_bounds) {
  EXPECT_EQ(AdaptiveWindow(beginning_with(5000)).limit(), 5000U);
  EXPECT_EQ(AdaptiveWindow(beginning_with(1)).limit(), 1000U);
  EXPECT_EQ(AdaptiveWindow(beginning_with(1'000'000)).limit(), 100'000U);
}

TEST(AdaptiveWindow, on_delay__doubles_from_small_until_a_delay_is_at_the_target) {
  AdaptiveWindow window(beginning_with(2000));
  window.on_delay(sample(1000, 9'999, 2000, 2000));
  EXPECT_EQ(window.limit(), 4000U);
  window.on_delay(sample(2000, 9'999, 4000, 1999));  // it is not being used
  EXPECT_EQ(window.limit(), 4000U);
  window.on_delay(sample(3000, 9'999, 4000, 4000));
  EXPECT_EQ(window.limit(), 8000U);
  window.on_delay(sample(100'000, 10'000, 8000, 8000));
  EXPECT_EQ(window.limit(), 8000U);  // at the target: as large as it should be
  window.on_delay(sample(200'000, 9'999, 8000, 8000));
  EXPECT_EQ(window.limit(), 9000U);
}

TEST(AdaptiveWindow, on_delay__counts_what_is_beyond_the_base) {
  AdaptiveWindow window(kConfig);
  DelaySample far = sample(1'000'000, 89'999, 1, 1);
  far.base = Duration{80'000};
  window.on_delay(far);
  EXPECT_EQ(window.limit(), 100'000U);
  far.delay = Duration{100'000};  // a tenth of it is too much
  window.on_delay(far);
  EXPECT_EQ(window.limit(), 100'000U - 100'000U * 102 / 1024);
}

TEST(AdaptiveWindow, on_delay__shrinks_by_the_excess_at_most_by_half) {
  AdaptiveWindow window(kConfig);
  window.on_delay(sample(100'000, 12'500, 1, 1));  // a fifth of the delay is too much
  EXPECT_EQ(window.limit(), 100'000U - 100'000U * 204 / 1024);
  AdaptiveWindow halved(kConfig);
  halved.on_delay(sample(100'000, 1'000'000, 1, 1));
  EXPECT_EQ(halved.limit(), 50'000U);
}

TEST(AdaptiveWindow, on_delay__shrinks_once_a_round_trip) {
  AdaptiveWindow window(kConfig);
  window.on_delay(sample(100'000, 40'000, 1, 1));
  EXPECT_EQ(window.limit(), 50'000U);
  window.on_delay(sample(139'999, 40'000, 1, 1));
  EXPECT_EQ(window.limit(), 50'000U);
  window.on_delay(sample(140'000, 40'000, 1, 1));
  EXPECT_EQ(window.limit(), 25'000U);
}

TEST(AdaptiveWindow, on_delay__never_shrinks_below_the_least) {
  AdaptiveWindow window(kConfig);
  for (int i = 1; i < 100; ++i) window.on_delay(sample(i * 2'000'000, 1'000'000, 1, 1));
  EXPECT_EQ(window.limit(), 1000U);
}

TEST(AdaptiveWindow, on_delay__grows_by_its_step_a_window_of_bytes) {
  AdaptiveWindow window(kConfig);
  window.on_delay(sample(100'000, 1'000'000, 1, 1));
  ASSERT_EQ(window.limit(), 50'000U);
  for (int i = 0; i < 500; ++i) window.on_delay(sample(200'000 + i, 5000, 100, 50'000));
  EXPECT_NEAR(static_cast<double>(window.limit()), 51'000, 15);
  for (int i = 0; i < 100'000; ++i) window.on_delay(sample(300'000 + i, 5000, 1000, 100'000));
  EXPECT_EQ(window.limit(), 100'000U);
}

TEST(AdaptiveWindow, on_delay__does_not_grow_what_is_not_used) {
  AdaptiveWindow window(kConfig);
  window.on_delay(sample(100'000, 1'000'000, 1, 1));
  for (int i = 0; i < 500; ++i) window.on_delay(sample(200'000 + i, 5000, 1000, 24'999));
  EXPECT_EQ(window.limit(), 50'000U);
}

TEST(AdaptiveWindow, any_samples__keep_it_in_range) {
  test::expect_property([] {
    AdaptiveWindow::Config config = kConfig;
    config.window_max = *rc::gen::element<std::uint64_t>(1000, 5000, AdaptiveWindow::kLimitMax);
    config.increase = *rc::gen::element<std::uint64_t>(1, 1000, AdaptiveWindow::kIncreaseMax);
    AdaptiveWindow window(config);
    std::int64_t now = 0;
    const auto steps = *rc::gen::arbitrary<std::vector<std::uint32_t>>();
    for (const std::uint32_t step : steps) {
      now += step % 65'536;
      const std::uint64_t before = window.limit();
      const std::int64_t delay = step % 3 == 0 ? step : step % 20'000;
      window.on_delay(sample(now, delay, step, step));
      window.check_invariants();
      if (delay < 10'000) RC_ASSERT(window.limit() >= before);
      if (delay >= 10'000)
        RC_ASSERT((window.limit() <= before && window.limit() >= std::min(before, before / 2)));
    }
  });
}

TEST(WindowControl, limit__is_fixed_or_adapts) {
  WindowControl fixed(12'345);
  WindowControl adaptive(kConfig);
  EXPECT_FALSE(fixed.adapts());
  EXPECT_TRUE(adaptive.adapts());
  for (WindowControl* control : {&fixed, &adaptive}) control->on_delay(sample(100'000, 1'000'000, 1, 1));
  EXPECT_EQ(fixed.limit(), 12'345U);
  EXPECT_EQ(adaptive.limit(), 50'000U);
  EXPECT_EQ(WindowControl(SendWindow::kUnbounded).limit(), SendWindow::kUnbounded);
}

// N senders of 1000-byte messages through one link that takes a nanosecond a byte, over a path of 40 us.
// Not a number of whole messages: no window may rest because the delay is just the target.
constexpr std::int64_t kTarget = 80'500;
AdaptiveWindow::Config bottleneck_config() {
  AdaptiveWindow::Config config = kConfig;
  config.target = Duration{kTarget};
  return config;
}

class Bottleneck {
 public:
  explicit Bottleneck(std::size_t senders)
      : senders_(senders, Sender{AdaptiveWindow(bottleneck_config()), SendWindow(), 0}) {}

  // So many of the senders have something to send.
  void set_active(std::size_t active) { active_ = active; }

  void run(std::int64_t until) {
    fill();
    while (now_ < until) {
      const Message message = queue_.front();
      queue_.pop_front();
      now_ = std::max(now_, message.posted + kPath) + kBytes;
      busy_ += kBytes;
      delay_max_ = std::max(delay_max_, now_ - message.posted);
      Sender& sender = senders_[message.sender];
      sender.control.on_delay(sample(now_, now_ - message.posted, kBytes, sender.window.in_flight()));
      sender.window.set_limit(sender.control.limit());
      sender.window.on_retired(kBytes);
      sender.sent += kBytes;
      fill();
    }
  }
  void forget() {
    busy_ = delay_max_ = 0;
    began_ = now_;
    for (Sender& sender : senders_) sender.sent = 0;
  }
  [[nodiscard]] double utilisation() const {
    return static_cast<double>(busy_) / static_cast<double>(now_ - began_);
  }
  [[nodiscard]] std::int64_t delay_max() const { return delay_max_; }
  // Jain's index: 1 if all sent the same.
  [[nodiscard]] double fairness() const {
    double sum = 0;
    double squares = 0;
    for (const Sender& sender : senders_) {
      const auto sent = static_cast<double>(sender.sent);
      sum += sent;
      squares += sent * sent;
    }
    return sum * sum / (static_cast<double>(senders_.size()) * squares);
  }

 private:
  static constexpr std::int64_t kPath = 40'000;
  static constexpr std::int64_t kBytes = 1000;
  struct Sender {
    AdaptiveWindow control;
    SendWindow window;
    std::int64_t sent;
  };
  struct Message {
    std::size_t sender;
    std::int64_t posted;
  };
  void fill() {
    for (std::size_t i = 0; i < active_; ++i) {
      senders_[i].window.set_limit(senders_[i].control.limit());
      while (senders_[i].window.admits(kBytes)) {
        senders_[i].window.on_posted(kBytes);
        queue_.push_back({i, now_});
      }
    }
  }

  std::vector<Sender> senders_;
  std::size_t active_ = 1;
  std::deque<Message> queue_;
  std::int64_t now_ = 0;
  std::int64_t began_ = 0;
  std::int64_t busy_ = 0;
  std::int64_t delay_max_ = 0;
};

// The first sender has the link for itself; then the others join it, each with a window that would fill the
// path with theirs: the link stays full, the queue settles near the target, and all get the same.
TEST(AdaptiveWindow, closed_loop__fills_the_link_and_keeps_the_queue_near_the_target) {
  for (const std::size_t senders : {1U, 2U, 4U, 8U}) {
    Bottleneck bottleneck(senders);
    bottleneck.run(10'000'000);
    bottleneck.set_active(senders);
    bottleneck.run(60'000'000);
    bottleneck.forget();
    bottleneck.run(160'000'000);
    EXPECT_GT(bottleneck.utilisation(), 0.95) << senders;
    EXPECT_LT(bottleneck.delay_max(), kTarget + 2000 * static_cast<std::int64_t>(senders) + 2000) << senders;
    EXPECT_GT(bottleneck.fairness(), 0.95) << senders;
  }
}

// What no delay can cure: the least windows together are more than the path holds.
TEST(AdaptiveWindow, closed_loop__of_too_many_stays_at_the_least_window) {
  Bottleneck bottleneck(128);
  bottleneck.set_active(128);
  bottleneck.run(60'000'000);
  bottleneck.forget();
  bottleneck.run(90'000'000);
  EXPECT_GT(bottleneck.utilisation(), 0.99);
  EXPECT_GE(bottleneck.delay_max(), 127'000);
  EXPECT_LE(bottleneck.delay_max(), 129'000);
}

TEST(AdaptiveWindowDeathTest, misuse__dies) {
  AdaptiveWindow::Config config = kConfig;
  config.window_min = config.window_max + 1;
  EXPECT_DEATH(AdaptiveWindow{config}, "window_in_range");
}

}  // namespace
}  // namespace bx::core
