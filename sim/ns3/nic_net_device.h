// SPDX-License-Identifier: GPL-2.0-only
// A NIC as an ns3::NetDevice: ns-3's IP stack, its sockets and applications send through it over the same
// port, links and switches as the NIC's queue pairs. Made by IpNetwork.
//
// Addresses follow from the host's number (frame_bytes.h), so there is no ARP: the device finds the next hop
// of a packet from its IPv4 address unless it is given a MAC address. There is no flooding in the fabric
// either: what is for a broadcast or multicast address is dropped, and counted. The priority of a packet is
// the top three bits of its DSCP, as for RoCE.
//
// Trace sources have ns-3's usual meanings. MacTx, MacTxDrop, PhyTxBegin, PhyTxDrop, PhyRxEnd, MacRx, Sniffer
// and PromiscSniffer see the packet with its Ethernet header.
#pragma once

#include <ns3/data-rate.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device.h>
#include <ns3/node.h>
#include <ns3/queue-size.h>
#include <ns3/traced-callback.h>

#include <cstdint>
#include <memory>

#include "sim/model/nic.h"
#include "sim/ns3/fabric_channel.h"
#include "sim/ns3/nic_tx_queues.h"
#include "sim/ns3/packet_rider.h"

namespace bx::sim {

class NicNetDevice final : public ns3::NetDevice, private IpSink, private PacketDeparture {
 public:
  static ns3::TypeId GetTypeId();
  NicNetDevice();
  ~NicNetDevice() override;

  // Once. `nic` and `riders` must outlive the device or its detach(); packets are at most `mtu_max` bytes.
  void attach(Nic& nic, PacketRiders& riders, ns3::Ptr<FabricChannel> channel, std::uint16_t mtu_max);
  // The NIC goes away: from now on the device sends and receives nothing.
  void detach();

  // Sent and received whole, and dropped for want of a way or of room.
  struct Counters {
    std::uint64_t packets_tx = 0;
    std::uint64_t packets_rx = 0;
    std::uint64_t queue_drops = 0;
    std::uint64_t address_drops = 0;  // broadcast, multicast, or no host of the fabric
    std::uint64_t size_drops = 0;     // longer than the MTU
  };
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] NicTxQueues& queues() noexcept { return *queues_; }  // until detach()

  void SetIfIndex(std::uint32_t index) override { if_index_ = index; }
  std::uint32_t GetIfIndex() const override { return if_index_; }
  ns3::Ptr<ns3::Channel> GetChannel() const override { return channel_; }
  void SetAddress(ns3::Address address) override;
  ns3::Address GetAddress() const override { return address_; }
  bool SetMtu(std::uint16_t mtu) override;
  std::uint16_t GetMtu() const override { return mtu_; }
  bool IsLinkUp() const override;
  void AddLinkChangeCallback(ns3::Callback<void> callback) override;
  bool IsBroadcast() const override { return true; }
  ns3::Address GetBroadcast() const override { return ns3::Mac48Address::GetBroadcast(); }
  bool IsMulticast() const override { return false; }
  ns3::Address GetMulticast(ns3::Ipv4Address group) const override;
  ns3::Address GetMulticast(ns3::Ipv6Address group) const override;
  bool IsBridge() const override { return false; }
  bool IsPointToPoint() const override { return false; }
  bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& dest, std::uint16_t protocol) override;
  bool SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& source, const ns3::Address& dest,
                std::uint16_t protocol) override;
  ns3::Ptr<ns3::Node> GetNode() const override { return node_; }
  void SetNode(ns3::Ptr<ns3::Node> node) override { node_ = node; }
  bool NeedsArp() const override { return false; }
  void SetReceiveCallback(ReceiveCallback callback) override { receive_ = callback; }
  void SetPromiscReceiveCallback(PromiscReceiveCallback callback) override { promisc_ = callback; }
  bool SupportsSendFrom() const override { return false; }

 private:
  void DoDispose() override;

  void take(const Frame& frame) override;
  void on_departure(ns3::Ptr<const ns3::Packet> packet) override;
  void receive(ns3::Ptr<ns3::Packet> packet);
  bool drop(ns3::Ptr<const ns3::Packet> packet, std::uint64_t& counter);
  [[nodiscard]] ns3::DataRate data_rate() const;

  Nic* nic_ = nullptr;
  ns3::Ptr<FabricChannel> channel_;
  ns3::Ptr<ns3::Node> node_;
  ns3::Mac48Address address_;
  std::unique_ptr<NicTxQueues> queues_;
  ns3::QueueSize queue_size_;
  std::uint32_t if_index_ = 0;
  std::uint16_t mtu_ = 0;
  std::uint16_t mtu_max_ = 0;
  Counters counters_;
  ReceiveCallback receive_;
  PromiscReceiveCallback promisc_;
  ns3::TracedCallback<> link_change_;

  using PacketTrace = ns3::TracedCallback<ns3::Ptr<const ns3::Packet>>;
  PacketTrace mac_tx_;
  PacketTrace mac_tx_drop_;
  PacketTrace mac_rx_;
  PacketTrace mac_promisc_rx_;
  PacketTrace phy_tx_begin_;
  PacketTrace phy_tx_drop_;
  PacketTrace phy_rx_end_;
  PacketTrace sniffer_;
  PacketTrace promisc_sniffer_;
};

}  // namespace bx::sim
