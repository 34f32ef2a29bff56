// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/rc_responder.h"

#include <algorithm>
#include <cstring>

#include "sim/model/psn.h"
#include "sim/model/rc_memory.h"
#include "sim/model/rc_queue_pair.h"

namespace bx::sim {
// What the opcode of a SEND or WRITE packet says about its place in the message.
struct RcResponder::PayloadForm {
  explicit PayloadForm(BthOpcode opcode) noexcept
      : kind(opcode >= BthOpcode::write_first && opcode < BthOpcode::send_last_inv ? Message::write
                                                                                   : Message::send) {
    if (opcode >= BthOpcode::send_last_inv) {
      begins = opcode == BthOpcode::send_only_inv;
      ends = invalidates = true;
      return;
    }
    // The opcodes of WRITE repeat those of SEND: First, Middle, Last, Last with imm, Only, Only with imm.
    const unsigned form = static_cast<unsigned>(opcode) - (kind == Message::write ? 6U : 0U);
    begins = form == 0 || form >= 4;
    ends = form >= 2;
    imm = form == 3 || form == 5;
  }
  [[nodiscard]] bool length_is_legal(std::uint32_t bytes, std::uint32_t mtu) const noexcept {
    if (!ends) return bytes == mtu;
    return bytes <= mtu && (begins || bytes > 0);
  }
  Message kind;
  bool begins = false;
  bool ends = false;
  bool imm = false;
  bool invalidates = false;
};

RcResponder::RcResponder(RcQueuePair& qp, std::uint32_t receive_segments_max)
    : qp_(qp), receive_segments_(receive_segments_max) {}

void RcResponder::start(std::uint8_t priority) {
  priority_ = priority;
  answers_ = Ring<Answer>();
  saved_atomics_.clear();
  atomics_done_ = 0;
  expected_ = first_position(qp_.path().receive_psn);
  msn_ = unacknowledged_ = 0;
  seen_end_ = 0;
  nak_sent_ = last_words_ = false;
  const RecoveryConfig& recovery = qp_.config().recovery;
  if (recovery.kind == LossRecovery::selective_repeat) reorder_.start(recovery.window_packets);
}

void RcResponder::set_priority(std::uint8_t priority) {
  unlink();
  priority_ = priority;
  wake();
}

void RcResponder::flush() {
  if (receive_.held) complete_receive({.status = CompletionStatus::flushed});
  message_ = Message::none;
  reorder_.clear(qp_.environment().frames());
  ack_timer_.disarm();
  if (!last_words_) silence();
}

void RcResponder::silence() {
  answers_.shrink(0);
  tail_ = Tail::none;
  unlink();
}

void RcResponder::clear() {
  receive_.held = false;
  message_ = Message::none;
  reorder_.clear(qp_.environment().frames());
  ack_timer_.reset();
  silence();
}

// --- Requests.

void RcResponder::on_request(const Frame& frame) {
  const std::uint64_t position = position_near(frame.psn, expected_);
  if (position < expected_) return on_duplicate(position, frame);
  if (position > expected_) return on_gap(position, frame);
  nak_sent_ = false;
  const bool hole_untold = tail_ == Tail::nak;
  if (hole_untold) tail_ = Tail::none;  // overtaken by what it asked for
  execute(frame);
  if (reorder_.size() == 0) return;
  execute_kept();
  if (hole_untold && reorder_.size() > 0 && !nak_sent_) nak(kSyndromeSequenceNak, expected_);
}

// The packet at expected_.
void RcResponder::execute(const Frame& frame) {
  switch (frame.opcode) {
    case BthOpcode::read_request:
      return on_read(frame);
    case BthOpcode::cmp_swap:
    case BthOpcode::fetch_add:
      return on_atomic(frame);
    default:
      return on_payload(frame);
  }
}

void RcResponder::on_payload(const Frame& frame) {
  const PayloadForm form(frame.opcode);
  const bool in_order = form.begins ? message_ == Message::none : message_ == form.kind;
  if (!in_order || !form.length_is_legal(frame.payload_bytes, qp_.path().mtu)) {
    return fail(kSyndromeInvalidRequest, expected_, Told::by_event);
  }
  if (form.begins) received_ = 0;
  if (form.kind == Message::write && form.begins && !begin_write(frame)) return;
  const bool needs_receive = form.kind == Message::send ? form.begins : form.imm;
  if (needs_receive && !take_receive()) return receiver_not_ready();
  const bool placed = form.kind == Message::send ? place_send(frame) : place_write(frame, form.ends);
  if (!placed) return;
  received_ += frame.payload_bytes;
  qp_.environment().counters().payload_bytes_delivered += frame.payload_bytes;
  ++expected_;
  message_ = form.kind;
  if (form.ends) finish_message(frame, form);
  if (frame.ack_req) {
    acknowledge();
  } else if (qp_.config().recovery.ack_every != 0) {
    note_unasked();
  }
}

// An operation that the queue pair's access flags rule out is an invalid request (IBA 1.4, 9.7.4.1.2). The
// whole range is checked once; a message of no bytes needs no valid key (IBA 1.4, 9.7.4.1.5 and C9-88).
bool RcResponder::begin_write(const Frame& frame) {
  if (frame.dma_length > qp_.config().message_bytes_max || !qp_.allows(MemoryAccess::remote_write)) {
    fail(kSyndromeInvalidRequest, expected_, Told::by_event);
    return false;
  }
  if (frame.dma_length > 0 && !qp_.environment().memory().covers(frame.rkey, frame.va, frame.dma_length,
                                                                 MemoryAccess::remote_write)) {
    fail(kSyndromeRemoteAccess, expected_, Told::by_event);
    return false;
  }
  write_addr_ = frame.va;
  write_length_ = frame.dma_length;
  write_rkey_ = frame.rkey;
  return true;
}

bool RcResponder::place_send(const Frame& frame) {
  if (received_ + frame.payload_bytes > receive_.length) {
    complete_receive({.status = CompletionStatus::local_length});
    fail(kSyndromeInvalidRequest, expected_, Told::by_completion);
    return false;
  }
  if (frame.payload_bytes > 0 &&
      !place_payload(qp_.environment(), frame, {receive_segments_.data(), receive_.segment_count},
                     received_)) {
    complete_receive({.status = CompletionStatus::local_protection});
    fail(kSyndromeRemoteOperation, expected_, Told::by_completion);
    return false;
  }
  return true;
}

bool RcResponder::place_write(const Frame& frame, bool ends) {
  const std::uint64_t end = received_ + frame.payload_bytes;
  if (end > write_length_ || (ends && end != write_length_)) {
    fail(kSyndromeInvalidRequest, expected_, Told::by_event);
    return false;
  }
  if (frame.payload_bytes == 0) return true;
  // Again for each packet: the region may have been taken away since the first.
  const std::uint64_t addr = write_addr_ + received_;
  if (!qp_.environment().memory().covers(write_rkey_, addr, frame.payload_bytes,
                                         MemoryAccess::remote_write)) {
    fail(kSyndromeRemoteAccess, expected_, Told::by_event);
    return false;
  }
  write_payload(qp_.environment(), frame, write_rkey_, addr);
  return true;
}

void RcResponder::finish_message(const Frame& frame, const PayloadForm& form) {
  message_ = Message::none;
  msn_ = (msn_ + 1) & kPsnMask;
  if (!receive_.held) return;
  if (form.invalidates && !qp_.environment().memory().invalidate_remotely(frame.rkey)) {
    return fail_to_invalidate();
  }
  complete_receive(
      {.byte_len = static_cast<std::uint32_t>(received_),
       .imm = form.imm           ? frame.imm
              : form.invalidates ? frame.rkey
                                 : 0,
       .status = CompletionStatus::success,
       .opcode = form.kind == Message::send ? CompletionOpcode::recv : CompletionOpcode::recv_write_imm,
       .has_imm = form.imm,
       .has_inv = form.invalidates,
       .solicited = frame.solicited});
}

// The message itself has been received, so it is acknowledged; the fault is this end's to report (IBA 1.4,
// 9.9.3, responder class J).
void RcResponder::fail_to_invalidate() {
  complete_receive({.status = CompletionStatus::remote_invalid_request});
  last_words_ = true;
  acknowledge();
  qp_.to_error();
}

void RcResponder::on_read(const Frame& frame) {
  if (message_ != Message::none || frame.dma_length > qp_.config().message_bytes_max ||
      !qp_.allows(MemoryAccess::remote_read)) {
    return fail(kSyndromeInvalidRequest, expected_, Told::by_event);
  }
  if (!may_read(frame)) return fail(kSyndromeRemoteAccess, expected_, Told::by_event);
  if (!make_room_for_answer()) return fail(kSyndromeInvalidRequest, expected_, Told::by_event);
  push_read(expected_, frame, Repeated::no);
  expected_ = answers_.back().end;
  msn_ = (msn_ + 1) & kPsnMask;
  tail_ = Tail::none;  // the response acknowledges what is before it
  wake();
}

void RcResponder::on_atomic(const Frame& frame) {
  if (message_ != Message::none || frame.va % kAtomicBytes != 0 || !qp_.allows(MemoryAccess::remote_atomic)) {
    return fail(kSyndromeInvalidRequest, expected_, Told::by_event);
  }
  if (!qp_.environment().memory().covers(frame.rkey, frame.va, kAtomicBytes, MemoryAccess::remote_atomic)) {
    return fail(kSyndromeRemoteAccess, expected_, Told::by_event);
  }
  if (!make_room_for_answer()) return fail(kSyndromeInvalidRequest, expected_, Told::by_event);
  settle_writes(qp_.environment());
  std::uint64_t original = 0;
  std::memcpy(&original, memory_at(frame.va), kAtomicBytes);
  std::uint64_t value = original + frame.swap_add;
  if (frame.opcode == BthOpcode::cmp_swap) value = original == frame.compare ? frame.swap_add : original;
  std::memcpy(memory_at(frame.va), &value, kAtomicBytes);
  saved_atomics_[atomics_done_++ % saved_atomics_.size()] = {expected_, original};
  answers_.push(
      {.first = expected_, .next = expected_, .end = expected_ + 1, .original = original, .is_atomic = true});
  ++expected_;
  msn_ = (msn_ + 1) & kPsnMask;
  tail_ = Tail::none;
  wake();
}

// IBA 1.4, 9.7.5.1.5 and C9-149: a SEND or WRITE is acknowledged again and not executed, a READ is executed
// again, an atomic is answered from the saved result. The requester has gone back, so answers that are queued
// for that place or later are void: it will ask again.
void RcResponder::on_duplicate(std::uint64_t position, const Frame& frame) {
  ++qp_.environment().counters().packets_duplicate;
  if (frame.opcode == BthOpcode::read_request) {
    if (!may_read(frame)) return fail(kSyndromeRemoteAccess, position, Told::by_event);
    take_answer_memory();
    forget_answers_from(position);
    if (answers_.full()) return;
    push_read(position, frame, Repeated::yes);
    return wake();
  }
  if (frame.opcode == BthOpcode::cmp_swap || frame.opcode == BthOpcode::fetch_add) {
    const auto saved = std::find_if(saved_atomics_.begin(), saved_atomics_.end(),
                                    [&](const SavedAtomic& s) { return s.position == position; });
    if (saved == saved_atomics_.end()) return;
    forget_answers_from(position);
    if (answers_.full()) return;
    answers_.push({.first = position,
                   .next = position,
                   .end = position + 1,
                   .original = saved->original,
                   .is_atomic = true,
                   .repeated = Repeated::yes});
    return wake();
  }
  acknowledge();
}

void RcResponder::on_gap(std::uint64_t position, const Frame& frame) {
  ++qp_.environment().counters().packets_out_of_order;
  if (reorder_.enabled()) return keep_for_later(position, frame);
  if (nak_sent_) return;
  nak_sent_ = true;
  nak(kSyndromeSequenceNak, expected_);
}

bool RcResponder::take_receive() {
  SharedReceiveQueue* queue = qp_.receive_queue();
  if (queue == nullptr || queue->empty()) return false;
  const SharedReceiveQueue::Taken taken = queue->take();
  std::copy(taken.segments.begin(), taken.segments.end(), receive_segments_.begin());
  receive_ = {taken.id, total_length(taken.segments), static_cast<std::uint32_t>(taken.segments.size()),
              true};
  ++qp_.environment().counters().receives_consumed;
  return true;
}

void RcResponder::complete_receive(WorkCompletion completion) {
  completion.id = receive_.id;
  completion.qp = qp_.number();
  if (completion.status != CompletionStatus::success) completion.opcode = CompletionOpcode::recv;
  receive_.held = false;
  qp_.config().receive_cq->push_receive(completion);
}

}  // namespace bx::sim
