// SPDX-License-Identifier: GPL-2.0-only
// One experiment, read and checked: what each variant sets, and what must hold. See docs/scenarios.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/diagnostics.h"
#include "harness/scenario/assignment.h"
#include "harness/scenario/compare_rule.h"
#include "harness/scenario/expectation.h"
#include "harness/scenario/settings.h"

namespace bx::harness {

struct Variant {
  std::string name;
  Place place;  // of its [[variant]], or nowhere
  Settings settings;
};

struct Scenario {
  std::string file;
  std::string hash;  // of the file's bytes: "bxdigest64:" and 16 hex digits of bx::Digest
  std::string name;
  std::string title;
  std::vector<Variant> variants;  // at least one; the first is the baseline
  std::vector<Expectation> expectations;
  std::vector<CompareRule> compare;  // in the order of the file
  std::vector<std::string>
      notes;  // what a person may want to know, for example that a variant overrides --set
  std::vector<std::string> warnings;  // "file:line:col: warning: ...": keys without effect (idle_keys.h)
};

inline constexpr std::size_t kWorkloadsMax = 16;
inline constexpr std::size_t kFaultsMax = 256;
inline constexpr std::size_t kVariantsMax = 64;
inline constexpr std::size_t kExpectationsMax = 1000;
inline constexpr std::size_t kCompareRulesMax = 1000;

// `overrides` come from outside the file, weakest first: knob file, environment, --set. Nothing is returned
// if anything is wrong, and then `diagnostics` says all of it.
std::optional<Scenario> parse_scenario(std::string_view text, const std::string& file,
                                       const std::vector<Assignment>& overrides, Diagnostics& diagnostics);
std::optional<Scenario> load_scenario(const std::string& file, const std::vector<Assignment>& overrides,
                                      Diagnostics& diagnostics);

// What cannot be said of one key alone (scenario_check.cc): hosts that exist, headroom that suffices, and so
// on.
void check_variant(const Variant& variant, const std::string& file, Diagnostics& diagnostics);

}  // namespace bx::harness
