// SPDX-License-Identifier: GPL-2.0-only
// What is wrong with a file, collected so that a person sees every mistake at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bx::harness {

// Where something stands in a file; lines and columns count from 1, and 0 is "nowhere in particular".
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class Diagnostics {
 public:
  static constexpr std::size_t kShownMax = 20;

  // `source` names the file, or says "--set" or "environment".
  void error(std::string_view source, Place place, std::string message);

  [[nodiscard]] bool ok() const noexcept { return errors_.empty(); }
  [[nodiscard]] std::size_t count() const noexcept { return errors_.size(); }
  // "file:line:col: error: message" a line, by place within each source, at most kShownMax and then how many
  // more there are.
  [[nodiscard]] std::string text() const;

 private:
  struct Entry {
    std::size_t source;  // index into sources_, in the order of first use
    Place place;
    std::string message;
  };
  std::vector<std::string> sources_;
  std::vector<Entry> errors_;
};

}  // namespace bx::harness
