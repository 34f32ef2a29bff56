// SPDX-License-Identifier: GPL-2.0-only
// What `bx perf sim` measures: the cost of the network model for an incast, with and without things that
// stand idle beside it, for a fabric of a thousand hosts, and for a million sessions of one host.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/provider/raw_traffic.h"
#include "sim/provider/session_traffic.h"
#include "sim/provider/sim_config.h"

namespace bx::harness {

struct SimCase {
  std::string_view name;
  std::string_view sentence;
  sim::SimConfig config{};
  std::vector<sim::RawFlow> flows{};
  std::size_t idle_pairs = 0;      // connected queue pairs between hosts 0 and 1 that nothing uses
  sim::Picoseconds idle_before{};  // simulated time in which nothing happens, before the flows
  std::optional<sim::SessionTrafficConfig> sessions{};  // in the place of flows
};
std::vector<SimCase> sim_cases();

}  // namespace bx::harness
