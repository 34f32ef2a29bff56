// SPDX-License-Identifier: GPL-2.0-only
// What an agent needs of a variant's Settings, as JSON: enough to draw the same plan and to size the same
// workers. The network's keys stay with the coordinator, which shapes the links.
#pragma once

#include "harness/cluster/frame.h"
#include "harness/scenario/settings.h"

namespace bx::harness {

Json settings_to_json(const Settings& settings);
// Throws nlohmann::json::exception on what settings_to_json() did not write.
Settings settings_from_json(const Json& json);

}  // namespace bx::harness
