// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/prng.h"

#include <bit>
#include <cmath>

#include "libbx/base/check.h"
#include "libbx/base/digest.h"

namespace bx {
namespace {

std::uint64_t splitmix64(std::uint64_t& state) noexcept {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}  // namespace

Prng::Prng(std::uint64_t seed) noexcept : seed_(seed), state_{} {
  std::uint64_t s = seed;
  for (auto& word : state_) word = splitmix64(s);
}

Prng Prng::fork(std::string_view name) const noexcept {
  Digest digest;
  digest.add(seed_);
  for (char c : name) digest.add(static_cast<unsigned char>(c));
  return Prng(digest.value());
}

std::uint64_t Prng::next() noexcept {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Prng::below(std::uint64_t bound) noexcept {
  BX_CHECK(bound > 0, "Prng::below needs a bound above zero");
  // Rejection keeps it exactly uniform: draws under `threshold` would favour the low values.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t draw = next();
    if (draw >= threshold) return draw % bound;
  }
}

std::uint64_t Prng::between(std::uint64_t low, std::uint64_t high) noexcept {
  BX_CHECK(low <= high, "Prng::between needs low <= high");
  const std::uint64_t span = high - low;
  return span == UINT64_MAX ? next() : low + below(span + 1);
}

double Prng::uniform() noexcept {
  return static_cast<double>(next() >> 11U) * 0x1.0p-53;
}

double Prng::exponential(double mean) noexcept {
  return -mean * std::log1p(-uniform());
}

}  // namespace bx
