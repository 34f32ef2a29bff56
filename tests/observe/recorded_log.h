// SPDX-License-Identifier: BSD-3-Clause
// A log that keeps its lines, for tests to look at.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libbx/base/log.h"

namespace bx::testing {

class RecordedLog final : public LogSink {
 public:
  void line(LogLevel level, std::string_view line) noexcept override {
    (level == LogLevel::error ? errors : dumped).emplace_back(line);
  }
  // Whether some line dumped has all these words.
  [[nodiscard]] bool dumped_line(const std::vector<std::string>& words) const {
    for (const std::string& line : dumped) {
      bool all = true;
      for (const std::string& word : words) all = all && (line + " ").find(word + " ") != std::string::npos;
      if (all) return true;
    }
    return false;
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& line : dumped) all += line + "\n";
    return all;
  }
  std::vector<std::string> errors;
  std::vector<std::string> dumped;
};

}  // namespace bx::testing
