// SPDX-License-Identifier: GPL-2.0-only
// Who pauses whom at this instant: for the report of a run that hangs. A sender that is paused waits for the
// port that pauses it, and that is a switch whose buffer is full of what waits at its own paused ports, or a
// host. So the waits form a graph; followed to its ends it names the hosts that pause without being paused,
// and if it has a cycle the pauses hold each other up for ever: a PFC deadlock (Guo et al., "RDMA over
// commodity Ethernet at scale", SIGCOMM 2016, section 4.2).
//
//   host1 --waits--> (switch0 holds host1's frames for) switch0:0 --waits--> host0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/topology.h"
#include "sim/model/units.h"

namespace bx::sim {

// A sender that the other end of its link has paused.
struct PausedPort {
  std::string name;  // "host1", "switch0:0"
  std::string by;    // the other end: "switch0:1", "host0"
  std::uint8_t priority = 0;
  Picoseconds age{};
  std::uint64_t bytes_waiting = 0;       // at a switch
  std::vector<std::size_t> waits_for{};  // indices of paused ports that hold up the one that pauses this
  bool by_host = false;
};

struct PauseGraph {
  std::vector<PausedPort> ports;
  // Indices, each waiting for the next and the last for the first; empty if there is no cycle.
  std::vector<std::size_t> cycle;
};

[[nodiscard]] PauseGraph find_pauses(const Topology& topology, Picoseconds now);

// A line for each thing that a person needs to know, worst first: a cycle, the hosts that hold up the rest,
// then the paused ports, at most `lines_max` in all.
[[nodiscard]] std::vector<std::string> describe(const PauseGraph& graph, std::size_t lines_max);

}  // namespace bx::sim
