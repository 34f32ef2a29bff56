// SPDX-License-Identifier: GPL-2.0-only
// Named sets of DCQCN parameters, of notification and of reaction point. ECN thresholds belong to switches
// and are not part of them.
#pragma once

#include <optional>
#include <string_view>

#include "sim/model/congestion_control.h"
#include "sim/model/units.h"

namespace bx::sim {

struct CongestionProfile {
  DcqcnConfig dcqcn{};
  CnpConfig cnp{};
};

// zhu15, nvidia or alibaba, for a NIC of that rate.
[[nodiscard]] std::optional<CongestionProfile> congestion_profile(std::string_view name, Rate line);

}  // namespace bx::sim
