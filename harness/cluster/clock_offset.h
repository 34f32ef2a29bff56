// SPDX-License-Identifier: GPL-2.0-only
// How far an agent's clock is ahead of the coordinator's, from round trips: the answer was made at some
// moment between question and return, so the middle is wrong by half the round trip at most (Cristian,
// "Probabilistic clock synchronization", 1989). The shortest round trip bounds the error best.
#pragma once

#include <cstdint>

namespace bx::harness {

class ClockOffset {
 public:
  static constexpr std::uint32_t kRoundTrips = 16;

  // The coordinator's clock when the question left and when the answer came, the agent's when it answered;
  // nanoseconds. What was answered before it was asked is left out.
  void add(std::int64_t asked, std::int64_t answered, std::int64_t returned) noexcept {
    if (returned < asked) return;
    ++count_;
    const std::int64_t round_trip = returned - asked;
    if (count_ > 1 && round_trip >= round_trip_) return;
    round_trip_ = round_trip;
    offset_ = answered - (asked + round_trip / 2);
  }
  void restart() noexcept { *this = {}; }

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] bool known() const noexcept { return count_ >= kRoundTrips; }
  [[nodiscard]] std::int64_t error_max() const noexcept { return (round_trip_ + 1) / 2; }
  [[nodiscard]] std::int64_t to_agent(std::int64_t coordinator) const noexcept {
    return coordinator + offset_;
  }
  [[nodiscard]] std::int64_t to_coordinator(std::int64_t agent) const noexcept { return agent - offset_; }

 private:
  std::uint32_t count_ = 0;
  std::int64_t round_trip_ = 0;
  std::int64_t offset_ = 0;
};

}  // namespace bx::harness
