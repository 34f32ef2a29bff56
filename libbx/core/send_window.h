// SPDX-License-Identifier: BSD-3-Clause
// A bound on the bytes in flight. One SendWindow bounds what goes to (or is pulled from) one peer; another,
// at the receiver, bounds what all peers together are sending to it, which is what keeps an incast out of the
// switch's buffers: N peers share one budget, however large N is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "libbx/base/check.h"

namespace bx::core {

class SendWindow {
 public:
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  explicit SendWindow(std::uint64_t limit = kUnbounded) noexcept : limit_(limit) {}

  // An amount larger than the window may go when nothing else is in flight: every message must be able to
  // move.
  [[nodiscard]] bool admits(std::uint64_t bytes) const noexcept {
    return in_flight_ == 0 || bytes <= limit_ - std::min(limit_, in_flight_);
  }
  void on_posted(std::uint64_t bytes) noexcept {
    BX_CHECK(admits(bytes), "window_kept: bytes were posted beyond the window");
    in_flight_ += bytes;
  }
  void on_retired(std::uint64_t bytes) noexcept {
    BX_CHECK(bytes <= in_flight_, "more bytes were retired than are in flight");
    in_flight_ -= bytes;
  }
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }

 private:
  std::uint64_t limit_;
  std::uint64_t in_flight_ = 0;
};

}  // namespace bx::core
