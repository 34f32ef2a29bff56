// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/nic_tx_queues.h"

#include <ns3/drop-tail-queue.h>

#include <algorithm>

#include "sim/model/frame_bytes.h"
#include "sim/model/wire_size.h"

namespace bx::sim {
namespace {

// The class selector, as for RoCE (RcPath::traffic_class).
std::uint8_t priority_of(const PacketFields& fields) noexcept {
  return static_cast<std::uint8_t>(fields.dscp >> 3U);
}

}  // namespace

std::uint16_t host_of_mac(const std::uint8_t* address) noexcept {
  const MacAddress first = host_mac(0);
  if (!std::equal(first.begin(), first.begin() + 4, address)) return kNoFabricHost;
  return static_cast<std::uint16_t>(address[4] << 8U | address[5]);
}

NicTxQueues::NicTxQueues(Nic& nic, PacketRiders& riders, PacketDeparture& departure, ns3::QueueSize size)
    : nic_(nic), riders_(riders), departure_(departure) {
  for (std::uint8_t p = 0; p < kPriorities; ++p) sources_[p] = std::make_unique<Source>(*this, p, size);
}

bool NicTxQueues::enqueue(ns3::Ptr<ns3::Packet> packet, const PacketFields& fields) {
  Source& source = *sources_[priority_of(fields)];
  if (!source.queue->Enqueue(packet)) return false;
  nic_.submit(source);
  return true;
}

ns3::Ptr<ns3::Queue<ns3::Packet>> NicTxQueues::queue(std::uint8_t priority) const {
  return sources_[priority]->queue;
}

void NicTxQueues::connect(ns3::NetDeviceQueueInterface& interface) {
  for (std::uint8_t p = 0; p < kPriorities; ++p) interface.GetTxQueue(p)->ConnectQueueTraces(queue(p));
}

std::uint64_t NicTxQueues::drops() const {
  std::uint64_t drops = 0;
  for (const auto& source : sources_) drops += source->queue->GetTotalDroppedPackets();
  return drops;
}

NicTxQueues::Source::Source(NicTxQueues& all, std::uint8_t priority, ns3::QueueSize size)
    : queue(ns3::CreateObject<ns3::DropTailQueue<ns3::Packet>>()), all_(all) {
  priority_ = priority;
  queue->SetMaxSize(size);
}

TxClass NicTxQueues::Source::tx_class() const noexcept {
  return queue->IsEmpty() ? TxClass::nothing : TxClass::data;
}

Frame* NicTxQueues::Source::produce() {
  const ns3::Ptr<ns3::Packet> packet = queue->Dequeue();
  return packet == nullptr ? nullptr : all_.make_frame(packet, priority_);
}

Frame* NicTxQueues::make_frame(ns3::Ptr<ns3::Packet> packet, std::uint8_t priority) {
  const PacketFields fields = read_frame_fields(*packet);
  std::array<std::uint8_t, 6> destination;
  packet->CopyData(destination.data(), destination.size());
  Frame* frame = nic_.frames().make();
  frame->kind = FrameKind::ip;
  frame->rider = riders_.make(packet);
  frame->payload_bytes = packet->GetSize() - static_cast<std::uint32_t>(kEthernetHeaderBytes);
  frame->wire_bytes = ethernet_wire_bytes(frame->payload_bytes);
  frame->src_host = nic_.host();
  frame->dst_host = host_of_mac(destination.data());
  frame->udp_src_port = fields.flow;
  frame->priority = priority;
  frame->dscp = fields.dscp;
  frame->ecn = fields.ecn;
  frame->psn = sent_++;
  departure_.on_departure(packet);
  return frame;
}

}  // namespace bx::sim
