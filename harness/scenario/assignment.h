// SPDX-License-Identifier: GPL-2.0-only
// One key given a value by somebody. A scenario file, a knob file, the environment, --set and a variant are
// all lists of assignments; applying them in the order of precedence gives the Settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/key_table.h"

namespace bx::harness {

struct Assignment {
  const KeySpec* key = nullptr;
  Converted value;
  SetBy by;
  std::optional<std::size_t> index;  // of the [[workload]] or [[fault]]; none: every one
};

void apply(const Assignment& assignment, Settings& settings);

// Reads tables of assignments; what it cannot read becomes a diagnostic.
class AssignmentReader {
 public:
  AssignmentReader(std::string source, Origin origin, Diagnostics& diagnostics)
      : source_(std::move(source)), origin_(origin), diagnostics_(diagnostics) {}

  // Every field of `table`, nested tables included, as keys that begin with `prefix` ("" or "workload").
  // "workload.0.size" is "workload.size" of the first [[workload]], unless `index` says already which.
  void read_table(const Value& table, const std::string& prefix,
                  std::optional<std::size_t> index = std::nullopt);
  // One field, as read_table does; `name` is its full key.
  void read_field(const Field& field, const std::string& name,
                  std::optional<std::size_t> index = std::nullopt);

  // A value was refused, so what depends on it cannot be checked.
  [[nodiscard]] bool rejected() const noexcept { return rejected_; }
  [[nodiscard]] std::vector<Assignment> take() { return std::move(assignments_); }

 private:
  void unknown(const Field& field, const std::string& name);

  std::string source_;
  Origin origin_;
  Diagnostics& diagnostics_;
  std::vector<Assignment> assignments_;
  bool rejected_ = false;
};

// "; did you mean 'fabric.rate'?" or "; the keys of fabric are: ..." for a key that does not exist.
std::string remedy_for_unknown_key(std::string_view name);

}  // namespace bx::harness
