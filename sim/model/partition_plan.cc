// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/partition_plan.h"

#include <algorithm>
#include <array>
#include <limits>

namespace bx::sim {
namespace {

constexpr std::uint16_t kNowhere = std::numeric_limits<std::uint16_t>::max();

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::device, detail);
}

// The switch that each host is on.
std::vector<std::uint16_t> switch_of_hosts(const TopologyPlan& plan) {
  std::vector<std::uint16_t> of(plan.hosts);
  for (const LinkPlan& link : plan.links) {
    for (std::size_t end = 0; end < 2; ++end) {
      if (link.ends[end].kind == NodeKind::host) of[link.ends[end].index] = link.ends[1 - end].index;
    }
  }
  return of;
}

class Dealer {
 public:
  Dealer(const TopologyPlan& plan, std::size_t count)
      : plan_(plan),
        at_(switch_of_hosts(plan)),
        switches_(count),
        made_{count, std::vector<std::uint16_t>(plan.switches.size(), kNowhere), {}, {}} {}

  PartitionPlan deal() {
    deal_edges();
    while (deal_neighbours()) {
    }
    for (const std::uint16_t at : at_) made_.of_host.push_back(made_.of_switch[at]);
    return std::move(made_);
  }

 private:
  void put(std::size_t at, std::size_t partition) {
    made_.of_switch[at] = static_cast<std::uint16_t>(partition);
    ++switches_[partition];
  }

  // Each switch goes where the first of its hosts would if they were dealt out in blocks; a block that is
  // smaller than a switch may be left without one, so those that follow move up.
  void deal_edges() {
    std::vector<std::uint16_t> edges;
    std::vector<std::size_t> hosts_before;
    std::vector<bool> seen(plan_.switches.size());
    for (std::size_t host = 0; host < at_.size(); ++host) {
      if (seen[at_[host]]) continue;
      seen[at_[host]] = true;
      edges.push_back(at_[host]);
      hosts_before.push_back(host);
    }
    std::size_t least = 0;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const std::size_t wanted = hosts_before[i] * made_.count / at_.size();
      // As many partitions must be left for the switches to come as there are.
      const std::size_t left = edges.size() - i;
      const std::size_t must = made_.count > left ? made_.count - left : 0;
      const std::size_t partition = std::max({std::min(wanted, least), must});
      put(edges[i], partition);
      least = partition + 1;
    }
  }

  // Those that have links into a partition already; the others wait for the next round. False: none is left.
  bool deal_neighbours() {
    const std::size_t switches = plan_.switches.size();
    std::vector<std::vector<std::uint32_t>> links(switches);
    bool any = false;
    for (const LinkPlan& link : plan_.links) {
      for (std::size_t end = 0; end < 2; ++end) {
        const Node own = link.ends[end];
        const Node other = link.ends[1 - end];
        if (own.kind != NodeKind::fabric_switch || other.kind != NodeKind::fabric_switch) continue;
        if (made_.of_switch[own.index] != kNowhere || made_.of_switch[other.index] == kNowhere) continue;
        links[own.index].resize(made_.count);
        ++links[own.index][made_.of_switch[other.index]];
        any = true;
      }
    }
    for (std::size_t at = 0; at < switches; ++at) {
      if (links[at].empty()) continue;
      std::size_t best = 0;
      for (std::size_t p = 1; p < made_.count; ++p) {
        const bool more = links[at][p] > links[at][best];
        const bool lighter = links[at][p] == links[at][best] && switches_[p] < switches_[best];
        if (more || lighter) best = p;
      }
      put(at, best);
    }
    return any;
  }

  const TopologyPlan& plan_;
  std::vector<std::uint16_t> at_;      // by host
  std::vector<std::size_t> switches_;  // by partition
  PartitionPlan made_;
};

std::uint16_t partition_of(const PartitionPlan& plan, Node node) {
  return node.kind == NodeKind::host ? plan.of_host[node.index] : plan.of_switch[node.index];
}

}  // namespace

Result<PartitionPlan> plan_partitions(const TopologyPlan& plan, std::size_t count) {
  if (count == 0 || count > kPartitionsMax) return invalid("partitions: give 1 to 256");
  std::vector<std::uint16_t> edges = switch_of_hosts(plan);
  std::sort(edges.begin(), edges.end());
  const auto different = std::unique(edges.begin(), edges.end()) - edges.begin();
  if (count > static_cast<std::size_t>(different)) {
    return invalid("partitions: give no more than there are switches with hosts");
  }
  PartitionPlan made = Dealer(plan, count).deal();
  if (count == 1) return made;
  made.lookahead = Picoseconds::max();
  for (const LinkPlan& link : plan.links) {
    if (partition_of(made, link.ends[0]) == partition_of(made, link.ends[1])) continue;
    made.lookahead = std::min(made.lookahead, link.speed.delay);
  }
  if (made.lookahead.count() == 0) {
    return invalid("partitions: a link between two of them has no delay; give it one, or one partition");
  }
  return made;
}

}  // namespace bx::sim
