// SPDX-License-Identifier: BSD-3-Clause
// What stands between a config and the machine it is to run on: limits of the device and of the operating
// system, with what is needed, what there is, and what to set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libbx/base/result.h"

namespace bx {

struct Finding {
  enum class Severity : std::uint8_t { warning, error };
  Severity severity = Severity::warning;
  Error error{};     // what Context::create() fails with; of an error only
  std::string text;  // with the numbers, for a person
};

using Findings = std::vector<Finding>;

}  // namespace bx
