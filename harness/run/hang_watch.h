// SPDX-License-Identifier: GPL-2.0-only
// Notices that a run has come to a stop although it is not at its end: simulated time passes (timers and
// pause refreshes keep it going) and nothing gets done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/scenario/settings.h"
#include "libbx/base/time.h"

namespace bx::harness {

// Why a run was given up, and who waited for what then.
struct HangReport {
  std::string reason;  // empty: it was not
  std::uint64_t at_ns = 0;
  std::vector<std::string> waits;
};

class HangWatch {
 public:
  explicit HangWatch(std::uint64_t window_ns) noexcept : window_(static_cast<std::int64_t>(window_ns)) {}

  // From now on.
  void restart(Instant now) noexcept { since_ = now; }
  // `progress` grows when anything gets done. `excused`: nothing needs to get done now, or a fault is to
  // begin or end that may change things. True once neither has happened for the whole window.
  [[nodiscard]] bool hung(Instant now, std::uint64_t progress, bool excused) noexcept {
    if (excused || progress != progress_) {
      progress_ = progress;
      since_ = now;
    }
    return now - since_ >= window_;
  }
  [[nodiscard]] Duration window() const noexcept { return window_; }

 private:
  Duration window_;
  Instant since_{};
  std::uint64_t progress_ = 0;
};

// measure.hang, or by default longer than the local ACK timeout may take (IBA 1.4, 9.7.6.1.3: up to four
// times what is set): one second at least, and half of `limit_ns` at most.
std::uint64_t hang_window_ns(const Settings& settings, std::uint64_t limit_ns) noexcept;

}  // namespace bx::harness
