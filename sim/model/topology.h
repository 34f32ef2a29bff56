// SPDX-License-Identifier: GPL-2.0-only
// Switches and links as a plan says, ready for hosts to be plugged in. Hosts are numbered from 0; a frame's
// src_host and dst_host are these numbers. The hosts' ports belong to their NICs.
//
// Routes are all shortest paths. When a link is cut or mended they stay as they are for the rerouting delay,
// in which what takes the cut link is lost; then all switches change at one instant.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/prng.h"
#include "libbx/base/result.h"
#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/partitions.h"
#include "sim/model/port.h"
#include "sim/model/routing.h"
#include "sim/model/run_digest.h"
#include "sim/model/switch.h"
#include "sim/model/switch_profiles.h"
#include "sim/model/topology_plan.h"
#include "sim/model/units.h"

namespace bx::sim {

enum class HeadroomRule : std::uint8_t {
  as_given,  // `fabric.buffer` says it
  computed,  // for each port what its rate, its cable and the largest frame need
  profile,   // for each port what `profile` has for its rate and its cable
};

struct TopologyConfig {
  TopologyPlan plan{};
  SwitchConfig fabric{};  // of every switch; ports and their rates follow from the plan
  HeadroomRule headroom = HeadroomRule::as_given;
  const BufferProfile* profile = nullptr;
  // From a change of a link to routes that take it into account. An assumption: in data centres BGP with fast
  // detection takes from milliseconds to a second.
  Picoseconds reroute_delay = milliseconds{10};
  std::size_t partitions = 1;  // see partition_plan.h; links of several cannot be cut
};

class Topology final {
 public:
  // Errors: those of check_plan and plan_partitions, and of check_switch for the switch that fails.
  [[nodiscard]] static Result<> check(const TopologyConfig& config);
  // What switch `index` is made of.
  [[nodiscard]] static SwitchConfig switch_config(const TopologyConfig& config, std::size_t index);

  // `config` must pass check. `engine` and `pool` are those of the first partition.
  Topology(Engine& engine, FramePool& pool, const TopologyConfig& config, const Prng& random);
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] const TopologyPlan& plan() const noexcept { return config_.plan; }
  [[nodiscard]] std::uint16_t hosts() const noexcept { return config_.plan.hosts; }
  [[nodiscard]] std::size_t switches() const noexcept { return switches_.size(); }
  [[nodiscard]] Switch& switch_at(std::size_t index) noexcept { return *switches_[index]; }
  [[nodiscard]] const Switch& switch_at(std::size_t index) const noexcept { return *switches_[index]; }

  // The rate at which a host's NIC must run.
  [[nodiscard]] Rate host_rate(std::uint16_t host) const noexcept;
  // Joins the host's NIC to its switch, once a host, and adds what arrives there to the run's digest.
  void connect_host(std::uint16_t host, Port& nic_port);

  // Cuts or mends a link, in both directions or (asymmetric failures) from one end only. Its hosts must be
  // connected. Routes follow after the rerouting delay.
  void set_link(std::size_t link, LinkState state);
  void set_direction(std::size_t link, std::size_t from_end, LinkState state);
  [[nodiscard]] LinkDirections link_up(std::size_t link) const noexcept { return up_[link]; }
  // Null for a host's end that is not connected.
  [[nodiscard]] Port* port_of(std::size_t link, std::size_t end) const noexcept { return ports_[link][end]; }

  // Of all switches; link losses include what hosts sent into cut links.
  [[nodiscard]] SwitchTotals totals() const noexcept;
  [[nodiscard]] RunDigest digest() const noexcept { return partitions_.digest(); }
  // What NICs are made in, and what runs them.
  [[nodiscard]] Partitions& partitions() noexcept { return partitions_; }
  [[nodiscard]] const Partitions& partitions() const noexcept { return partitions_; }

 private:
  void install_routes();
  static void on_reroute(void* topology, void* unused);

  void connect(Node a, Port& port_a, Node b, Port& port_b, Picoseconds delay);
  [[nodiscard]] std::size_t partition_of(Node node) const noexcept;

  Engine& engine_;
  TopologyConfig config_;
  Partitions partitions_;
  Routing routing_;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::array<Port*, 2>> ports_;  // by link and end
  std::vector<LinkDirections> up_;           // by link
};

}  // namespace bx::sim
