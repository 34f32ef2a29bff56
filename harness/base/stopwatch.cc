// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/stopwatch.h"

#include <ctime>

namespace bx::harness {

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc);
  return {text, length};
}

}  // namespace bx::harness
