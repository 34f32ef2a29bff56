// SPDX-License-Identifier: GPL-2.0-only
// The closed form's links between given hosts of a scenario's network: what the receiver's link carries, what
// the fastest sender's does, and the narrowest cut between them, which is the greatest flow from all senders'
// links through the switches to the receiver (Ford and Fulkerson). Routes are shortest and shares of a group
// are equal whatever the rates, so a run may get less, never more. Delays are the hosts' links' only: bounds
// leave out those between switches.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "harness/measure/closed_form.h"
#include "harness/scenario/settings.h"
#include "sim/model/topology_plan.h"

namespace bx::harness {

class PathModel {
 public:
  explicit PathModel(const Settings& settings);
  // Every path is the same.
  explicit PathModel(const LinkModel& link) : uniform_(link) {}

  // All that `senders` (which may name a host several times) send to `receiver` together. Costs a search for
  // each new group of switches, and a table look-up then.
  [[nodiscard]] LinkModel to(std::uint32_t receiver, std::span<const std::uint32_t> senders) const;

 private:
  struct Attachment {
    std::uint16_t at = 0;  // switch
    sim::LinkSpeed speed{};
  };
  using Sources = std::vector<std::pair<std::uint16_t, std::uint64_t>>;  // switch, rate of its senders' links
  [[nodiscard]] std::uint64_t greatest_flow(const Sources& sources, std::uint16_t to) const;

  LinkModel uniform_;                    // mtu, and where there is nothing to tell hosts apart the rest
  std::vector<Attachment> attachments_;  // by host; empty: every path is the same
  std::vector<std::map<std::uint16_t, std::uint64_t>> capacity_;  // by switch: to each neighbour
  mutable std::map<std::pair<Sources, std::uint16_t>, std::uint64_t> known_;
};

}  // namespace bx::harness
