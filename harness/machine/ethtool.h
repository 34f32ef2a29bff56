// SPDX-License-Identifier: GPL-2.0-only
// What a network interface's driver counts: `ethtool -S`, asked of the kernel itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/machine/system_view.h"

namespace bx::harness {

struct NamedCount {
  std::string name;
  std::uint64_t value = 0;
};

inline constexpr std::uint32_t kInterfaceCountersMax = 16'384;

// Empty if there is no such interface or its driver counts nothing. In another tree than this machine's: what
// commands/ethtool_-S_INTERFACE says.
std::vector<NamedCount> read_interface_counters(const SystemView& system, const std::string& interface);

// The lines "     name: 123" of `ethtool -S`; others are passed over.
std::vector<NamedCount> parse_ethtool(std::string_view text);

}  // namespace bx::harness
