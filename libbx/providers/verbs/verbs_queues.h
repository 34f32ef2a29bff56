// SPDX-License-Identifier: BSD-3-Clause
// Memory regions, completion queues and shared receive queues over libibverbs.
#pragma once

#include <array>
#include <vector>

#include "libbx/fabric/device.h"
#include "libbx/providers/native/native_loop.h"
#include "libbx/providers/verbs/owner_table.h"
#include "libbx/providers/verbs/verbs_device.h"

namespace bx::verbs {

class VerbsMr final : public fabric::MemoryRegion {
 public:
  VerbsMr(VerbsDevice& device, Handle<ibv_mr> mr, std::span<std::byte> bytes)
      : device_(device), mr_(std::move(mr)), bytes_(bytes) {
    device_.add_object();
  }
  ~VerbsMr() override { device_.remove_object(); }
  VerbsMr(const VerbsMr&) = delete;
  VerbsMr& operator=(const VerbsMr&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const noexcept override { return bytes_; }
  [[nodiscard]] fabric::LKey lkey() const noexcept override { return fabric::LKey{mr_->lkey}; }
  [[nodiscard]] fabric::RKey rkey() const noexcept override { return fabric::RKey{mr_->rkey}; }

 private:
  VerbsDevice& device_;
  Handle<ibv_mr> mr_;
  std::span<std::byte> bytes_;
};

// Verbs can ask for an interrupt but not look without taking; so looking takes completions into a small
// stash, from which poll() serves first.
class VerbsCq final : public fabric::CompletionQueue, private native::ArmedQueue {
 public:
  VerbsCq(VerbsDevice& device, fabric::Waker* waker) : device_(device), waker_(waker) {}
  ~VerbsCq() override;
  VerbsCq(const VerbsCq&) = delete;
  VerbsCq& operator=(const VerbsCq&) = delete;
  // Once, before anything else; false with errno set if the device refuses.
  bool create(std::uint32_t depth) noexcept;

  std::size_t poll(std::span<fabric::Completion> out) noexcept override;
  [[nodiscard]] fabric::ArmResult arm() noexcept override;

  [[nodiscard]] ibv_cq* get() const noexcept { return cq_.get(); }
  [[nodiscard]] std::uint32_t id() const noexcept { return cq_->handle; }
  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }
  void on_interrupt() noexcept;
  void on_overrun() noexcept;
  // Drops what is stashed of a queue pair that goes.
  void forget(fabric::QpNum qp) noexcept;

 private:
  static constexpr std::size_t kBatch = 16;
  static constexpr unsigned kAckBatch = 64;  // acknowledging interrupts takes a lock in libibverbs

  bool look() noexcept override;
  void request_interrupt() noexcept override;
  bool fill_stash() noexcept;
  std::size_t take(std::span<fabric::Completion> out) noexcept;

  VerbsDevice& device_;
  fabric::Waker* waker_;
  Handle<ibv_cq> cq_;
  std::array<fabric::Completion, kBatch> stash_{};
  std::size_t stash_begin_ = 0;
  std::size_t stash_end_ = 0;
  std::uint32_t users_ = 0;  // queue pairs
  unsigned unacknowledged_ = 0;
  bool requested_ = false;  // an interrupt that has not come yet
  bool overrun_ = false;
};

class VerbsSrq final : public fabric::SharedReceiveQueue {
 public:
  VerbsSrq(VerbsDevice& device, Handle<ibv_srq> srq, const fabric::SrqConfig& config);
  ~VerbsSrq() override;
  VerbsSrq(const VerbsSrq&) = delete;
  VerbsSrq& operator=(const VerbsSrq&) = delete;
  std::size_t post_recv(std::span<const fabric::RecvWr> requests) noexcept override;

  [[nodiscard]] ibv_srq* get() const noexcept { return srq_.get(); }
  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }
  // The user's id of a receive that has completed; its place is free again.
  fabric::WrId retire(std::uint32_t place) noexcept;

 private:
  VerbsDevice& device_;
  Handle<ibv_srq> srq_;
  Tag tag_;
  std::uint32_t users_ = 0;  // queue pairs
  // A receive keeps its place until its completion is polled, though the device has room again when a message
  // takes it.
  std::vector<fabric::WrId> ids_;
  std::vector<std::uint32_t> free_;
};

}  // namespace bx::verbs
