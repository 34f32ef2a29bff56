// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/rc_requester.h"

#include <algorithm>

#include "sim/model/rc_memory.h"
#include "sim/model/rc_queue_pair.h"

namespace bx::sim {

RcRequester::RcRequester(RcQueuePair& qp, const SendQueueConfig& config)
    : qp_(qp), queue_(qp.environment().blocks(), config) {}

std::size_t RcRequester::post(std::span<const SendRequest> requests) {
  const std::uint32_t mtu = qp_.path().mtu;
  std::size_t accepted = 0;
  for (const SendRequest& request : requests) {
    if (queue_.full()) break;
    SendEntry& entry = queue_.push(request);
    const std::uint64_t packets = is_atomic(entry.opcode) ? 1 : (entry.length + mtu - 1) / mtu;
    entry.packets = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(packets));
    if (entry.opcode == RequestOpcode::local_invalidate) ++invalidations_;
    ++accepted;
  }
  qp_.environment().counters().requests_posted += accepted;
  if (!running_) flush();
  return accepted;
}

void RcRequester::start(std::uint8_t priority) {
  priority_ = priority;
  una_ = high_ = next_ = answer_below_ = ack_asked_ = first_position(qp_.path().send_psn);
  went_back_to_ = probe_ = 0;
  const RecoveryConfig& recovery = qp_.config().recovery;
  if (recovery.kind == LossRecovery::selective_repeat) {
    window_ = recovery.window_packets;
    losses_.start(recovery.window_packets, una_);
  }
  cursor_ = head_;
  cursor_packet_ = 0;
  renew_retries();
  running_ = true;
}

void RcRequester::renew_retries() noexcept {
  retries_left_ = qp_.path().retry_cnt;
  rnr_retries_left_ = qp_.path().rnr_retry;
}

void RcRequester::drain() {
  draining_ = true;
  if (drained()) qp_.on_drained();
}

void RcRequester::resume() {
  draining_ = false;
  renew_retries();
  wake();
}

void RcRequester::set_priority(std::uint8_t priority) {
  unlink();
  priority_ = priority;
  wake();
}

// Sends nothing any more, and has no place in the schedule.
void RcRequester::stop() {
  running_ = draining_ = false;
  losses_.clear();
  rnr_waiting_ = false;
  fault_ = CompletionStatus::success;
  unlink();
}

void RcRequester::flush() {
  stop();
  ack_timer_.disarm();
  rnr_timer_.disarm();
  while (head_ != queue_.tail()) complete_head(CompletionStatus::flushed);
}

void RcRequester::clear() {
  stop();
  ack_timer_.reset();
  rnr_timer_.reset();
  queue_.clear();
  head_ = cursor_ = queue_.tail();
  cursor_packet_ = reads_in_flight_ = invalidations_ = 0;
}

// --- Sending.

bool RcRequester::sendable() const noexcept {
  if (!running_ || rnr_waiting_ || fault_ != CompletionStatus::success) return false;
  if (losses_.waiting() > 0) return true;
  if (cursor_ == queue_.rung()) return false;
  const SendEntry& entry = queue_[cursor_];
  if (cursor_packet_ == 0 && !may_begin(entry)) return false;
  const bool data = returns_data(entry.opcode);
  const std::uint64_t first = entry.started ? entry.first : next_;
  const std::uint64_t end = first + (data ? entry.packets : cursor_packet_ + 1U);
  const std::uint64_t outstanding = end - una_;
  if (outstanding > kPsnWindow) return false;
  // A READ that is longer than the window has it to itself, and so has what is left of it.
  return outstanding <= std::min<std::uint64_t>(window_, qp_.congestion().window()) ||
         (data && first <= una_);
}

