// SPDX-License-Identifier: BSD-3-Clause
// The device of one loopback host. It counts what was made from it, so that a wrong order of destruction is
// caught, and owns the transmitter that all its queue pairs share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "libbx/base/digest.h"
#include "libbx/base/ring.h"
#include "libbx/fabric/device.h"
#include "libbx/providers/loopback/loopback_config.h"
#include "libbx/providers/loopback/memory_table.h"
#include "libbx/providers/virtual/alarm.h"
#include "libbx/providers/virtual/transmitter.h"
#include "libbx/providers/virtual/virtual_reactor.h"

namespace bx::loopback {

class LoopbackCq;
class LoopbackQueuePair;
class LoopbackWorld;

enum class PortState : std::uint8_t { up, down };

class LoopbackDevice final : public fabric::Device {
 public:
  // Events that wait for poll_events; when that many wait, the newest is replaced by device_fatal.
  static constexpr std::size_t kEventsMax = 4096;

  LoopbackDevice(LoopbackWorld& world, virtual_time::VirtualReactor& reactor, const fabric::Gid& gid,
                 Prng prng);
  ~LoopbackDevice() override;

  [[nodiscard]] const fabric::DeviceCaps& caps() const noexcept override;
  Result<std::unique_ptr<fabric::MemoryRegion>> register_memory(std::span<std::byte> bytes,
                                                                fabric::Access access) override;
  Result<std::unique_ptr<fabric::CompletionQueue>> create_cq(const fabric::CqConfig& config) override;
  Result<std::unique_ptr<fabric::SharedReceiveQueue>> create_srq(const fabric::SrqConfig& config) override;
  Result<std::unique_ptr<fabric::QueuePair>> create_qp(const fabric::QpConfig& config) override;
  std::size_t poll_events(std::span<fabric::DeviceEvent> out) noexcept override;
  void set_event_waker(fabric::Waker* waker) noexcept override { event_waker_ = waker; }

  // Faults that a test injects.
  void set_port(PortState state) noexcept;  // while it is down nothing arrives and nothing leaves
  void fail_device() noexcept;              // every queue pair fails, nothing can be made any more

  // For the objects of the device.
  [[nodiscard]] LoopbackWorld& world() noexcept { return world_; }
  [[nodiscard]] virtual_time::VirtualReactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] MemoryTable& memory() noexcept { return memory_; }
  [[nodiscard]] virtual_time::Transmitter& transmitter() noexcept { return transmitter_; }
  [[nodiscard]] bool port_up() const noexcept { return port_ == PortState::up && !failed_; }
  [[nodiscard]] LoopbackQueuePair* find_qp(fabric::QpNum number) noexcept;
  void add_qp(fabric::QpNum number, LoopbackQueuePair& qp);
  void remove_qp(fabric::QpNum number) noexcept;
  void add_object() noexcept { ++objects_; }
  void remove_object() noexcept { --objects_; }
  void cq_overrun(LoopbackCq& cq) noexcept;
  void raise(fabric::DeviceEventKind kind, std::uint32_t id) noexcept;
  // Every completion passes here on its way into its queue.
  void record(const fabric::Completion& completion) noexcept;

 private:
  static void on_event_wake(void* device);

  LoopbackWorld& world_;
  virtual_time::VirtualReactor& reactor_;
  fabric::Gid gid_;
  Prng prng_;
  MemoryTable memory_;
  virtual_time::Transmitter transmitter_;
  std::map<fabric::QpNum, LoopbackQueuePair*> qps_;
  Ring<fabric::DeviceEvent> events_{kEventsMax};
  std::uint32_t events_unannounced_ = 0;
  fabric::Waker* event_waker_ = nullptr;
  virtual_time::Alarm event_alarm_;
  std::uint32_t objects_ = 0;  // queue pairs, queues and regions that exist
  std::uint32_t next_cq_ = 1;
  PortState port_ = PortState::up;
  bool failed_ = false;
};

}  // namespace bx::loopback
