// SPDX-License-Identifier: BSD-3-Clause
// The waiting times after an RNR NAK by their 5-bit code (IBA 1.4, table 45). Code 0 is the longest.
#pragma once

#include <array>
#include <cstdint>

#include "libbx/base/time.h"

namespace bx::loopback {

inline constexpr std::array<std::uint32_t, 32> kRnrTimer10us = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr Duration rnr_delay(std::uint8_t code) noexcept {
  return Duration{static_cast<std::int64_t>(kRnrTimer10us[code & 31U]) * 10'000};
}

static_assert(rnr_delay(0) == std::chrono::microseconds{655'360});
static_assert(rnr_delay(1) == std::chrono::microseconds{10});
static_assert(rnr_delay(12) == std::chrono::microseconds{640});
static_assert(rnr_delay(14) == std::chrono::microseconds{1'280});
static_assert(rnr_delay(31) == std::chrono::microseconds{491'520});

// Local ACK timeout 4.096 us * 2^code (IBA 1.4, 9.7.6.1.3); code 0 waits for ever and has no duration.
constexpr Duration ack_timeout(std::uint8_t code) noexcept {
  return Duration{std::int64_t{4096} << (code & 31U)};
}

static_assert(ack_timeout(14) == Duration{67'108'864});

}  // namespace bx::loopback
