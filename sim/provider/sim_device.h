// SPDX-License-Identifier: GPL-2.0-only
// fabric::Device over a model NIC. It counts what was made from it, so that a wrong order of destruction is
// caught, and keeps the NIC's asynchronous events until they are polled.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/prng.h"
#include "libbx/base/ring.h"
#include "libbx/fabric/device.h"
#include "libbx/providers/virtual/virtual_reactor.h"
#include "sim/model/nic.h"
#include "sim/provider/nic_events.h"

namespace bx::sim {

class SimDevice final : public fabric::Device, private NicListener {
 public:
  // Events that wait for poll_events; when that many wait, the newest is replaced by device_fatal.
  static constexpr std::size_t kEventsMax = 4096;

  // A host's port of a NIC.
  struct Place {
    Nic* nic;
    NicEvents* events;
    std::uint8_t port;
  };
  // The NIC outlives the device and may have had another one before.
  SimDevice(const Place& place, virtual_time::VirtualReactor& reactor, std::uint32_t mtu, Prng prng);
  ~SimDevice() override;

  [[nodiscard]] const fabric::DeviceCaps& caps() const noexcept override { return caps_; }
  Result<std::unique_ptr<fabric::MemoryRegion>> register_memory(std::span<std::byte> bytes,
                                                                fabric::Access access) override;
  Result<std::unique_ptr<fabric::CompletionQueue>> create_cq(const fabric::CqConfig& config) override;
  Result<std::unique_ptr<fabric::SharedReceiveQueue>> create_srq(const fabric::SrqConfig& config) override;
  Result<std::unique_ptr<fabric::QueuePair>> create_qp(const fabric::QpConfig& config) override;
  std::size_t poll_events(std::span<fabric::DeviceEvent> out) noexcept override;
  void set_event_waker(fabric::Waker* waker) noexcept override { event_waker_ = waker; }

  // For the objects of the device.
  [[nodiscard]] Nic& nic() noexcept { return nic_; }
  [[nodiscard]] virtual_time::VirtualReactor& reactor() noexcept { return reactor_; }
  void add_object() noexcept { ++objects_; }
  void remove_object() noexcept { --objects_; }
  void add_cq(std::uint32_t number) { cqs_.push_back(number); }
  void remove_cq(std::uint32_t number) noexcept { std::erase(cqs_, number); }

 private:
  void on_nic_event(NicEventKind kind, std::uint32_t id) override;
  [[nodiscard]] bool is_mine(NicEventKind kind, std::uint32_t id) noexcept;

  Nic& nic_;
  NicEvents& nic_events_;
  std::uint8_t port_;               // of the NIC, from 0 on
  std::vector<std::uint32_t> cqs_;  // numbers of all that were made here
  virtual_time::VirtualReactor& reactor_;
  fabric::DeviceCaps caps_;
  Prng prng_;
  Ring<fabric::DeviceEvent> events_{kEventsMax};
  fabric::Waker* event_waker_ = nullptr;
  std::uint32_t objects_ = 0;  // queue pairs, queues and regions that exist
};

}  // namespace bx::sim
