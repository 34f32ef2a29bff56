// SPDX-License-Identifier: GPL-2.0-only
// What the requester makes of answers, and of their absence: acknowledgement, completion, retries.
#include <algorithm>
#include <array>
#include <cstring>

#include "libbx/base/rc_timing.h"
#include "sim/model/rc_memory.h"
#include "sim/model/rc_queue_pair.h"
#include "sim/model/rc_requester.h"

namespace bx::sim {
namespace {

CompletionOpcode completion_opcode(RequestOpcode opcode) noexcept {
  switch (opcode) {
    case RequestOpcode::send:
    case RequestOpcode::send_with_imm:
    case RequestOpcode::send_with_inv:
      return CompletionOpcode::send;
    case RequestOpcode::write:
    case RequestOpcode::write_with_imm:
      return CompletionOpcode::write;
    case RequestOpcode::read:
      return CompletionOpcode::read;
    case RequestOpcode::fetch_add:
      return CompletionOpcode::fetch_add;
    case RequestOpcode::cmp_swap:
      return CompletionOpcode::cmp_swap;
    case RequestOpcode::local_invalidate:
      return CompletionOpcode::local_invalidate;
  }
  return CompletionOpcode::send;
}

CompletionStatus status_of_nak(std::uint8_t syndrome) noexcept {
  if (syndrome == kSyndromeInvalidRequest) return CompletionStatus::remote_invalid_request;
  if (syndrome == kSyndromeRemoteAccess) return CompletionStatus::remote_access;
  return CompletionStatus::remote_operation;
}

}  // namespace

void RcRequester::on_response(const Frame& frame) {
  if (!running_) return;
  const std::uint64_t position = position_near(frame.psn, una_);
  // Older answers say nothing new; an answer to what was never sent is a stray of an earlier connection.
  if (position < una_ || position >= high_) return;
  switch (frame.opcode) {
    case BthOpcode::acknowledge:
      on_acknowledge(position, frame);
      break;
    case BthOpcode::atomic_acknowledge:
      on_atomic_acknowledge(position, frame);
      break;
    default:
      on_read_response(position, frame);
      break;
  }
  if (running_) wake();
}

void RcRequester::on_acknowledge(std::uint64_t position, const Frame& frame) {
  const bool ack = (frame.syndrome & kSyndromeKindMask) == 0;
  // An ACK covers its own PSN, a NAK those before it.
  const bool complete = acknowledge_below(ack ? position + 1 : position);
  if (!running_) return;
  if (!complete) return go_back_for_missing();
  if (ack) return;
  if ((frame.syndrome & kSyndromeKindMask) == kSyndromeRnrNak) {
    return on_rnr_nak(frame.syndrome & kSyndromeValueMask);
  }
  if (frame.syndrome != kSyndromeSequenceNak) return fail_head(status_of_nak(frame.syndrome));
  if (losses_.enabled() && frame.payload_bytes == kReceivedMapBytes) return on_received_map(position, frame);
  ++qp_.environment().counters().sequence_naks_rx;
  if (went_back_to_ == una_) return;  // the same NAK again
  went_back_to_ = una_;
  qp_.congestion().on_nak(qp_.environment().now());
  retry();
}

void RcRequester::on_read_response(std::uint64_t position, const Frame& frame) {
  const bool complete = acknowledge_below(position);
  if (!running_) return;
  if (!complete) return go_back_for_missing();
  const SendEntry& entry = queue_[head_];
  if (entry.opcode != RequestOpcode::read || una_ != position) return;
  const std::uint32_t mtu = qp_.path().mtu;
  const std::uint64_t offset = (position - entry.first) * mtu;
  if (frame.payload_bytes != std::min<std::uint64_t>(mtu, entry.length - offset)) {
    return fail_head(CompletionStatus::local_qp_operation);  // a bad response (IBA 1.4, 9.9.2.4.2)
  }
  if (frame.payload_bytes > 0 && !place_payload(qp_.environment(), frame, queue_.segments(head_), offset)) {
    return fail_head(CompletionStatus::local_protection);
  }
  qp_.environment().counters().payload_bytes_delivered += frame.payload_bytes;
  take_data(position);
}

void RcRequester::on_atomic_acknowledge(std::uint64_t position, const Frame& frame) {
  const bool complete = acknowledge_below(position);
  if (!running_) return;
  if (!complete) return go_back_for_missing();
  if (!is_atomic(queue_[head_].opcode) || una_ != position) return;
  std::array<std::byte, kAtomicBytes> original{};
  std::memcpy(original.data(), &frame.atomic_original, kAtomicBytes);
  settle_writes(qp_.environment());
  if (!scatter(qp_.environment().memory(), queue_.segments(head_), 0, original)) {
    return fail_head(CompletionStatus::local_protection);
  }
  take_data(position);
}

void RcRequester::on_rnr_nak(std::uint8_t code) {
  ++qp_.environment().counters().rnr_naks_rx;
  if (rnr_waiting_) return;  // the same NAK again
  // The peer answers: what runs out here is its patience (rnr_retry), not the network's (retry_cnt), however
  // many of these NAKs get lost while no receive is posted.
  retries_left_ = qp_.path().retry_cnt;
  if (qp_.path().rnr_retry != 7) {
    if (rnr_retries_left_ == 0) return fail_head(CompletionStatus::rnr_retry_exceeded);
    --rnr_retries_left_;
  }
  rnr_waiting_ = true;
  rewind();
  RcEnvironment& environment = qp_.environment();
  rnr_timer_.arm(environment.now() + rnr_wait(code),
                 [&](Picoseconds when) { environment.schedule_timer(qp_, RcTimer::rnr, when); });
}

// The peer has everything before `limit`. False if that cannot be, because data which answers a READ or an
// atomic before it has not come: what the standard calls an implied NAK (IBA 1.4, 9.7.5.2.7).
bool RcRequester::acknowledge_below(std::uint64_t limit) {
  const std::uint64_t before = una_;
  bool complete = true;
  while (una_ < limit) {
    const SendEntry& entry = queue_[head_];
    if (returns_data(entry.opcode)) {
      complete = false;
      break;
    }
    const std::uint64_t end = entry.first + entry.packets;
    una_ = std::min(end, limit);
    if (una_ == end) complete_head(CompletionStatus::success);
  }
  if (una_ != before) {
    qp_.congestion().on_ack(una_ - before);
    progressed();
  }
  return complete;
}

// The data at una_, which is at `position`, is taken.
void RcRequester::take_data(std::uint64_t position) {
  const SendEntry& entry = queue_[head_];
  una_ = position + 1;
  qp_.congestion().on_ack(1);
  if (una_ == entry.first + entry.packets) complete_head(CompletionStatus::success);
  progressed();
}

void RcRequester::progressed() {
  if (probe_ != 0 && una_ > probe_) take_probe();
  if (losses_.enabled()) losses_.acknowledge_below(una_);
  renew_retries();
  // After going back: what has been acknowledged meanwhile need not be sent again.
  if (cursor_ == head_ && una_ < next_) {
    cursor_packet_ = std::max(cursor_packet_, static_cast<std::uint32_t>(una_ - queue_[head_].first));
  }
  if (una_ < answer_below_) {
    restart_ack_timer();
  } else {
    ack_timer_.disarm();
  }
  if (fault_ != CompletionStatus::success && cursor_ == head_) return fail_head(fault_);
  if (draining_ && drained()) qp_.on_drained();
}

// --- Recovery.

void RcRequester::go_back_for_missing() {
  if (went_back_to_ == una_) return;  // every later answer shows the same gap
  ++qp_.environment().counters().implied_naks;
  went_back_to_ = una_;
  retry();
}

void RcRequester::on_timer(RcTimer timer) {
  RcEnvironment& environment = qp_.environment();
  const auto post = [&](Picoseconds when) { environment.schedule_timer(qp_, timer, when); };
  if (timer == RcTimer::rnr) {
    if (!rnr_timer_.expired(environment.now(), post)) return;
    rnr_waiting_ = false;
    return wake();
  }
  if (!ack_timer_.expired(environment.now(), post)) return;
  ++environment.counters().timeouts;
  qp_.congestion().on_timeout(environment.now());
  went_back_to_ = 0;  // a NAK for the same place is news again
  retry();
}

void RcRequester::retry() {
  if (retries_left_ == 0) return fail_head(CompletionStatus::retry_exceeded);
  --retries_left_;
  rewind();
}

void RcRequester::rewind() {
  cursor_ = head_;
  cursor_packet_ = una_ < next_ ? static_cast<std::uint32_t>(una_ - queue_[head_].first) : 0;
  losses_.clear();
  reads_in_flight_ = 0;
  fault_ = CompletionStatus::success;
  answer_below_ = ack_asked_ = una_;
  probe_ = 0;
  ack_timer_.disarm();
  wake();
}

void RcRequester::fail_head(CompletionStatus status) {
  complete_head(status);
  qp_.to_error();
}

void RcRequester::complete_head(CompletionStatus status) {
  const SendEntry& entry = queue_[head_];
  if (head_ < cursor_ && returns_data(entry.opcode)) --reads_in_flight_;
  if (entry.opcode == RequestOpcode::local_invalidate) --invalidations_;
  if (entry.signaled || status != CompletionStatus::success) {
    qp_.config().send_cq->push_send({.id = entry.id,
                                     .byte_len = static_cast<std::uint32_t>(entry.length),
                                     .qp = qp_.number(),
                                     .status = status,
                                     .opcode = completion_opcode(entry.opcode)},
                                    head_);
  }
  ++head_;
  if (cursor_ < head_) {
    cursor_ = head_;
    cursor_packet_ = 0;
  }
}

}  // namespace bx::sim
