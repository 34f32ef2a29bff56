// SPDX-License-Identifier: GPL-2.0-only
// When the next packet of a queue pair may leave, at a rate that changes now and then. Exact in integers:
// what has been sent is a debt in bits times picoseconds a second, which the rate pays off, so no packet is
// early by a rounding and none of the remainder is lost.
//
// A packet that leaves late (the port was busy, or paused) lets the next one leave earlier by as much, but by
// no more than its own time: the rate holds over a busy transmitter, and no burst grows out of an idle one.
#pragma once

#include <cstdint>

#include "libbx/base/check.h"
#include "sim/model/units.h"

namespace bx::sim {

class Pacer {
 public:
  // The queue pair sends when it can.
  void release() noexcept {
    limited_ = false;
    debt_ = 0;
    ready_at_ = {};
  }
  // From `at` on; what was sent before is paid off at the old rate up to then. At least 1 bit/s.
  void set_rate(Picoseconds at, std::uint64_t bits_per_second) noexcept {
    BX_CHECK(bits_per_second > 0, "a rate limit is more than zero");
    settle(at);
    limited_ = true;
    rate_ = bits_per_second;
    ready_at_ = since_ + time_for(debt_);
  }

  [[nodiscard]] bool limited() const noexcept { return limited_; }
  [[nodiscard]] std::uint64_t rate() const noexcept { return rate_; }  // while limited
  // Not before this; in the past if there is no debt.
  [[nodiscard]] Picoseconds ready_at() const noexcept { return ready_at_; }

  void sent(Picoseconds now, std::uint32_t wire_bytes) noexcept {
    if (!limited_) return;
    const std::uint64_t packet = wire_bytes * kByte;
    const std::uint64_t total = debt_ + packet;
    const Picoseconds elapsed = now - since_;
    // Later than the packet's own time: nothing is made up for.
    debt_ =
        elapsed >= Picoseconds{static_cast<std::int64_t>(total / rate_)} ? packet : total - paid_in(elapsed);
    since_ = now;
    ready_at_ = now + time_for(debt_);
  }

 private:
  static constexpr std::uint64_t kByte = 8 * 1'000'000'000'000ULL;

  [[nodiscard]] std::uint64_t paid_in(Picoseconds elapsed) const noexcept {
    return static_cast<std::uint64_t>(elapsed.count()) * rate_;
  }
  [[nodiscard]] Picoseconds time_for(std::uint64_t debt) const noexcept {
    return Picoseconds{static_cast<std::int64_t>((debt + rate_ - 1) / rate_)};
  }
  void settle(Picoseconds at) noexcept {
    if (limited_) debt_ = at >= ready_at_ ? 0 : debt_ - paid_in(at - since_);
    since_ = at;
  }

  std::uint64_t debt_ = 0;  // of what was sent up to since_
  std::uint64_t rate_ = 0;
  Picoseconds since_{};
  Picoseconds ready_at_{};
  bool limited_ = false;
};

}  // namespace bx::sim
