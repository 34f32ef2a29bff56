// SPDX-License-Identifier: BSD-3-Clause
// The two times of a reliable connection that the standard encodes in five bits.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace bx {

// IBA 1.4, 9.7.5.2.8: the wait that an RNR NAK asks for, in units of 10 microseconds. Code 0 is the longest.
inline constexpr std::array<std::uint32_t, 32> kRnrTimer10us = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr std::chrono::microseconds rnr_wait(std::uint8_t code) noexcept {
  return std::chrono::microseconds{10 * static_cast<std::int64_t>(kRnrTimer10us[code & 31U])};
}

// IBA 1.4, 9.7.6.1.3: the local ACK timeout is 4.096 us * 2^code; code 0 waits for ever and has no time. The
// standard lets a NIC take up to four times as long; our models take exactly as long.
constexpr std::chrono::nanoseconds ack_wait(std::uint8_t code) noexcept {
  return std::chrono::nanoseconds{std::int64_t{4096} << (code & 31U)};
}

static_assert(rnr_wait(0) == std::chrono::microseconds{655'360});
static_assert(rnr_wait(1) == std::chrono::microseconds{10});
static_assert(rnr_wait(12) == std::chrono::microseconds{640});
static_assert(rnr_wait(31) == std::chrono::microseconds{491'520});
static_assert(ack_wait(14) == std::chrono::nanoseconds{67'108'864});

}  // namespace bx
