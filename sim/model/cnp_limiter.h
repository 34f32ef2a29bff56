// SPDX-License-Identifier: GPL-2.0-only
// The minimum time between two CNPs of a NIC, for the scopes that are more than one queue pair.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/units.h"

namespace bx::sim {

class CnpLimiter {
 public:
  static constexpr Picoseconds kLongAgo = Picoseconds::min() / 2;

  // Makes room for the times of a peer: when a queue pair to it is connected.
  void add_peer(std::uint16_t peer) {
    if (peer >= last_to_peer_.size()) last_to_peer_.resize(peer + std::size_t{1}, kLongAgo);
  }
  [[nodiscard]] Picoseconds& last_of_port() noexcept { return last_of_port_; }
  [[nodiscard]] Picoseconds& last_to(std::uint16_t peer) noexcept { return last_to_peer_[peer]; }

 private:
  Picoseconds last_of_port_ = kLongAgo;
  std::vector<Picoseconds> last_to_peer_;  // by host
};

}  // namespace bx::sim
