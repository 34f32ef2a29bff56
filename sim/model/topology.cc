// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/topology.h"

#include <algorithm>
#include <string>

#include "libbx/base/check.h"

namespace bx::sim {
namespace {

std::uint32_t port_headroom(const TopologyConfig& config, const LinkSpeed& speed) noexcept {
  const std::uint32_t frame_bytes = config.fabric.buffer.frame_bytes_max;
  if (config.headroom == HeadroomRule::profile) {
    return headroom_of(*config.profile, speed.rate, speed.delay, frame_bytes);
  }
  const std::uint64_t needed = headroom_needed_bytes({.rate = speed.rate,
                                                      .delay = speed.delay,
                                                      .own_frame_bytes = frame_bytes,
                                                      .peer_frame_bytes = frame_bytes});
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, UINT32_MAX));
}

// The names of the switches' random streams; a single switch's has no number.
std::string stream_of(std::size_t index) {
  return index == 0 ? "switch" : "switch" + std::to_string(index);
}

std::vector<SwitchConfig> switch_configs(const TopologyConfig& config) {
  SwitchConfig none = config.fabric;
  none.buffer.ports = 0;
  none.port_rates.clear();
  none.buffer.port_headroom_bytes.clear();
  std::vector<SwitchConfig> configs(config.plan.switches.size(), none);
  for (const LinkPlan& link : config.plan.links) {
    for (const Node node : link.ends) {
      if (node.kind != NodeKind::fabric_switch) continue;
      SwitchConfig& c = configs[node.index];
      ++c.buffer.ports;
      c.port_rates.push_back(link.speed.rate);
      if (config.headroom != HeadroomRule::as_given) {
        c.buffer.port_headroom_bytes.push_back(port_headroom(config, link.speed));
      }
    }
  }
  return configs;
}

}  // namespace

Result<> Topology::check(const TopologyConfig& config) {
  if (const Result<> plan = check_plan(config.plan); !plan) return plan;
  if (config.reroute_delay.count() < 0) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, "routes cannot change before their links");
  }
  if (config.headroom == HeadroomRule::profile && config.profile == nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, "no profile to take the headroom from");
  }
  for (const SwitchConfig& c : switch_configs(config)) {
    if (const Result<BufferPlan> plan = check_switch(c); !plan) return tl::unexpected(plan.error());
  }
  if (const Result<PartitionPlan> plan = plan_partitions(config.plan, config.partitions); !plan) {
    return tl::unexpected(plan.error());
  }
  return {};
}

SwitchConfig Topology::switch_config(const TopologyConfig& config, std::size_t index) {
  return switch_configs(config)[index];
}

Topology::Topology(Engine& engine, FramePool& pool, const TopologyConfig& config, const Prng& random)
    : engine_(engine),
      config_(config),
      partitions_(engine, pool, plan_partitions(config_.plan, config_.partitions).value()),
      routing_(config_.plan),
      ports_(config_.plan.links.size()),
      up_(config_.plan.links.size(), LinkDirections{true, true}) {
  const std::vector<SwitchConfig> configs = switch_configs(config_);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const std::size_t partition = partitions_.of_switch(i);
    switches_.push_back(std::make_unique<Switch>(partitions_.engine(partition), partitions_.frames(partition),
                                                 configs[i], random.fork(stream_of(i))));
  }
  const std::vector<std::array<std::uint16_t, 2>> port_numbers = link_ports(config_.plan);
  for (std::size_t link = 0; link < ports_.size(); ++link) {
    const LinkPlan& plan = config_.plan.links[link];
    for (std::size_t end = 0; end < 2; ++end) {
      const Node node = plan.ends[end];
      if (node.kind == NodeKind::fabric_switch) {
        ports_[link][end] = &switches_[node.index]->port(port_numbers[link][end]);
      }
    }
    const auto& [a, b] = ports_[link];
    if (a != nullptr && b != nullptr) connect(plan.ends[0], *a, plan.ends[1], *b, plan.speed.delay);
  }
  install_routes();
  for (std::size_t p = 0; p < partitions_.count(); ++p) {
    partitions_.engine(p).announce_to(&Port::approach);
  }
}

std::size_t Topology::partition_of(Node node) const noexcept {
  return node.kind == NodeKind::host ? partitions_.of_host(node.index) : partitions_.of_switch(node.index);
}

void Topology::connect(Node a, Port& port_a, Node b, Port& port_b, Picoseconds delay) {
  Port::connect(port_a, port_b, delay);
  const std::size_t from = partition_of(a);
  const std::size_t to = partition_of(b);
  if (from == to) return;
  port_a.set_mailbox(partitions_.mailbox(from, to));
  port_b.set_mailbox(partitions_.mailbox(to, from));
}

Rate Topology::host_rate(std::uint16_t host) const noexcept {
  return config_.plan.links[routing_.attachments()[host].link].speed.rate;
}

void Topology::connect_host(std::uint16_t host, Port& nic_port) {
  const Routing::Attachment& place = routing_.attachments()[host];
  ports_[place.link][1 - place.switch_end] = &nic_port;
  connect(host_node(host), nic_port, switch_node(place.at), *ports_[place.link][place.switch_end],
          config_.plan.links[place.link].speed.delay);
  nic_port.set_digest(&partitions_.digest(partitions_.of_host(host)));
}

void Topology::set_link(std::size_t link, LinkState state) {
  set_direction(link, 0, state);
  set_direction(link, 1, state);
}

void Topology::set_direction(std::size_t link, std::size_t from_end, LinkState state) {
  const bool up = state == LinkState::up;
  if (up_[link][from_end] == up) return;
  Port* port = ports_[link][from_end];
  BX_CHECK(port != nullptr, "a host is connected before its link is cut");
  up_[link][from_end] = up;
  port->set_link(state);
  engine_.post(config_.reroute_delay, &on_reroute, this);
}

void Topology::on_reroute(void* topology, void* /*unused*/) {
  static_cast<Topology*>(topology)->install_routes();
}

void Topology::install_routes() {
  for (const auto& each : switches_) each->routes().clear();
  std::vector<std::vector<std::uint16_t>> hosts_at(switches_.size());
  for (std::uint16_t host = 0; host < hosts(); ++host) {
    const Routing::Attachment& place = routing_.attachments()[host];
    if (!up_[place.link][place.switch_end]) continue;  // nobody can reach it
    hosts_at[place.at].push_back(host);
    SwitchRoutes& routes = switches_[place.at]->routes();
    routes.set(host, routes.code_of({&place.port, 1}));
  }
  routing_.visit_routes(up_,
                        [&](std::uint16_t at, std::uint16_t target, std::span<const std::uint16_t> ports) {
                          SwitchRoutes& routes = switches_[at]->routes();
                          const SwitchRoutes::Code code = routes.code_of(ports);
                          for (const std::uint16_t host : hosts_at[target]) routes.set(host, code);
                        });
}

SwitchTotals Topology::totals() const noexcept {
  SwitchTotals totals;
  for (const auto& each : switches_) totals += each->totals();
  for (const Routing::Attachment& place : routing_.attachments()) {
    const Port* port = ports_[place.link][1 - place.switch_end];
    if (port != nullptr) totals.link_losses += port->counters().link_losses;
  }
  return totals;
}

}  // namespace bx::sim
