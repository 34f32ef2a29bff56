// SPDX-License-Identifier: BSD-3-Clause
// Something that sends bytes one after another at a rate. The remainder of each division is carried, so that
// a million small messages end where the closed form says.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libbx/base/time.h"

namespace bx::virtual_time {

class Transmitter {
 public:
  explicit Transmitter(std::uint64_t bytes_per_second) noexcept : rate_(bytes_per_second) {}

  // Occupies it for `bytes` from max(now, free_at()); returns when the last byte has left.
  Instant occupy(Instant now, std::uint64_t bytes) noexcept {
    constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
    __extension__ using Wide = unsigned __int128;
    if (now > free_at_) carry_ = 0;  // it was idle: the fraction has passed
    const Wide scaled = static_cast<Wide>(bytes) * kNsPerSecond + carry_;
    carry_ = static_cast<std::uint64_t>(scaled % rate_);
    free_at_ = std::max(free_at_, now) +
               Duration{static_cast<std::int64_t>(static_cast<std::uint64_t>(scaled / rate_))};
    return free_at_;
  }
  [[nodiscard]] Instant free_at() const noexcept { return free_at_; }

 private:
  std::uint64_t rate_;
  std::uint64_t carry_ = 0;
  Instant free_at_{};
};

}  // namespace bx::virtual_time
