// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/nic_net_device.h"

#include <ns3/ethernet-header.h>
#include <ns3/ipv4-header.h>
#include <ns3/simulator.h>
#include <ns3/trace-source-accessor.h>
#include <ns3/uinteger.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "libbx/base/check.h"
#include "sim/model/frame_bytes.h"

namespace bx::sim {
namespace {

constexpr std::uint16_t kMtuDefault = 1500;

ns3::Mac48Address ns3_mac(std::uint16_t host) {
  const MacAddress mac = host_mac(host);
  ns3::Mac48Address address;
  address.CopyFrom(mac.data());
  return address;
}

std::uint16_t host_of_ipv4(std::uint32_t address) noexcept {
  const std::uint32_t number = address - host_ipv4(0);
  return address < host_ipv4(0) || number >= kNoFabricHost ? kNoFabricHost
                                                           : static_cast<std::uint16_t>(number);
}

// Who is to get the packet: its MAC destination, or where IP gave none, whose IPv4 address it bears.
std::uint16_t destination(const ns3::Mac48Address& dest, const PacketFields& fields) {
  if (dest.IsBroadcast() && fields.ipv4_dst != 0) return host_of_ipv4(fields.ipv4_dst);
  std::array<std::uint8_t, 6> bytes;
  dest.CopyTo(bytes.data());
  return host_of_mac(bytes.data());
}

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(NicNetDevice);

ns3::TypeId NicNetDevice::GetTypeId() {
  using Self = NicNetDevice;
  const char* callback = "ns3::Packet::TracedCallback";
  static const ns3::TypeId id =
      ns3::TypeId("bx::sim::NicNetDevice")
          .SetParent<ns3::NetDevice>()
          .SetGroupName("ByteExpress")
          .AddConstructor<NicNetDevice>()
          .AddAttribute("Mtu", "Largest IP packet, header included.", ns3::UintegerValue(kMtuDefault),
                        ns3::MakeUintegerAccessor(&Self::SetMtu, &Self::GetMtu),
                        ns3::MakeUintegerChecker<std::uint16_t>(68))
          .AddAttribute("QueueSize",
                        "Of each of the eight transmit queues; set before the device is attached.",
                        ns3::QueueSizeValue(ns3::QueueSize("1000p")),
                        ns3::MakeQueueSizeAccessor(&Self::queue_size_), ns3::MakeQueueSizeChecker())
          .AddAttribute("DataRate", "Rate of the NIC's port.", ns3::TypeId::ATTR_GET, ns3::DataRateValue(),
                        ns3::MakeDataRateAccessor(&Self::data_rate), ns3::MakeDataRateChecker())
          .AddTraceSource("MacTx", "A packet came to be sent.", ns3::MakeTraceSourceAccessor(&Self::mac_tx_),
                          callback)
          .AddTraceSource("MacTxDrop", "Dropped before the wire: no room, no such host, too long.",
                          ns3::MakeTraceSourceAccessor(&Self::mac_tx_drop_), callback)
          .AddTraceSource("MacRx", "A packet for this host goes up the stack.",
                          ns3::MakeTraceSourceAccessor(&Self::mac_rx_), callback)
          .AddTraceSource("MacPromiscRx", "The same: the fabric delivers no packets of others.",
                          ns3::MakeTraceSourceAccessor(&Self::mac_promisc_rx_), callback)
          .AddTraceSource("PhyTxBegin", "The first bit leaves.",
                          ns3::MakeTraceSourceAccessor(&Self::phy_tx_begin_), callback)
          .AddTraceSource("PhyTxDrop", "Sent into a link that is cut.",
                          ns3::MakeTraceSourceAccessor(&Self::phy_tx_drop_), callback)
          .AddTraceSource("PhyRxEnd", "The last bit has arrived.",
                          ns3::MakeTraceSourceAccessor(&Self::phy_rx_end_), callback)
          .AddTraceSource("Sniffer", "Sent or received.", ns3::MakeTraceSourceAccessor(&Self::sniffer_),
                          callback)
          .AddTraceSource("PromiscSniffer", "Sent or received.",
                          ns3::MakeTraceSourceAccessor(&Self::promisc_sniffer_), callback);
  return id;
}

NicNetDevice::NicNetDevice() = default;
NicNetDevice::~NicNetDevice() = default;

void NicNetDevice::attach(Nic& nic, PacketRiders& riders, ns3::Ptr<FabricChannel> channel,
                          std::uint16_t mtu_max) {
  BX_CHECK(queues_ == nullptr, "a device belongs to one NIC, once");
  nic_ = &nic;
  channel_ = channel;
  mtu_max_ = mtu_max;
  mtu_ = std::min(mtu_, mtu_max);
  address_ = ns3_mac(nic.host());
  queues_ = std::make_unique<NicTxQueues>(nic, riders, static_cast<PacketDeparture&>(*this), queue_size_);
  nic.set_ip_sink(this);
}

void NicNetDevice::detach() {
  if (nic_ == nullptr) return;
  nic_->set_ip_sink(nullptr);
  nic_ = nullptr;
  queues_.reset();
}

void NicNetDevice::DoDispose() {
  detach();
  channel_ = nullptr;
  node_ = nullptr;
  receive_ = ReceiveCallback();
  promisc_ = PromiscReceiveCallback();
  ns3::NetDevice::DoDispose();
}

void NicNetDevice::SetAddress(ns3::Address address) {
  BX_CHECK(ns3::Mac48Address::ConvertFrom(address) == address_,
           "the MAC address of a NIC follows from its host's number");
}

bool NicNetDevice::SetMtu(std::uint16_t mtu) {
  if (mtu_max_ != 0 && mtu > mtu_max_) return false;
  mtu_ = mtu;
  return true;
}

bool NicNetDevice::IsLinkUp() const {
  return nic_ != nullptr && nic_->port().link_state() == LinkState::up;
}

void NicNetDevice::AddLinkChangeCallback(ns3::Callback<void> callback) {
  link_change_.ConnectWithoutContext(callback);
}

ns3::Address NicNetDevice::GetMulticast(ns3::Ipv4Address group) const {
  return ns3::Mac48Address::GetMulticast(group);
}

ns3::Address NicNetDevice::GetMulticast(ns3::Ipv6Address group) const {
  return ns3::Mac48Address::GetMulticast(group);
}

ns3::DataRate NicNetDevice::data_rate() const {
  return ns3::DataRate(nic_ == nullptr ? 0 : nic_->port().rate().bits_per_second);
}

bool NicNetDevice::drop(ns3::Ptr<const ns3::Packet> packet, std::uint64_t& counter) {
  ++counter;
  mac_tx_drop_(packet);
  return false;
}

bool NicNetDevice::Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& dest, std::uint16_t protocol) {
  if (queues_ == nullptr) return false;
  std::array<std::byte, 64> head;
  const std::uint32_t head_bytes =
      packet->CopyData(reinterpret_cast<std::uint8_t*>(head.data()), head.size());
  const PacketFields fields = read_fields(std::span(head).first(head_bytes), protocol);
  const std::uint16_t to = destination(ns3::Mac48Address::ConvertFrom(dest), fields);
  const bool fits = packet->GetSize() <= mtu_;
  ns3::EthernetHeader header(false);
  header.SetSource(address_);
  header.SetDestination(to == kNoFabricHost ? ns3::Mac48Address::ConvertFrom(dest) : ns3_mac(to));
  header.SetLengthType(protocol);
  packet->AddHeader(header);
  mac_tx_(packet);
  if (to == kNoFabricHost) return drop(packet, counters_.address_drops);
  if (!fits) return drop(packet, counters_.size_drops);
  if (!queues_->enqueue(packet, fields)) return drop(packet, counters_.queue_drops);
  return true;
}

bool NicNetDevice::SendFrom(ns3::Ptr<ns3::Packet> /*packet*/, const ns3::Address& /*source*/,
                            const ns3::Address& /*dest*/, std::uint16_t /*protocol*/) {
  return false;  // a switch could not tell where such a source is
}

void NicNetDevice::on_departure(ns3::Ptr<const ns3::Packet> packet) {
  if (!IsLinkUp()) return phy_tx_drop_(packet);
  ++counters_.packets_tx;
  phy_tx_begin_(packet);
  sniffer_(packet);
  promisc_sniffer_(packet);
}

// In the middle of a frame's arrival: what the stack does with the packet is for an event of the node's own.
void NicNetDevice::take(const Frame& frame) {
  auto* rider = static_cast<PacketRider*>(frame.rider);
  ns3::Ptr<ns3::Packet> packet = std::move(rider->packet);
  if (frame.ecn == Ecn::congestion_experienced) {
    ns3::EthernetHeader ethernet(false);
    ns3::Ipv4Header ip;
    packet->RemoveHeader(ethernet);
    packet->RemoveHeader(ip);
    ip.SetEcn(ns3::Ipv4Header::ECN_CE);
    if (ns3::Node::ChecksumEnabled()) ip.EnableChecksum();
    packet->AddHeader(ip);
    packet->AddHeader(ethernet);
  }
  ns3::Simulator::ScheduleWithContext(node_->GetId(), ns3::Time(0), &NicNetDevice::receive,
                                      ns3::Ptr<NicNetDevice>(this), packet);
}

void NicNetDevice::receive(ns3::Ptr<ns3::Packet> packet) {
  ++counters_.packets_rx;
  phy_rx_end_(packet);
  sniffer_(packet);
  promisc_sniffer_(packet);
  mac_promisc_rx_(packet);
  mac_rx_(packet);
  ns3::EthernetHeader header(false);
  packet->RemoveHeader(header);
  if (!promisc_.IsNull()) {
    promisc_(this, packet, header.GetLengthType(), header.GetSource(), header.GetDestination(),
             ns3::NetDevice::PACKET_HOST);
  }
  if (!receive_.IsNull()) receive_(this, packet, header.GetLengthType(), header.GetSource());
}

}  // namespace bx::sim
