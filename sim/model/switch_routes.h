// SPDX-License-Identifier: GPL-2.0-only
// Where a switch sends the frames of each host: two bytes a host. Most hosts have one way out, and their
// entry is the port; those with several share a group of ports (in a fat tree, one group for everything that
// goes up), from which a seeded hash of (source, destination, UDP source port) picks, the same for all frames
// of a flow. Each switch has a seed of its own: with one seed for all, the tiers would pick alike and leave
// paths unused. When a group changes its members, flows move among all of them (no resilient hashing).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "libbx/base/digest.h"
#include "sim/model/frame.h"

namespace bx::sim {

class SwitchRoutes {
 public:
  using Code = std::uint16_t;
  static constexpr Code kNone = UINT16_MAX;

  explicit SwitchRoutes(std::uint64_t seed) noexcept : seed_(seed) {}

  void clear() noexcept;
  // Equal lists have equal codes; that of an empty one is kNone. Ports are below kGroup.
  [[nodiscard]] Code code_of(std::span<const std::uint16_t> ports);
  void set(std::uint16_t host, Code code);

  // What port_for() will read of a host, from memory.
  void prefetch(std::uint16_t host) const noexcept { __builtin_prefetch(by_host_.data() + host); }
  // kNone: there is no way.
  [[nodiscard]] std::uint16_t port_for(const Frame& frame) const noexcept {
    if (frame.dst_host >= by_host_.size()) return kNone;
    const Code code = by_host_[frame.dst_host];
    return code < kGroup || code == kNone ? code : pick(groups_[code - kGroup], frame);
  }

 private:
  static constexpr Code kGroup = 1U << 15U;  // codes from here on are groups
  struct Group {
    std::uint32_t first = 0;  // in ports_
    std::uint32_t count = 0;
  };
  [[nodiscard]] std::uint16_t pick(const Group& group, const Frame& frame) const noexcept {
    Digest digest;
    digest.add(seed_);
    digest.add(std::uint64_t{frame.src_host} << 32U | std::uint64_t{frame.dst_host} << 16U |
               frame.udp_src_port);
    return ports_[group.first + (((digest.value() >> 32U) * group.count) >> 32U)];
  }

  std::uint64_t seed_;
  std::vector<Code> by_host_;
  std::vector<Group> groups_;
  std::vector<std::uint16_t> ports_;
  std::map<std::vector<std::uint16_t>, Code> codes_;  // of the groups
};

}  // namespace bx::sim
