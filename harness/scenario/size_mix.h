// SPDX-License-Identifier: GPL-2.0-only
// How long messages are: one size, a range, or a list of sizes with weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/units.h"
#include "libbx/base/prng.h"

namespace bx::harness {

struct SizeMix {
  enum class Kind : std::uint8_t {
    fixed,        // low
    uniform,      // each size in [low, high] as likely as any other
    log_uniform,  // each doubling within [low, high] as likely as any other, uniform inside it
    list,         // choices, by weight
  };
  struct Choice {
    std::uint64_t bytes = 0;
    std::uint64_t weight = 1;
  };
  Kind kind = Kind::fixed;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::vector<Choice> choices;

  static SizeMix fixed(std::uint64_t bytes) { return {Kind::fixed, bytes, bytes, {}}; }

  // Integers only: the same draws on any machine.
  [[nodiscard]] std::uint64_t draw(Prng& prng) const;
  [[nodiscard]] std::uint64_t smallest() const;
  [[nodiscard]] std::uint64_t largest() const;
  // In the notation that parse_size_mix reads; a list is written "64B*3, 1MiB*1".
  [[nodiscard]] std::string shown() const;
};

// "1MiB", "64B..4MiB" (log-uniform), "log-uniform 64B..4MiB", "uniform 64B..4MiB".
Parsed<SizeMix> parse_size_mix(std::string_view text);

}  // namespace bx::harness
