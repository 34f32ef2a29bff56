// SPDX-License-Identifier: GPL-2.0-only
// Completion queue, shared receive queue and memory region of a simulated device: thin handles on the model's
// objects, which they destroy with themselves.
#pragma once

#include <cstddef>
#include <span>

#include "libbx/fabric/device.h"
#include "libbx/providers/virtual/virtual_reactor.h"
#include "sim/model/completion_queue.h"
#include "sim/model/memory_table.h"
#include "sim/model/nic.h"
#include "sim/model/shared_receive_queue.h"

namespace bx::sim {

class SimDevice;

class SimCq final : public fabric::CompletionQueue, private CompletionListener {
 public:
  // Errors: exhausted.
  static Result<std::unique_ptr<SimCq>> create(SimDevice& device, const fabric::CqConfig& config);
  ~SimCq() override;
  std::size_t poll(std::span<fabric::Completion> out) noexcept override;
  [[nodiscard]] fabric::ArmResult arm() noexcept override;
  [[nodiscard]] sim::CompletionQueue& model() noexcept { return *model_; }

 private:
  SimCq(SimDevice& device, fabric::Waker* waker) noexcept : device_(device), waker_(waker) {}
  void on_wake(sim::CompletionQueue& cq) override;

  SimDevice& device_;
  fabric::Waker* waker_;
  sim::CompletionQueue* model_ = nullptr;
};

class SimSrq final : public fabric::SharedReceiveQueue, private virtual_time::Doorbell {
 public:
  SimSrq(SimDevice& device, sim::SharedReceiveQueue& model) noexcept;
  ~SimSrq() override;
  std::size_t post_recv(std::span<const fabric::RecvWr> requests) noexcept override;
  [[nodiscard]] sim::SharedReceiveQueue& model() noexcept { return model_; }

 private:
  void on_doorbell() noexcept override { model_.ring(); }

  SimDevice& device_;
  sim::SharedReceiveQueue& model_;
};

class SimMr final : public fabric::MemoryRegion {
 public:
  SimMr(SimDevice& device, std::span<std::byte> bytes, MemoryKeys keys) noexcept;
  ~SimMr() override;
  [[nodiscard]] std::span<std::byte> bytes() const noexcept override { return bytes_; }
  [[nodiscard]] fabric::LKey lkey() const noexcept override { return fabric::LKey{keys_.lkey}; }
  [[nodiscard]] fabric::RKey rkey() const noexcept override { return fabric::RKey{keys_.rkey}; }

 private:
  SimDevice& device_;
  std::span<std::byte> bytes_;
  MemoryKeys keys_;
};

}  // namespace bx::sim
