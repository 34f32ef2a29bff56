// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/loopback_queues.h"

#include <algorithm>

#include "libbx/base/check.h"
#include "libbx/providers/loopback/loopback_device.h"
#include "libbx/providers/loopback/loopback_queue_pair.h"

namespace bx::loopback {

using fabric::ArmResult;
using fabric::Completion;

LoopbackCq::LoopbackCq(LoopbackDevice& device, const fabric::CqConfig& config, std::uint32_t id)
    : device_(device), waker_(config.waker), id_(id), entries_(config.depth) {
  device_.add_object();
}

LoopbackCq::~LoopbackCq() {
  BX_CHECK(users_ == 0, "a completion queue was destroyed before its queue pairs");
  device_.remove_object();
}

std::size_t LoopbackCq::poll(std::span<Completion> out) noexcept {
  std::size_t count = 0;
  for (; count < out.size() && !entries_.empty(); ++count) {
    const Entry entry = entries_.pop();
    out[count] = entry.completion;
    if (entry.retires == 0) continue;
    if (LoopbackQueuePair* qp = device_.find_qp(entry.completion.qp)) qp->retire(entry.retires);
  }
  return count;
}

ArmResult LoopbackCq::arm() noexcept {
  if (!entries_.empty()) return ArmResult::pending;
  armed_ = true;
  return ArmResult::armed;
}

void LoopbackCq::push(const Completion& completion, std::uint32_t retires) noexcept {
  if (overrun_) return;
  if (entries_.full()) {
    overrun_ = true;
    device_.cq_overrun(*this);
    return;
  }
  entries_.push({completion, retires});
  device_.record(completion);
  if (!armed_) return;
  armed_ = false;
  if (waker_ != nullptr) waker_->wake();
}

LoopbackSrq::LoopbackSrq(LoopbackDevice& device, const fabric::SrqConfig& config)
    : device_(device),
      config_(config),
      slots_(config.depth),
      sges_(std::size_t{config.depth} * config.sges_max) {
  device_.add_object();
}

LoopbackSrq::~LoopbackSrq() {
  BX_CHECK(users_ == 0, "a shared receive queue was destroyed before its queue pairs");
  device_.remove_object();
}

std::size_t LoopbackSrq::post_recv(std::span<const fabric::RecvWr> requests) noexcept {
  std::size_t count = 0;
  for (; count < requests.size() && tail_ - head_ < config_.depth; ++count) {
    const fabric::RecvWr& request = requests[count];
    BX_CHECK(request.sges.size() <= config_.sges_max,
             "a receive has more elements than its queue was made for");
    const std::size_t slot = tail_ % config_.depth;
    slots_[slot] = {request.wr_id, static_cast<std::uint32_t>(request.sges.size())};
    std::ranges::copy(request.sges, sges_.begin() + static_cast<std::ptrdiff_t>(slot * config_.sges_max));
    ++tail_;
  }
  if (count > 0) device_.reactor().ring(*this);
  return count;
}

std::optional<ConsumedReceive> LoopbackSrq::consume() noexcept {
  if (head_ == visible_) return std::nullopt;
  const std::size_t slot = head_++ % config_.depth;
  return ConsumedReceive{slots_[slot].wr_id,
                         std::span(sges_).subspan(slot * config_.sges_max, slots_[slot].sges)};
}

LoopbackMr::LoopbackMr(LoopbackDevice& device, std::span<std::byte> bytes, MemoryTable::Keys keys) noexcept
    : device_(device), bytes_(bytes), keys_(keys) {
  device_.add_object();
}

LoopbackMr::~LoopbackMr() {
  device_.memory().remove(keys_);
  device_.remove_object();
}

}  // namespace bx::loopback
