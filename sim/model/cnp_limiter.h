// SPDX-License-Identifier: GPL-2.0-only
// The minimum time between two CNPs of a NIC, for the scopes that are more than one queue pair.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/model/units.h"

namespace bx::sim {

class CnpLimiter {
 public:
  static constexpr std::size_t kPortsMax = 4;  // of a NIC
  static constexpr Picoseconds kLongAgo = Picoseconds::min() / 2;

  // Makes room for the times of a peer: when a queue pair to it is connected.
  void add_peer(std::uint16_t peer) {
    if (peer >= last_to_peer_.size()) last_to_peer_.resize(peer + std::size_t{1}, kLongAgo);
  }
  [[nodiscard]] Picoseconds& last_of_port(std::uint8_t port) noexcept { return last_of_port_[port]; }
  [[nodiscard]] Picoseconds& last_to(std::uint16_t peer) noexcept { return last_to_peer_[peer]; }

 private:
  std::array<Picoseconds, kPortsMax> last_of_port_{kLongAgo, kLongAgo, kLongAgo, kLongAgo};
  std::vector<Picoseconds> last_to_peer_;  // by host
};

}  // namespace bx::sim
