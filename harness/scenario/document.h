// SPDX-License-Identifier: GPL-2.0-only
// A TOML document as plain values that know where they stand. The one place that includes toml++ is
// document.cc; everything else reads this tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/diagnostics.h"

namespace bx::harness {

struct Field;

struct Value {
  enum class Kind : std::uint8_t { flag, integer, real, text, list, table, time };
  Kind kind = Kind::text;
  bool flag = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Value> items;   // of a list
  std::vector<Field> fields;  // of a table, in the order of the file
  Place place;

  [[nodiscard]] const Value* find(std::string_view key) const;
  // How the value looks in a message: "'64KiB'", "64", "true", "a table".
  [[nodiscard]] std::string shown() const;
};

struct Field {
  std::string key;
  Place place;  // of the key
  Value value;
};

// Parses `text` (UTF-8). On a syntax error one diagnostic is added and the returned table is empty.
Value parse_toml(std::string_view text, std::string_view source, Diagnostics& diagnostics);

// The right-hand side of `--set key=value` or of an environment variable: a TOML value if it is one ("true",
// "3",
// "[1, 2]"), otherwise the text itself ("64KiB").
Value parse_loose_value(std::string_view text);

// Reads a scenario or knob file whole. Refuses, with a diagnostic, what cannot be one: missing, a directory,
// longer than kFileBytesMax (without reading it), empty, binary, not UTF-8 (with the place of the first bad
// byte).
inline constexpr std::uint64_t kFileBytesMax = 1ULL << 20U;
bool read_text_file(const std::string& path, std::string& text, Diagnostics& diagnostics);

}  // namespace bx::harness
