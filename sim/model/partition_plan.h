// SPDX-License-Identifier: GPL-2.0-only
// A network cut into partitions that are simulated beside each other, each with a clock and a queue of events
// of its own ("logical processes" of conservative parallel simulation: Chandy and Misra, "Distributed
// simulation", IEEE TSE 5(5), 1979). What happens in one is felt in another only after a frame has crossed a
// link between them: the least delay of these links, the lookahead, is how far each may go on its own.
//
// The cut is part of the scenario and not of the machine: it follows from the network and the number of
// partitions alone, so that runs on any number of threads are the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libbx/base/result.h"
#include "sim/model/topology_plan.h"
#include "sim/model/units.h"

namespace bx::sim {

inline constexpr std::size_t kPartitionsMax = 256;

struct PartitionPlan {
  std::size_t count = 1;
  std::vector<std::uint16_t> of_switch;  // its partition
  std::vector<std::uint16_t> of_host;    // that of its switch
  Picoseconds lookahead{};               // of one partition: zero, and of no meaning
};

// Switches with hosts are dealt out in the order of their first hosts, as many hosts to each partition as can
// be; any other joins the partition that most of its links lead to, of several the one with the fewest
// switches. So a pod stays whole if there are as many partitions as pods, and the cores are spread.
//
// `plan` must pass check_plan. Errors: invalid_argument, with a detail that names the remedy, for more
// partitions than switches with hosts, none at all, or links between partitions that have no delay.
[[nodiscard]] Result<PartitionPlan> plan_partitions(const TopologyPlan& plan, std::size_t count);

}  // namespace bx::sim
