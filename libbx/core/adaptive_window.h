// SPDX-License-Identifier: BSD-3-Clause
// How large a window is to be: fixed, or after the delay of what completes. The rule is that of Swift (Kumar
// et al., SIGCOMM 2020, section 3.1), on bytes and in integers:
//
//   delay below the target   the window grows by `increase` bytes a round trip, if it is being used
//   delay at the target or   it shrinks by beta * (delay - target) / delay of itself, at most by
//   decrease_max, above                    and at most once a round trip
//
// A window that begins small first grows by what completes, so it doubles each round trip, until a delay is
// at the target.
//
// The delay of a sample is from post to completion. The target is the delay of the idle path, as the caller
// knows it (`base`, see delay_base.h), and the queueing that is accepted. With N windows over
// one bottleneck the queue settles near the target, unless N * window_min is more than the path holds: below
// that no window goes, which is why a receiver's budget (receiver_budget.h) is the better cure for incasts.
//
// WindowControl is either of the two behind one interface and one predictable branch, so a configuration
// selects it without a virtual call a message. The limit it gives is for SendWindow::set_limit(). The same
// samples give the same limits on every machine.
//
// Invariants (check_invariants): window_in_range: min <= limit <= max.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "libbx/base/check.h"
#include "libbx/base/time.h"

namespace bx::core {

struct DelaySample {
  Instant now;              // when it completed
  Duration delay;           // from post to completion
  std::uint64_t bytes;      // that completed
  std::uint64_t in_flight;  // before it completed: a window that is not used does not grow
  Duration base{};          // what of the delay the idle path takes
};

class StaticWindow {
 public:
  explicit StaticWindow(std::uint64_t limit) noexcept : limit_(limit) {}
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  void on_delay(const DelaySample& /*sample*/) noexcept {}

 private:
  std::uint64_t limit_;
};

class AdaptiveWindow {
 public:
  static constexpr std::uint32_t kUnit = 1024;  // beta and decrease_max count in 1/1024
  static constexpr std::uint64_t kLimitMax = std::uint64_t{1} << 36U;
  static constexpr std::uint64_t kIncreaseMax = std::uint64_t{1} << 24U;
  static constexpr Duration kDelayMax = std::chrono::seconds(1);  // longer samples count as this

  struct Config {
    std::uint64_t window_min = 16'384;
    std::uint64_t window_max = 1'048'576;
    std::uint64_t initial = 0;      // 0: the largest, as if the path were known to hold it
    std::uint64_t increase = 4096;  // bytes a round trip
    Duration target{25'000};
    std::uint32_t beta = 819;          // 0.8
    std::uint32_t decrease_max = 512;  // 0.5
  };

  explicit AdaptiveWindow(const Config& config) noexcept
      : config_(config),
        limit_(config.initial == 0 ? config.window_max
                                   : std::clamp(config.initial, config.window_min, config.window_max)),
        doubling_(limit_ < config.window_max) {
    BX_CHECK(
        config.window_min > 0 && config.window_min <= config.window_max && config.window_max <= kLimitMax,
        "window_in_range: the window's bounds are the wrong way round or too large");
    BX_CHECK(config.increase > 0 && config.increase <= kIncreaseMax && config.target > Duration::zero() &&
                 config.target < kDelayMax && config.beta <= kUnit && config.decrease_max < kUnit,
             "the window's steps are out of range");
  }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  void on_delay(const DelaySample& sample) noexcept {
    if (sample.delay - sample.base < config_.target) {
      if (2 * sample.in_flight >= limit_) grow(std::min(sample.bytes, limit_));
      return;
    }
    doubling_ = false;
    if (const Duration delay = std::min(sample.delay, kDelayMax); sample.now - decreased_ >= delay) {
      shrink(delay, std::min(sample.base, delay));
      decreased_ = sample.now;
    }
  }
  void check_invariants() const {
    BX_CHECK(limit_ >= config_.window_min && limit_ <= config_.window_max, "window_in_range");
  }

 private:
  // A window's worth of bytes makes one round trip. What is less than a byte is kept.
  void grow(std::uint64_t bytes) noexcept {
    if (doubling_) {
      limit_ = std::min(config_.window_max, limit_ + bytes);
      return;
    }
    part_ += config_.increase * bytes;
    limit_ = std::min(config_.window_max, limit_ + part_ / limit_);
    part_ %= limit_;
  }
  void shrink(Duration delay, Duration base) noexcept {
    const auto over = static_cast<std::uint64_t>(std::max(Duration{}, delay - base - config_.target).count());
    const std::uint64_t part = std::min<std::uint64_t>(
        config_.beta * over / static_cast<std::uint64_t>(delay.count()), config_.decrease_max);
    limit_ = std::max(config_.window_min, limit_ - limit_ * part / kUnit);
    part_ = 0;
  }

  Config config_;
  std::uint64_t limit_;
  bool doubling_;
  std::uint64_t part_ = 0;         // of the next byte, in 1/limit_
  Instant decreased_{-kDelayMax};  // when it shrank last
};

class WindowControl {
 public:
  explicit WindowControl(std::uint64_t limit) noexcept
      : adapts_(false), adaptive_({.window_min = 1, .window_max = 1}), fixed_(limit) {}
  explicit WindowControl(const AdaptiveWindow::Config& config) noexcept
      : adapts_(true), adaptive_(config), fixed_(0) {}
  [[nodiscard]] std::uint64_t limit() const noexcept { return adapts_ ? adaptive_.limit() : fixed_.limit(); }
  void on_delay(const DelaySample& sample) noexcept {
    if (adapts_) adaptive_.on_delay(sample);
  }
  // Whether samples are wanted: without, nobody needs to keep the time of a post.
  [[nodiscard]] bool adapts() const noexcept { return adapts_; }

 private:
  bool adapts_;
  AdaptiveWindow adaptive_;
  StaticWindow fixed_;
};

template <class T>
concept WindowRule = requires(T& rule, const T& constant, const DelaySample& sample) {
  { constant.limit() } -> std::same_as<std::uint64_t>;
  { rule.on_delay(sample) } -> std::same_as<void>;
};
static_assert(WindowRule<StaticWindow> && WindowRule<AdaptiveWindow> && WindowRule<WindowControl>);

}  // namespace bx::core
