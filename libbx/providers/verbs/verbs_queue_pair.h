// SPDX-License-Identifier: BSD-3-Clause
// A reliable connected queue pair over libibverbs. It counts its send-queue slots itself: a slot is free when the
// completion that retires its request has been polled, whatever the driver thinks.
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
  [[nodiscard]] bool uses(const VerbsCq& cq) const noexcept { return send_cq_ == &cq || recv_cq_ == &cq; }

 private:
  enum class State : std::uint8_t { unconnected, connected, failed };
  [[nodiscard]] Result<> check(const fabric::PathConfig& path) const;
  [[nodiscard]] ibv_send_wr translate(const fabric::SendWr& request, std::uint32_t number) const noexcept;

  VerbsDevice& device_;
  VerbsCq* send_cq_;
  VerbsCq* recv_cq_;
  Handle<ibv_qp> qp_;
  Tag tag_;
  fabric::QpAddress address_{};
  std::uint32_t depth_;
  std::uint32_t sges_max_;
  std::uint32_t inline_max_;
  State state_ = State::unconnected;
  std::uint32_t oldest_ = 0;  // numbers of requests, modulo 2^32
  std::uint32_t next_ = 0;
  std::uint32_t mask_;
  std::vector<fabric::WrId> ids_;
};

}  // namespace bx::verbs
