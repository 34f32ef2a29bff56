// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/verbs_queues.h"

#include <arpa/inet.h>

#include <algorithm>

#include "libbx/base/check.h"
#include "libbx/providers/verbs/verbs_queue_pair.h"
#include "libbx/providers/verbs/verbs_values.h"

namespace bx::verbs {

using fabric::ArmResult;
using fabric::Completion;
using fabric::WrId;

bool VerbsCq::create(std::uint32_t depth) noexcept {
  cq_.reset(
      ::ibv_create_cq(device_.port().device.get(), static_cast<int>(depth), this, device_.channel(), 0));
  if (cq_ == nullptr) return false;
  device_.add_object();
  return true;
}

VerbsCq::~VerbsCq() {
  if (cq_ == nullptr) return;
  BX_CHECK(users_ == 0, "a completion queue was destroyed before its queue pairs");
  // Destroying a queue waits until all its interrupts are acknowledged.
  if (unacknowledged_ > 0) ::ibv_ack_cq_events(cq_.get(), unacknowledged_);
  cq_.reset();
  device_.remove_object();
}

std::size_t VerbsCq::poll(std::span<Completion> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && stash_begin_ < stash_end_) out[count++] = stash_[stash_begin_++];
  if (count < out.size()) count += take(out.subspan(count));
  return count;
}

std::size_t VerbsCq::take(std::span<Completion> out) noexcept {
  std::array<ibv_wc, kBatch> batch;
  std::size_t count = 0;
  while (count < out.size()) {
    const auto wish = static_cast<int>(std::min(out.size() - count, batch.size()));
    const int got = ::ibv_poll_cq(cq_.get(), wish, batch.data());
    if (got <= 0) break;
    for (const ibv_wc& wc : std::span(batch).first(static_cast<std::size_t>(got))) {
      const Tag tag = Tag::unpack(wc.wr_id);
      void* owner = device_.owners().find(tag);
      if (owner == nullptr) continue;  // of a queue pair that is gone
      const WrId id = tag.receive ? static_cast<VerbsSrq*>(owner)->retire(tag.number)
                                  : static_cast<VerbsQueuePair*>(owner)->retire(tag.number);
      Completion& one = out[count++];
      one = {.wr_id = id, .qp = fabric::QpNum{wc.qp_num}, .status = status_of(wc.status)};
      if (wc.status != IBV_WC_SUCCESS) continue;
      one.opcode = opcode_of(wc.opcode);
      one.byte_len = wc.byte_len;
      // SoftRoCE sets the flag for the sender as well, who has no immediate to be told of.
      one.has_imm = tag.receive && (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
      if (one.has_imm) one.imm = ntohl(wc.imm_data);
    }
    if (got < wish) break;
  }
  if (device_.any_refused() && count < out.size()) count += device_.take_refused(*this, out.subspan(count));
  return count;
}

bool VerbsCq::fill_stash() noexcept {
  if (stash_begin_ < stash_end_) return true;
  stash_begin_ = 0;
  stash_end_ = take(stash_);
  return stash_end_ > 0;
}

ArmResult VerbsCq::arm() noexcept {
  if (fill_stash()) return ArmResult::pending;
  if (waker_ != nullptr) device_.loop().arm(*this);
  return ArmResult::armed;
}

bool VerbsCq::look() noexcept {
  if (!fill_stash()) return false;
  unlink();
  waker_->wake();
  return true;
}

void VerbsCq::request_interrupt() noexcept {
  if (requested_) return;
  requested_ = ::ibv_req_notify_cq(cq_.get(), 0) == 0;
}

void VerbsCq::on_interrupt() noexcept {
  requested_ = false;
  if (++unacknowledged_ < kAckBatch) return;
  ::ibv_ack_cq_events(cq_.get(), unacknowledged_);
  unacknowledged_ = 0;
}

void VerbsCq::on_overrun() noexcept {
  if (overrun_) return;  // devices tell of each completion that is lost
  overrun_ = true;
  device_.cq_overrun(*this);
}

void VerbsCq::forget(fabric::QpNum qp) noexcept {
  const auto begin = stash_.begin() + static_cast<std::ptrdiff_t>(stash_begin_);
  const auto end = stash_.begin() + static_cast<std::ptrdiff_t>(stash_end_);
  const auto kept = std::remove_if(begin, end, [qp](const Completion& one) {
    return one.qp == qp && one.opcode != fabric::WcOpcode::recv &&
           one.opcode != fabric::WcOpcode::recv_rdma_with_imm;
  });
  stash_end_ = static_cast<std::size_t>(kept - stash_.begin());
}

VerbsSrq::VerbsSrq(VerbsDevice& device, Handle<ibv_srq> srq, const fabric::SrqConfig& config)
    : device_(device), srq_(std::move(srq)), tag_(device.owners().add(this, true)), ids_(config.depth) {
  free_.reserve(ids_.size());
  for (std::size_t i = ids_.size(); i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
  device_.add_object();
}

VerbsSrq::~VerbsSrq() {
  BX_CHECK(users_ == 0, "a shared receive queue was destroyed before its queue pairs");
  device_.owners().remove(tag_);
  srq_.reset();
  device_.remove_object();
}

WrId VerbsSrq::retire(std::uint32_t place) noexcept {
  BX_CHECK(place < ids_.size() && free_.size() < ids_.size(), "a receive completed that was not posted");
  free_.push_back(place);
  return ids_[place];
}

std::size_t VerbsSrq::post_recv(std::span<const fabric::RecvWr> requests) noexcept {
  constexpr std::size_t kBatch = 16;
  std::array<ibv_recv_wr, kBatch> batch;
  std::size_t accepted = 0;
  while (accepted < requests.size()) {
    const std::size_t count = std::min({requests.size() - accepted, kBatch, free_.size()});
    if (count == 0) break;
    for (std::size_t i = 0; i < count; ++i) {
      const fabric::RecvWr& request = requests[accepted + i];
      Tag tag = tag_;
      tag.number = free_[free_.size() - 1 - i];
      ids_[tag.number] = request.wr_id;
      batch[i] = {.wr_id = tag.pack(),
                  .next = i + 1 < count ? &batch[i + 1] : nullptr,
                  .sg_list = as_ibv(request.sges),
                  .num_sge = static_cast<int>(request.sges.size())};
    }
    ibv_recv_wr* bad = nullptr;
    const int error = ::ibv_post_srq_recv(srq_.get(), batch.data(), &bad);
    const std::size_t taken = error == 0 ? count : static_cast<std::size_t>(bad - batch.data());
    free_.resize(free_.size() - taken);
    accepted += taken;
    if (taken < count) break;
  }
  return accepted;
}

}  // namespace bx::verbs
