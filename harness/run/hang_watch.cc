// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/hang_watch.h"

#include <algorithm>

namespace bx::harness {

std::uint64_t hang_window_ns(const Settings& settings, std::uint64_t limit_ns) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kAckTimeoutUnit = 4096;  // ns
  if (settings.measure.hang_ns != 0) return settings.measure.hang_ns;
  const std::uint64_t timeout = kAckTimeoutUnit << settings.library.path_ack_timeout;
  return std::max<std::uint64_t>(1, std::min(limit_ns / 2, std::max(kSecond, 4 * timeout)));
}

}  // namespace bx::harness
