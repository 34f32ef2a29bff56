// SPDX-License-Identifier: BSD-3-Clause
// A reliable connected queue pair over libibverbs. It counts its send-queue slots itself: a slot is free when
// the completion that retires its request has been polled, whatever the driver thinks.
//
// A request that the driver or we refuse (longer than the device allows, an atomic at a crooked address)
// fails the queue pair like one that the device refuses: it completes with a local error behind all that was
// posted before it, and what follows is flushed. Those completions are made here.
//
// Invariants: oldest_ <= next_ <= oldest_ + depth; the user's ids of the requests between them stand in ids_.
#pragma once

#include <vector>

#include "libbx/fabric/device.h"
#include "libbx/providers/verbs/owner_table.h"
#include "libbx/providers/verbs/verbs_device.h"

namespace bx::verbs {

class VerbsQueuePair final : public fabric::QueuePair {
 public:
  VerbsQueuePair(VerbsDevice& device, Handle<ibv_qp> qp, const fabric::QpConfig& config);
  ~VerbsQueuePair() override;
  VerbsQueuePair(const VerbsQueuePair&) = delete;
  VerbsQueuePair& operator=(const VerbsQueuePair&) = delete;

  [[nodiscard]] fabric::QpAddress address() const noexcept override { return address_; }
  Result<> connect(const fabric::QpAddress& peer, const fabric::PathConfig& path) override;
  std::size_t post_send(std::span<const fabric::SendWr> requests) noexcept override;
  void fail() noexcept override;

  // For the completion queues: the request of that number is complete, and with it all before it.
  fabric::WrId retire(std::uint32_t number) noexcept;
  // Of requests that the device never saw, once all that it saw are retired.
  std::size_t take_refused(std::span<fabric::Completion> out) noexcept;
  [[nodiscard]] bool has_refused() const noexcept { return refused_ && oldest_ != next_; }
  [[nodiscard]] bool sends_complete_in(const VerbsCq& cq) const noexcept { return send_cq_ == &cq; }
  [[nodiscard]] bool uses(const VerbsCq& cq) const noexcept { return send_cq_ == &cq || recv_cq_ == &cq; }

 private:
  enum class State : std::uint8_t { unconnected, connected, failed };
  [[nodiscard]] Result<> check(const fabric::PathConfig& path) const;
  [[nodiscard]] std::uint64_t length_of(const fabric::SendWr& request) const noexcept;
  [[nodiscard]] bool length_is_legal(const fabric::SendWr& request) const noexcept;
  [[nodiscard]] ibv_send_wr translate(const fabric::SendWr& request, std::uint32_t number) const noexcept;
  // Posts up to a batch; less if the queue is full, or up to a request that is refused.
  std::size_t post_batch(std::span<const fabric::SendWr> requests) noexcept;
  void refuse(fabric::WcStatus status) noexcept;
  std::size_t keep_refused(std::span<const fabric::SendWr> requests) noexcept;

  VerbsDevice& device_;
  VerbsCq* send_cq_;
  VerbsCq* recv_cq_;
  VerbsSrq* srq_;
  Handle<ibv_qp> qp_;
  Tag tag_;
  fabric::QpAddress address_{};
  std::uint32_t depth_;
  std::uint32_t sges_max_;
  std::uint32_t inline_max_;
  State state_ = State::unconnected;
  bool refused_ = false;
  fabric::WcStatus refusal_ = fabric::WcStatus::flushed;
  std::uint32_t refused_from_ = 0;
  std::uint32_t oldest_ = 0;  // numbers of requests, modulo 2^32
  std::uint32_t next_ = 0;
  std::uint32_t mask_;
  std::vector<fabric::WrId> ids_;
};

}  // namespace bx::verbs
