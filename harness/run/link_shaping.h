// SPDX-License-Identifier: GPL-2.0-only
// A scenario's links on the hosts that scripts/rxe makes, by tc-netem(8): each host's interface h<n> is its
// link to the switch, the bridge's port p<n> the switch's link to it. A frame takes as long as on the
// simulated link: netem counts what the kernel counts, so the rest of a frame on the wire (preamble, FCS,
// gap: 24 bytes) is added to each.
//
// Not shaped: pauses (a queue is as long as it gets), ECN, buffers; rates that software cannot keep.
#pragma once

#include <cstdint>
#include <string>

#include "harness/base/units.h"

namespace bx::harness {

inline constexpr std::uint64_t kShapedRateMax = 2'000'000'000;  // bits per second

struct LinkShape {
  std::uint32_t hosts = 0;
  std::uint64_t rate_bps = 0;
  std::uint64_t delay_ns = 0;
  std::uint32_t mtu = 4096;  // path MTU
};

// Lines for `tc -batch`; `ip_lines` for `ip -batch`.
std::string tc_lines(const LinkShape& shape);
std::string ip_lines(const LinkShape& shape);

// What goes wrong on one side of a link, on top of its shape.
struct Impairment {
  double loss = 0;  // of each packet
  double corruption = 0;
  std::uint64_t delay_ns = 0;
};
// One line for `tc -batch` that makes it so, and undoes what was there before.
std::string impairment_line(const LinkShape& shape, const std::string& device, const Impairment& impairment);

// Does both. Errors: what the command said.
Parsed<void> shape_links(const LinkShape& shape);
// Gives `lines` to "ip -batch -" or "tc -batch -". Errors: what the command said.
Parsed<void> run_batch(const char* command, const std::string& lines);
// Packets that the device's queueing discipline has dropped.
std::uint64_t dropped_packets(const std::string& device);

}  // namespace bx::harness
