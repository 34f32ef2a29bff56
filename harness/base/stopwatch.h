// SPDX-License-Identifier: GPL-2.0-only
// Real time, for people: progress, events per second, the date of a result. Nothing that is simulated may see
// it.
#pragma once

#include <chrono>
#include <string>

namespace bx::harness {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "20260131T095959Z"
std::string date_and_time();

}  // namespace bx::harness