// The first packet, or the first again, of the entry at the cursor: bar the window.
bool RcRequester::may_begin(const SendEntry& entry) const noexcept {
  if (entry.visible_at > qp_.environment().now()) return false;
  if (draining_ && !entry.started) return false;
  if (entry.opcode == RequestOpcode::local_invalidate) return false;
  if (reads_in_flight_ == 0) return true;
  const std::uint32_t reads_max = qp_.path().rd_atomic_max;
  return !entry.fenced && !(returns_data(entry.opcode) && reads_max > 0 && reads_in_flight_ >= reads_max);
}

TxClass RcRequester::tx_class() const noexcept {
  return !qp_.holds_data() && sendable() ? TxClass::data : TxClass::nothing;
}

void RcRequester::wake() {
  if (invalidations_ > 0) run_invalidations();
  if (!sendable()) return;
  if (qp_.holds_data()) return qp_.resume_later();
  qp_.environment().activate(*this, TxClass::data);
}

// Each waits until everything before it is complete, which is more than the standard asks for: there only a
// fence makes it wait for READs (IBA 1.4, 10.8.3.3, table 76).
void RcRequester::run_invalidations() {
  while (running_ && !draining_ && cursor_ == head_ && head_ != queue_.rung()) {
    const SendEntry& entry = queue_[head_];
    if (entry.opcode != RequestOpcode::local_invalidate) return;
    if (entry.visible_at > qp_.environment().now()) return;
    if (!qp_.environment().memory().invalidate(entry.rkey)) {
      return fail_head(CompletionStatus::memory_management);
    }
    complete_head(CompletionStatus::success);
  }
}

void RcRequester::approach(Approach approach) const noexcept {
  if (approach == Approach::far) return qp_.approach(RcHalf::requester);
  queue_.prefetch(cursor_);
}

Frame* RcRequester::produce() {
  if (!sendable()) return nullptr;
  if (qp_.holds_data()) {
    qp_.resume_later();
    return nullptr;
  }
  Frame* frame = losses_.waiting() > 0 ? resend_lost() : make_at_cursor();
  if (frame == nullptr) return nullptr;
  qp_.congestion().on_sent(qp_.environment().now(), frame->wire_bytes);
  // Off the schedule until then.
  if (has_more() && qp_.holds_data()) qp_.resume_later();
  return frame;
}

Frame* RcRequester::make_at_cursor() {
  SendEntry& entry = queue_[cursor_];
  if (!entry.started && !start_entry(entry)) return nullptr;
  return make_next(entry);
}

Frame* RcRequester::make_next(SendEntry& entry) {
  if (is_atomic(entry.opcode)) return make_atomic_request(entry);
  if (entry.opcode == RequestOpcode::read) return make_read_request(entry);
  return make_payload_packet(entry);
}

// The local checks of IBA 1.4, 11.6.2, made when the NIC comes to the request, and its positions.
bool RcRequester::start_entry(SendEntry& entry) {
  const bool data = returns_data(entry.opcode);
  const bool bad_length =
      is_atomic(entry.opcode) ? entry.length != kAtomicBytes : entry.length > qp_.config().message_bytes_max;
  const MemoryAccess access = data ? MemoryAccess::local_write : MemoryAccess::local_read;
  auto fault = CompletionStatus::success;
  if (bad_length) {
    fault = CompletionStatus::local_length;
  } else if (data && qp_.path().rd_atomic_max == 0) {
    fault = CompletionStatus::local_qp_operation;
  } else if (!entry.inlined && !all_covered(qp_.environment().memory(), queue_.segments(cursor_), access)) {
    fault = CompletionStatus::local_protection;
  }
  if (fault != CompletionStatus::success) {
    stop_at_cursor(fault);
    return false;
  }
  entry.first = next_;
  entry.started = true;
  next_ += entry.packets;
  return true;
}

// The entry at the cursor cannot be carried out. Its error is told in its turn: after the entries before it.
void RcRequester::stop_at_cursor(CompletionStatus fault) {
  fault_ = fault;
  if (cursor_ == head_) fail_head(fault);
}

}  // namespace bx::sim
