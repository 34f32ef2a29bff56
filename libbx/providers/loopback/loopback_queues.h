// SPDX-License-Identifier: BSD-3-Clause
// Completion queue, shared receive queue and memory region of the loopback device. All memory is taken when
// they are made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "libbx/base/ring.h"
#include "libbx/fabric/device.h"
#include "libbx/providers/loopback/memory_table.h"
#include "libbx/providers/virtual/virtual_reactor.h"

namespace bx::loopback {

class LoopbackDevice;

class LoopbackCq final : public fabric::CompletionQueue {
 public:
  LoopbackCq(LoopbackDevice& device, const fabric::CqConfig& config, std::uint32_t id);
  ~LoopbackCq() override;
  std::size_t poll(std::span<fabric::Completion> out) noexcept override;
  [[nodiscard]] fabric::ArmResult arm() noexcept override;

  // From events only, never from inside a call of the user's, for it may call the waker. `retires` is how
  // many send-queue slots polling it frees. A full queue loses the completion, raises cq_overrun and fails
  // the queue pairs that use it; from then on it takes nothing.
  void push(const fabric::Completion& completion, std::uint32_t retires) noexcept;
  [[nodiscard]] LoopbackDevice& device() const noexcept { return device_; }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }

 private:
  struct Entry {
    fabric::Completion completion;
    std::uint32_t retires = 0;
  };
  LoopbackDevice& device_;
  fabric::Waker* waker_;
  std::uint32_t id_;
  Ring<Entry> entries_;
  std::uint32_t users_ = 0;  // queue pairs
  bool armed_ = false;
  bool overrun_ = false;
};

// A receive that a message has consumed. The elements stay valid until the next post_recv.
struct ConsumedReceive {
  fabric::WrId wr_id{};
  std::span<const fabric::Sge> sges{};
};

class LoopbackSrq final : public fabric::SharedReceiveQueue, private virtual_time::Doorbell {
 public:
  LoopbackSrq(LoopbackDevice& device, const fabric::SrqConfig& config);
  ~LoopbackSrq() override;
  std::size_t post_recv(std::span<const fabric::RecvWr> requests) noexcept override;

  [[nodiscard]] LoopbackDevice& device() const noexcept { return device_; }
  [[nodiscard]] std::optional<ConsumedReceive> consume() noexcept;  // the oldest that has reached the device
  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }

 private:
  void on_doorbell() noexcept override { visible_ = tail_; }
  struct Slot {
    fabric::WrId wr_id{};
    std::uint32_t sges = 0;
  };
  LoopbackDevice& device_;
  fabric::SrqConfig config_;
  std::vector<Slot> slots_;
  std::vector<fabric::Sge> sges_;  // config_.sges_max for each slot
  // Counts of receives consumed, visible to the device, and posted: head_ <= visible_ <= tail_.
  std::uint64_t head_ = 0;
  std::uint64_t visible_ = 0;
  std::uint64_t tail_ = 0;
  std::uint32_t users_ = 0;
};

class LoopbackMr final : public fabric::MemoryRegion {
 public:
  LoopbackMr(LoopbackDevice& device, std::span<std::byte> bytes, MemoryTable::Keys keys) noexcept;
  ~LoopbackMr() override;
  [[nodiscard]] std::span<std::byte> bytes() const noexcept override { return bytes_; }
  [[nodiscard]] fabric::LKey lkey() const noexcept override { return keys_.lkey; }
  [[nodiscard]] fabric::RKey rkey() const noexcept override { return keys_.rkey; }

 private:
  LoopbackDevice& device_;
  std::span<std::byte> bytes_;
  MemoryTable::Keys keys_;
};

}  // namespace bx::loopback
