// SPDX-License-Identifier: BSD-3-Clause
// Seeded randomness that gives the same numbers everywhere. One root seed a run; fork("name") gives each
// component a stream of its own, so that a new consumer does not shift the numbers of the others.
// xoshiro256** (Blackman, Vigna: "Scrambled linear pseudorandom number generators", 2021), seeded by
// splitmix64. The distributions are ours because those of the standard library differ between
// implementations.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bx {

class Prng {
 public:
  explicit Prng(std::uint64_t seed) noexcept;

  // A stream that depends on this generator's seed and on `name` only, not on what was drawn so far.
  [[nodiscard]] Prng fork(std::string_view name) const noexcept;

  std::uint64_t next() noexcept;                                          // uniform over 64 bits
  std::uint64_t below(std::uint64_t bound) noexcept;                      // uniform in [0, bound); bound > 0
  std::uint64_t between(std::uint64_t low, std::uint64_t high) noexcept;  // uniform in [low, high]
  double uniform() noexcept;                                              // uniform in [0, 1), 53 bits
  bool chance(double probability) noexcept { return uniform() < probability; }
  double exponential(double mean) noexcept;  // mean > 0

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_;
};

}  // namespace bx
