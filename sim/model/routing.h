// SPDX-License-Identifier: GPL-2.0-only
// Shortest paths by number of hops over the links that are up, all of them: at each switch, for each switch
// that has hosts, the ports that lead one hop closer. A breadth-first search from every such switch, so that
// the cost is switches with hosts times links, not hosts times links.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/model/topology_plan.h"

namespace bx::sim {

// Which directions of a link carry frames: [0] from ends[0] to ends[1].
using LinkDirections = std::array<bool, 2>;

class Routing {
 public:
  // `plan` must pass check_plan, and outlive this.
  explicit Routing(const TopologyPlan& plan);

  // A frame for a host at `target` may leave `at` by any of `ports`, which rise; empty where there is no way.
  // Not called with at == target.
  using Visit =
      std::function<void(std::uint16_t at, std::uint16_t target, std::span<const std::uint16_t> ports)>;
  void visit_routes(std::span<const LinkDirections> up, const Visit& visit) const;

  // Where a host hangs.
  struct Attachment {
    std::uint16_t at = 0;    // switch
    std::uint16_t port = 0;  // of that switch
    std::size_t link = 0;
    std::size_t switch_end = 0;  // which end of the link is the switch's
  };
  [[nodiscard]] std::span<const Attachment> attachments() const noexcept { return attachments_; }  // by host

 private:
  // A link as one switch sees it.
  struct Edge {
    std::uint16_t port = 0;
    std::uint16_t neighbour = 0;
    std::size_t link = 0;
    std::size_t end = 0;  // ours
  };
  static constexpr std::uint32_t kFar = UINT32_MAX;
  // Hops from each switch to `target`.
  void measure(std::uint16_t target, std::span<const LinkDirections> up,
               std::vector<std::uint32_t>& hops) const;

  std::vector<std::vector<Edge>> edges_;  // by switch, by port
  std::vector<Attachment> attachments_;
  std::vector<std::uint16_t> targets_;  // switches with hosts
};

}  // namespace bx::sim
