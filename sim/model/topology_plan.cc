// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/topology_plan.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

namespace bx::sim {
namespace {

constexpr std::string_view kHostPrefix = "host";

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::device, detail);
}

bool exists(const TopologyPlan& plan, Node node) noexcept {
  return node.index < (node.kind == NodeKind::host ? plan.hosts : plan.switches.size());
}

const char* fault_of_size(const TopologyPlan& plan) noexcept {
  if (plan.hosts == 0 || plan.hosts > kHostsMax) return "a topology has 1 to 4096 hosts";
  if (plan.switches.empty() || plan.switches.size() > kSwitchesMax)
    return "a topology has 1 to 4096 switches";
  const std::set<std::string_view> names(plan.switches.begin(), plan.switches.end());
  if (names.size() != plan.switches.size() || names.contains(""))
    return "each switch needs a name of its own";
  if (std::any_of(names.begin(), names.end(), [](auto name) { return name.starts_with(kHostPrefix); })) {
    return "a switch may not be called like a host";
  }
  return nullptr;
}

const char* fault_of(const TopologyPlan& plan, const LinkPlan& link) noexcept {
  const auto& [a, b] = link.ends;
  if (!exists(plan, a) || !exists(plan, b)) return "a link leads to a node that the topology does not have";
  if (a == b) return "a link joins a node to itself";
  if (a.kind == NodeKind::host && b.kind == NodeKind::host)
    return "a link joins two hosts: it needs a switch";
  if (link.speed.rate.bits_per_second == 0) return "a link needs a rate";
  if (link.speed.delay.count() < 0) return "a link delays by zero or more";
  return nullptr;
}

// Union-find over the switches: hosts hang on them.
class Components {
 public:
  explicit Components(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
  std::size_t find(std::size_t i) noexcept {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) noexcept { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

bool hosts_reach_each_other(const TopologyPlan& plan) {
  Components components(plan.switches.size());
  std::vector<std::size_t> attached;
  for (const LinkPlan& link : plan.links) {
    const auto& [a, b] = link.ends;
    if (a.kind == NodeKind::host) {
      attached.push_back(b.index);
    } else if (b.kind == NodeKind::host) {
      attached.push_back(a.index);
    } else {
      components.join(a.index, b.index);
    }
  }
  return std::all_of(attached.begin(), attached.end(),
                     [&](std::size_t s) { return components.find(s) == components.find(attached.front()); });
}

}  // namespace

Result<> check_plan(const TopologyPlan& plan) {
  if (const char* fault = fault_of_size(plan); fault != nullptr) return invalid(fault);
  std::vector<std::uint32_t> host_links(plan.hosts, 0);
  std::vector<std::uint32_t> ports(plan.switches.size(), 0);
  for (const LinkPlan& link : plan.links) {
    if (const char* fault = fault_of(plan, link); fault != nullptr) return invalid(fault);
    for (const Node node : link.ends) {
      ++(node.kind == NodeKind::host ? host_links : ports)[node.index];
    }
  }
  const auto is_one = [](std::uint32_t n) { return n == 1; };
  if (!std::all_of(host_links.begin(), host_links.end(), is_one)) return invalid("each host has one link");
  const auto fits = [](std::uint32_t n) { return n > 0 && n <= kSwitchPortsMax; };
  if (!std::all_of(ports.begin(), ports.end(), fits)) return invalid("a switch has 1 to 4096 links");
  if (!hosts_reach_each_other(plan)) return invalid("some hosts cannot reach each other");
  return {};
}

std::vector<std::uint16_t> switch_ports(const TopologyPlan& plan) {
  std::vector<std::uint16_t> ports(plan.switches.size(), 0);
  for (const LinkPlan& link : plan.links) {
    for (const Node node : link.ends) {
      if (node.kind == NodeKind::fabric_switch) ++ports[node.index];
    }
  }
  return ports;
}

std::vector<std::array<std::uint16_t, 2>> link_ports(const TopologyPlan& plan) {
  std::vector<std::uint16_t> next(plan.switches.size(), 0);
  std::vector<std::array<std::uint16_t, 2>> result;
  result.reserve(plan.links.size());
  for (const LinkPlan& link : plan.links) {
    std::array<std::uint16_t, 2> ports{};
    for (std::size_t end = 0; end < 2; ++end) {
      const Node node = link.ends[end];
      if (node.kind == NodeKind::fabric_switch) ports[end] = next[node.index]++;
    }
    result.push_back(ports);
  }
  return result;
}

std::string node_name(const TopologyPlan& plan, Node node) {
  if (node.kind == NodeKind::fabric_switch) return plan.switches[node.index];
  return std::string(kHostPrefix) + std::to_string(node.index);
}

std::optional<Node> find_node(const TopologyPlan& plan, std::string_view name) {
  if (name.starts_with(kHostPrefix)) {
    const std::string_view digits = name.substr(kHostPrefix.size());
    std::uint16_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    const Node node = host_node(index);
    // One spelling a host: no leading zeros.
    if (error != std::errc{} || index >= plan.hosts || node_name(plan, node) != name) return std::nullopt;
    return node;
  }
  const auto found = std::find(plan.switches.begin(), plan.switches.end(), name);
  if (found == plan.switches.end()) return std::nullopt;
  return switch_node(static_cast<std::size_t>(found - plan.switches.begin()));
}

std::vector<std::size_t> find_links(const TopologyPlan& plan, std::string_view name) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < plan.links.size(); ++i) {
    const auto& ends = plan.links[i].ends;
    const std::string a = node_name(plan, ends[0]);
    const std::string b = node_name(plan, ends[1]);
    const bool of_host =
        (ends[0].kind == NodeKind::host && name == a) || (ends[1].kind == NodeKind::host && name == b);
    if (of_host || name == a + '-' + b || name == b + '-' + a) found.push_back(i);
  }
  return found;
}

}  // namespace bx::sim
