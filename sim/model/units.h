// SPDX-License-Identifier: GPL-2.0-only
// Simulated time is integer picoseconds; no floating point touches it.
#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>

namespace bx::sim {

__extension__ using Wide = unsigned __int128;  // holds the product of two 64-bit numbers

using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A link or engine rate. Serialisation carries the remainder of the division, so that a million packets end
// exactly where the closed form says (see Serialiser).
struct Rate {
  std::uint64_t bits_per_second = 0;
  friend bool operator==(const Rate&, const Rate&) = default;
};

// Turns byte counts into picoseconds at a rate without drift: the remainder of each division is carried to
// the next.
class Serialiser {
 public:
  explicit Serialiser(Rate rate = {}) noexcept
      : per_byte_(divides(rate) ? kBitPicoseconds / rate.bits_per_second : 0), rate_(rate) {}
  [[nodiscard]] Rate rate() const noexcept { return rate_; }
  Picoseconds time_for(std::uint64_t bytes) noexcept {
    if (per_byte_ != 0) return Picoseconds{static_cast<std::int64_t>(bytes * per_byte_)};
    // Up to a mebibyte the numerator fits 64 bits, and a frame is far smaller than that.
    if (bytes <= kNarrowBytes && rate_.bits_per_second <= kNarrowRate) {
      const std::uint64_t scaled = bytes * kBitPicoseconds + remainder_;
      remainder_ = scaled % rate_.bits_per_second;
      return Picoseconds{static_cast<std::int64_t>(scaled / rate_.bits_per_second)};
    }
    const Wide scaled = static_cast<Wide>(bytes) * kBitPicoseconds + remainder_;
    remainder_ = static_cast<std::uint64_t>(scaled % rate_.bits_per_second);
    return Picoseconds{static_cast<std::int64_t>(scaled / rate_.bits_per_second)};
  }

 private:
  static constexpr std::uint64_t kBitPicoseconds = 8 * 1'000'000'000'000ULL;  // bits a byte, ps a second
  static constexpr std::uint64_t kNarrowBytes = 1U << 20U;
  static constexpr std::uint64_t kNarrowRate = 1ULL << 62U;  // bounds the remainder
  static_assert(kNarrowBytes * kBitPicoseconds < UINT64_MAX - kNarrowRate);
  [[nodiscard]] static bool divides(Rate rate) noexcept {
    return rate.bits_per_second != 0 && kBitPicoseconds % rate.bits_per_second == 0;
  }
  std::uint64_t per_byte_;  // ps; 0: not a whole number, as at few rates of real links
  std::uint64_t remainder_ = 0;
  Rate rate_;
};

// Bytes on the wire around the payload of a RoCEv2 RC packet: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH
// 12, ICRC 4, FCS 4, inter-frame gap 12.
inline constexpr std::uint32_t kRoceOverheadBytes = 82;
// A minimum Ethernet frame of 64 bytes with preamble and gap; what a PFC frame occupies.
inline constexpr std::uint32_t kMinimumWireBytes = 84;
// The largest RoCEv2 frame: path MTU 4096, and the longest extended headers (AtomicETH, 28 bytes).
inline constexpr std::uint32_t kFrameBytesMax = 4096 + kRoceOverheadBytes + 28;
inline constexpr int kPriorities = 8;
inline constexpr int kDscps = 64;

}  // namespace bx::sim
