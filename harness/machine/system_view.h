// SPDX-License-Identifier: GPL-2.0-only
// What a machine says of itself: files under /sys and /proc, and the output of commands that only read.
// Another root than "/" is a copy of such a tree, for tests and for a machine that is elsewhere; there the
// output of a command is the file commands/<words joined by '_'>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bx::harness {

class SystemView {
 public:
  explicit SystemView(std::string root = "/");

  // The file's text without white space at its end; nothing if it cannot be read. At most kTextMax bytes.
  [[nodiscard]] std::optional<std::string> read(std::string_view path) const;
  // A number that the file begins with.
  [[nodiscard]] std::optional<std::uint64_t> read_number(std::string_view path) const;
  // Names in a directory, in order; empty if there is none.
  [[nodiscard]] std::vector<std::string> list(std::string_view directory) const;
  [[nodiscard]] bool exists(std::string_view path) const;
  // The last component of what a symbolic link points to.
  [[nodiscard]] std::optional<std::string> link_name(std::string_view path) const;
  // Standard output of a command, without a shell; nothing if it is not there or fails.
  [[nodiscard]] std::optional<std::string> run(const std::vector<std::string>& words) const;

  // Where a path of this view really lies.
  [[nodiscard]] std::string path(std::string_view path) const { return root_ + std::string(path); }
  [[nodiscard]] bool is_this_machine() const noexcept { return root_.empty(); }

  static constexpr std::size_t kTextMax = 1U << 20U;

 private:
  std::string root_;  // without the slash at its end, so "" is "/"
};

}  // namespace bx::harness
