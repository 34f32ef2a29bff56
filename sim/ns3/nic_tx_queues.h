// SPDX-License-Identifier: GPL-2.0-only
// The transmit queues of a NIC's ns-3 device: one a priority, so that a paused class does not hold up others.
//
//   device --enqueue--> [p0] [p1] .. [p7] --(TxSchedule, beside the queue pairs)--> port
//
// Each queue is an ns3::DropTailQueue; a packet leaves it when the port asks for the next frame and it is its
// queue's turn: by TxSchedule's rules queues and queue pairs of one priority take turns, and so do priorities
// that are not paused, a quantum of frames each.
#pragma once

#include <ns3/net-device-queue-interface.h>
#include <ns3/packet.h>
#include <ns3/ptr.h>
#include <ns3/queue.h>

#include <array>
#include <cstdint>
#include <memory>

#include "sim/model/nic.h"
#include "sim/ns3/packet_rider.h"

namespace bx::sim {

// Sees each packet that leaves a queue for the wire.
class PacketDeparture {
 public:
  virtual void on_departure(ns3::Ptr<const ns3::Packet> packet) = 0;

 protected:
  ~PacketDeparture() = default;
};

class NicTxQueues {
 public:
  NicTxQueues(Nic& nic, PacketRiders& riders, PacketDeparture& departure, ns3::QueueSize size);
  NicTxQueues(const NicTxQueues&) = delete;
  NicTxQueues& operator=(const NicTxQueues&) = delete;

  // `packet` begins with its Ethernet header. False if the queue is full; it has then counted the drop.
  [[nodiscard]] bool enqueue(ns3::Ptr<ns3::Packet> packet, const PacketFields& fields);
  [[nodiscard]] ns3::Ptr<ns3::Queue<ns3::Packet>> queue(std::uint8_t priority) const;
  // Stops and wakes the queue discs above, as each queue fills and empties.
  void connect(ns3::NetDeviceQueueInterface& interface);
  [[nodiscard]] std::uint64_t drops() const;

 private:
  class Source final : public TxSource {
   public:
    Source(NicTxQueues& all, std::uint8_t priority, ns3::QueueSize size);
    [[nodiscard]] TxClass tx_class() const noexcept override;
    Frame* produce() override;
    ns3::Ptr<ns3::Queue<ns3::Packet>> queue;

   private:
    NicTxQueues& all_;
  };
  Frame* make_frame(ns3::Ptr<ns3::Packet> packet, std::uint8_t priority);

  Nic& nic_;
  PacketRiders& riders_;
  PacketDeparture& departure_;
  std::uint32_t sent_ = 0;
  std::array<std::unique_ptr<Source>, kPriorities> sources_;
};

// The host whose NIC has this address, or kNoFabricHost.
inline constexpr std::uint16_t kNoFabricHost = 0xffff;
[[nodiscard]] std::uint16_t host_of_mac(const std::uint8_t* address) noexcept;  // 6 bytes

}  // namespace bx::sim
