// SPDX-License-Identifier: GPL-2.0-only
// ns-3's IP stack on the hosts of a fabric: an ns3::Node a host, with a NicNetDevice at its NIC and the
// address 10.0.0.0 + host + 1. Sockets and applications are then used as in any ns-3 program.
//
//   Engine engine; FramePool frames; Topology topology; Nic nics[]; IpNetwork ip(topology, nics);
//
// Destroyed before NICs and topology and after the last run; the nodes live until the Engine ends ns-3's
// simulator, but send and receive nothing any more.
#pragma once

#include <ns3/ipv4-address.h>
#include <ns3/node-container.h>
#include <ns3/node.h>

#include <cstdint>
#include <span>
#include <vector>

#include "sim/model/nic.h"
#include "sim/model/topology.h"
#include "sim/ns3/fabric_channel.h"
#include "sim/ns3/nic_net_device.h"
#include "sim/ns3/packet_rider.h"

namespace bx::sim {

enum class QueueDiscs : std::uint8_t { none, ns3_default };

struct IpNetworkConfig {
  std::uint16_t mtu = 1500;
  ns3::QueueSize queue_size{"1000p"};  // of each transmit queue of a NIC
  // ns3_default: what ns3::TrafficControlHelper::Default gives a device of eight queues.
  QueueDiscs queue_discs = QueueDiscs::none;
  // First random stream of the stack's models; each run of a process must give the same.
  std::int64_t random_stream = 0;
};

class IpNetwork final {
 public:
  // The largest IP packet of this fabric: its frames are no larger than what the switches' headroom is for.
  [[nodiscard]] static std::uint16_t mtu_max(const Topology& topology) noexcept;

  // `nics[i]` is that of host i, already connected. The MTU must be at most mtu_max.
  IpNetwork(const Topology& topology, std::span<Nic* const> nics, const IpNetworkConfig& config = {});
  ~IpNetwork();
  IpNetwork(const IpNetwork&) = delete;
  IpNetwork& operator=(const IpNetwork&) = delete;

  [[nodiscard]] ns3::Ptr<ns3::Node> node(std::uint16_t host) const { return nodes_.Get(host); }
  [[nodiscard]] NicNetDevice& device(std::uint16_t host) const { return *devices_[host]; }
  [[nodiscard]] static ns3::Ipv4Address address(std::uint16_t host);

 private:
  PacketRiders riders_;
  ns3::NodeContainer nodes_;
  ns3::Ptr<FabricChannel> channel_;
  std::vector<ns3::Ptr<NicNetDevice>> devices_;
};

}  // namespace bx::sim
