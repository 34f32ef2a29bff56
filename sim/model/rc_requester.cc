// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/rc_requester.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "libbx/base/rc_timing.h"
#include "sim/model/rc_memory.h"
#include "sim/model/rc_queue_pair.h"
#include "sim/model/wire_size.h"

namespace bx::sim {
namespace {

// The opcodes of SEND are 0..5 and those of WRITE 6..11, in the same order.
BthOpcode payload_opcode(RequestOpcode request, bool first, bool last) noexcept {
  if (last && request == RequestOpcode::send_with_inv) {
    return first ? BthOpcode::send_only_inv : BthOpcode::send_last_inv;
  }
  const bool is_write = request == RequestOpcode::write || request == RequestOpcode::write_with_imm;
  const bool imm = request == RequestOpcode::send_with_imm || request == RequestOpcode::write_with_imm;
  BthOpcode form = BthOpcode::send_middle;
  if (first && last) {
    form = imm ? BthOpcode::send_only_imm : BthOpcode::send_only;
  } else if (last) {
    form = imm ? BthOpcode::send_last_imm : BthOpcode::send_last;
  } else if (first) {
    form = BthOpcode::send_first;
  }
  const unsigned base = is_write ? static_cast<unsigned>(BthOpcode::write_first) : 0U;
  return static_cast<BthOpcode>(base + static_cast<unsigned>(form));
}

}  // namespace

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

void RcRequester::approach() const noexcept {
  qp_.approach(RcHalf::requester);
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

Frame* RcRequester::make_payload_packet(SendEntry& entry) {
  RcEnvironment& environment = qp_.environment();
  const std::uint32_t mtu = qp_.path().mtu;
  const std::uint64_t offset = static_cast<std::uint64_t>(cursor_packet_) * mtu;
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu, entry.length - offset));
  const bool first = cursor_packet_ == 0;
  const bool last = cursor_packet_ + 1 == entry.packets;
  const std::uint64_t position = entry.first + cursor_packet_;
  const BthOpcode opcode = payload_opcode(entry.opcode, first, last);
  Frame* frame = qp_.make_frame(opcode, position);
  if (bytes > 0 && !give_payload(*frame, entry, offset, bytes)) {
    environment.frames().free(frame);
    stop_at_cursor(CompletionStatus::local_protection);
    return nullptr;
  }
  frame->payload_bytes = bytes;
  frame->wire_bytes = wire_bytes(opcode, bytes);
  frame->imm = entry.imm;
  frame->solicited = last && entry.solicited;
  frame->ack_req = wants_ack(position, last);
  frame->va = entry.remote_addr;
  frame->rkey = entry.rkey;
  frame->dma_length = static_cast<std::uint32_t>(entry.length);
  sent(position, position + 1, bytes);
  if (frame->ack_req) expect_answer(position + 1);
  if (last) {
    ++cursor_;
    cursor_packet_ = 0;
  } else {
    ++cursor_packet_;
  }
  return frame;
}

// False on a bad key.
bool RcRequester::give_payload(Frame& frame, const SendEntry& entry, std::uint64_t offset,
                               std::uint32_t bytes) {
  RcEnvironment& environment = qp_.environment();
  const Carried moved = carried(environment, offset);
  if (!entry.inlined) {
    return take_payload(environment, frame, queue_.segments(cursor_), offset, bytes, moved);
  }
  if (moved == Carried::no) return true;
  frame.payload = environment.frames().make_payload();
  std::memcpy(frame.payload->bytes.data(), queue_.inline_bytes(cursor_).data() + offset, bytes);
  return true;
}

// Asks for the response packets that are still missing: all of them at first.
Frame* RcRequester::make_read_request(SendEntry& entry) {
  const std::uint64_t offset = static_cast<std::uint64_t>(cursor_packet_) * qp_.path().mtu;
  const std::uint64_t position = entry.first + cursor_packet_;
  const std::uint64_t end = entry.first + entry.packets;
  Frame* frame = qp_.make_frame(BthOpcode::read_request, position);
  frame->ack_req = true;
  frame->va = entry.remote_addr + offset;
  frame->rkey = entry.rkey;
  frame->dma_length = static_cast<std::uint32_t>(entry.length - offset);
  sent(position, end, entry.length);
  expect_answer(end);
  ++reads_in_flight_;
  ++cursor_;
  cursor_packet_ = 0;
  return frame;
}

Frame* RcRequester::make_atomic_request(SendEntry& entry) {
  const bool add = entry.opcode == RequestOpcode::fetch_add;
  Frame* frame = qp_.make_frame(add ? BthOpcode::fetch_add : BthOpcode::cmp_swap, entry.first);
  frame->ack_req = true;
  frame->va = entry.remote_addr;
  frame->rkey = entry.rkey;
  frame->swap_add = add ? entry.compare_add : entry.swap;
  frame->compare = add ? 0 : entry.compare_add;
  sent(entry.first, entry.first + 1, 0);
  expect_answer(entry.first + 1);
  ++reads_in_flight_;
  ++cursor_;
  return frame;
}

bool RcRequester::wants_ack(std::uint64_t position, bool last) noexcept {
  // Several times a window, and always with the packet that fills it: else nobody would open it again.
  const std::uint64_t interval = std::min<std::uint64_t>(qp_.config().ack_interval, window_ / 4 + 1);
  const bool fills = position + 1 - una_ >= window_;
  if (!last && !fills && position - ack_asked_ < interval && !qp_.congestion().wants_rtt()) return false;
  ack_asked_ = position;
  return true;
}

void RcRequester::sent(std::uint64_t first, std::uint64_t end, std::uint64_t payload) {
  NicCounters& counters = qp_.environment().counters();
  if (first < high_) {
    ++counters.packets_retransmitted;
    probe_ = 0;  // its answer may be that to the packet's first sending (Karn, Partridge, SIGCOMM 1987)
  } else {
    counters.payload_bytes_sent += payload;
    if (qp_.congestion().wants_rtt() && probe_ == 0) start_probe(first);
  }
  high_ = std::max(high_, end);
}

// One packet at a time; every packet asks for an acknowledgement where this is used.
void RcRequester::start_probe(std::uint64_t position) {
  probe_ = position;
  probe_sent_ = qp_.environment().now();
}

void RcRequester::take_probe() {
  probe_ = 0;
  const Picoseconds now = qp_.environment().now();
  qp_.congestion().on_rtt(now, now - probe_sent_);
}

void RcRequester::expect_answer(std::uint64_t end) {
  answer_below_ = std::max(answer_below_, end);
  if (!ack_timer_.armed()) restart_ack_timer();
}

void RcRequester::restart_ack_timer() {
  if (qp_.path().ack_timeout == 0) return;
  RcEnvironment& environment = qp_.environment();
  ack_timer_.arm(environment.now() + ack_wait(qp_.path().ack_timeout),
                 [&](Picoseconds when) { environment.schedule_timer(qp_, RcTimer::ack, when); });
}

}  // namespace bx::sim
