// SPDX-License-Identifier: GPL-2.0-only
// Which priority of an egress port sends next. Priorities of weight 0 are strict: the highest that is ready
// goes first, before all others. Those with a weight share what is left by deficit round robin (Shreedhar,
// Varghese, "Efficient fair queuing using deficit round robin", 1996): bytes in proportion to the weights,
// exact to one quantum. The smallest weight's quantum is the largest frame, so that every turn sends.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sim/model/units.h"

namespace bx::sim {

using Weights = std::array<std::uint16_t, kPriorities>;

struct SchedulerPlan {
  std::uint8_t strict = 0xff;  // bit p: priority p is strict
  std::array<std::uint64_t, kPriorities> quantum{};
};

constexpr SchedulerPlan plan_scheduler(const Weights& weights, std::uint32_t frame_bytes_max) noexcept {
  std::uint64_t least = 0;
  for (const std::uint16_t w : weights) {
    if (w != 0 && (least == 0 || w < least)) least = w;
  }
  SchedulerPlan plan;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    if (weights[p] == 0) continue;
    plan.strict = static_cast<std::uint8_t>(plan.strict & ~(1U << p));
    plan.quantum[p] = std::uint64_t{frame_bytes_max} * weights[p] / least;
  }
  return plan;
}

// Of one port.
class Scheduler {
 public:
  // `ready` (bit p: priority p could send) is not 0; front_bytes(p) is the size of p's first frame.
  template <class FrontBytes>
  std::uint8_t pick(const SchedulerPlan& plan, std::uint8_t ready, const FrontBytes& front_bytes) noexcept {
    const auto strict = static_cast<std::uint8_t>(ready & plan.strict);
    if (strict != 0) return static_cast<std::uint8_t>(std::bit_width(strict) - 1);
    for (;;) {
      if (((ready >> turn_) & 1U) != 0) {
        const std::uint64_t bytes = front_bytes(turn_);
        if (deficit_[turn_] >= bytes) {
          deficit_[turn_] -= bytes;
          return turn_;
        }
      }
      const auto after = static_cast<std::uint8_t>((turn_ + 1U) % kPriorities);
      const int skipped = std::countr_zero(std::rotr(ready, after));
      turn_ = static_cast<std::uint8_t>((after + static_cast<unsigned>(skipped)) % kPriorities);
      deficit_[turn_] += plan.quantum[turn_];
    }
  }
  // A queue that runs empty keeps nothing for later.
  void emptied(std::uint8_t priority) noexcept { deficit_[priority] = 0; }

 private:
  std::array<std::uint64_t, kPriorities> deficit_{};
  std::uint8_t turn_ = 0;
};

}  // namespace bx::sim
