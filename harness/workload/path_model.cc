// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/path_model.h"

#include <algorithm>
#include <deque>

#include "harness/workload/plan.h"
#include "sim/provider/topology_spec.h"

namespace bx::harness {
namespace {

using Capacity = std::vector<std::map<std::uint16_t, std::uint64_t>>;
constexpr std::uint64_t kNoLimit = UINT64_MAX;

// What the links still carry beside the flow found so far.
class Residual {
 public:
  explicit Residual(Capacity residual) : residual_(std::move(residual)), came_from_(residual_.size()) {}

  // Adds one shortest way from `from` to `to`, with all that it carries; 0: there is none left.
  std::uint64_t augment(std::uint16_t from, std::uint16_t to) {
    if (!search(from, to)) return 0;
    std::uint64_t amount = kNoLimit;
    for (std::uint16_t at = to; at != from; at = came_from_[at]) {
      amount = std::min(amount, residual_[came_from_[at]][at]);
    }
    for (std::uint16_t at = to; at != from; at = came_from_[at]) {
      residual_[came_from_[at]][at] -= amount;
      residual_[at][came_from_[at]] += amount;
    }
    return amount;
  }

 private:
  bool search(std::uint16_t from, std::uint16_t to) {
    std::vector<bool> seen(residual_.size());
    std::deque<std::uint16_t> queue{from};
    seen[from] = true;
    while (!queue.empty() && !seen[to]) {
      const std::uint16_t at = queue.front();
      queue.pop_front();
      for (const auto& [next, left] : residual_[at]) {
        if (left == 0 || seen[next]) continue;
        seen[next] = true;
        came_from_[next] = at;
        queue.push_back(next);
      }
    }
    return seen[to];
  }

  Capacity residual_;
  std::vector<std::uint16_t> came_from_;
};

std::uint64_t delay_ps(const sim::LinkSpeed& speed) noexcept {
  return static_cast<std::uint64_t>(speed.delay.count());
}

}  // namespace

PathModel::PathModel(const Settings& settings) : uniform_(link_model(settings)) {
  if (settings.fabric.topology.shape == "single-switch") return;
  const Result<sim::TopologyPlan> plan = sim::plan_topology(settings.fabric);
  if (!plan) return;
  attachments_.resize(plan->hosts);
  capacity_.resize(plan->switches.size() + 1);
  for (const sim::LinkPlan& link : plan->links) {
    for (std::size_t end = 0; end < 2; ++end) {
      const sim::Node node = link.ends[end];
      const sim::Node other = link.ends[1 - end];
      if (node.kind == sim::NodeKind::host) {
        attachments_[node.index] = {other.index, link.speed};
      } else if (other.kind == sim::NodeKind::fabric_switch) {
        capacity_[node.index][other.index] += link.speed.rate.bits_per_second;
      }
    }
  }
}

LinkModel PathModel::to(std::uint32_t receiver, std::span<const std::uint32_t> senders) const {
  if (attachments_.empty() || senders.empty()) return uniform_;
  LinkModel link = uniform_;
  const Attachment& sink = attachments_.at(receiver);
  link.rate_bps = sink.speed.rate.bits_per_second;
  link.sender_rate_bps = 0;
  std::uint64_t shortest = kNoLimit;
  std::vector<std::uint32_t> hosts(senders.begin(), senders.end());
  std::ranges::sort(hosts);
  hosts.erase(std::ranges::unique(hosts).begin(), hosts.end());
  std::map<std::uint16_t, std::uint64_t> rates;
  for (const std::uint32_t host : hosts) {
    const Attachment& source = attachments_.at(host);
    const std::uint64_t rate = source.speed.rate.bits_per_second;
    rates[source.at] += rate;
    link.sender_rate_bps = std::max(link.sender_rate_bps, rate);
    shortest = std::min(shortest, delay_ps(source.speed));
  }
  link.delay_ps = (delay_ps(sink.speed) + shortest) / 2;
  link.cut_bps = std::min(link.rate_bps, greatest_flow({rates.begin(), rates.end()}, sink.at));
  return link;
}

std::uint64_t PathModel::greatest_flow(const Sources& sources, std::uint16_t to) const {
  const auto [known, is_new] = known_.try_emplace({sources, to}, 0);
  if (!is_new) return known->second;
  Capacity residual = capacity_;
  const auto source = static_cast<std::uint16_t>(residual.size() - 1);
  residual[source] = {sources.begin(), sources.end()};
  Residual flow(std::move(residual));
  while (const std::uint64_t more = flow.augment(source, to)) known->second += more;
  return known->second;
}

}  // namespace bx::harness
