// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/ip_network.h"

#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-interface-address.h>
#include <ns3/ipv4.h>
#include <ns3/net-device-queue-interface.h>
#include <ns3/queue-item.h>
#include <ns3/traffic-control-helper.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/uinteger.h>

#include <algorithm>

#include "libbx/base/check.h"
#include "sim/model/frame_bytes.h"
#include "sim/model/wire_size.h"

namespace bx::sim {
namespace {

const ns3::Ipv4Mask kMask("255.255.0.0");

void add_address(ns3::Ptr<ns3::Node> node, ns3::Ptr<ns3::NetDevice> device, std::uint16_t host) {
  const auto ipv4 = node->GetObject<ns3::Ipv4>();
  const std::uint32_t interface = ipv4->AddInterface(device);
  ipv4->AddAddress(interface, ns3::Ipv4InterfaceAddress(IpNetwork::address(host), kMask));
  ipv4->SetMetric(interface, 1);
  ipv4->SetUp(interface);
}

// The queue of a packet is that of its priority.
std::size_t queue_of(ns3::Ptr<ns3::QueueItem> item) {
  std::uint8_t tos = 0;
  return item->GetUint8Value(ns3::QueueItem::IP_DSFIELD, tos) ? tos >> 5U : 0;
}

void add_queue_discs(ns3::Ptr<NicNetDevice> device) {
  const auto interface = ns3::CreateObjectWithAttributes<ns3::NetDeviceQueueInterface>(
      "NTxQueues", ns3::UintegerValue(kPriorities));
  interface->SetSelectQueueCallback(&queue_of);
  device->AggregateObject(interface);
  device->queues().connect(*interface);
  ns3::TrafficControlHelper::Default(kPriorities).Install(device);
}

}  // namespace

std::uint16_t IpNetwork::mtu_max(const Topology& topology) noexcept {
  std::uint32_t frame = kFrameBytesMax;
  for (std::size_t i = 0; i < topology.switches(); ++i) {
    frame = std::min(frame, topology.switch_at(i).config().buffer.frame_bytes_max);
  }
  return static_cast<std::uint16_t>(frame - kEthernetOverheadBytes);
}

ns3::Ipv4Address IpNetwork::address(std::uint16_t host) {
  return ns3::Ipv4Address(host_ipv4(host));
}

IpNetwork::IpNetwork(const Topology& topology, std::span<Nic* const> nics, const IpNetworkConfig& config)
    : channel_(ns3::CreateObject<FabricChannel>()) {
  BX_CHECK(nics.size() == topology.hosts(), "an IP network has a node for each host");
  BX_CHECK(config.mtu <= mtu_max(topology), "the IP MTU is above what the switches' buffers are planned for");
  nodes_.Create(static_cast<std::uint32_t>(nics.size()));
  ns3::InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.Install(nodes_);
  stack.AssignStreams(nodes_, config.random_stream);
  for (std::uint16_t host = 0; host < topology.hosts(); ++host) {
    const auto device = ns3::CreateObjectWithAttributes<NicNetDevice>(
        "Mtu", ns3::UintegerValue(config.mtu), "QueueSize", ns3::QueueSizeValue(config.queue_size));
    device->attach(*nics[host], riders_, channel_, mtu_max(topology));
    channel_->attach(device);
    nodes_.Get(host)->AddDevice(device);
    devices_.push_back(device);
    if (config.queue_discs == QueueDiscs::ns3_default) add_queue_discs(device);
    add_address(nodes_.Get(host), device, host);
  }
}

IpNetwork::~IpNetwork() {
  for (const auto& device : devices_) device->detach();
}

}  // namespace bx::sim
