// SPDX-License-Identifier: BSD-3-Clause
// Time as the library sees it: nanoseconds since the host's reactor began. Nobody but a provider reads a
// clock, so BxClock has no now(); an Instant only ever comes from a Reactor or from arithmetic.
#pragma once

#include <chrono>
#include <cstdint>

namespace bx {

struct BxClock {
  using duration = std::chrono::duration<std::int64_t, std::nano>;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BxClock>;
  static constexpr bool is_steady = true;
};

using Duration = BxClock::duration;
using Instant = BxClock::time_point;

// Later than every other instant: "no deadline".
inline constexpr Instant kNever = Instant::max();

}  // namespace bx
