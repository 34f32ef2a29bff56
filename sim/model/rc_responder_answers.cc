// SPDX-License-Identifier: GPL-2.0-only
// What the responder sends: the queue of READ responses and atomic acknowledgements, the ACK or NAK behind
// them, and their frames.
#include <algorithm>
#include <utility>

#include "sim/model/rc_memory.h"
#include "sim/model/rc_queue_pair.h"
#include "sim/model/rc_responder.h"
#include "sim/model/wire_size.h"

namespace bx::sim {

// --- The queue.

// The first READ or atomic takes the memory for all that may be held: most queue pairs never see one.
void RcResponder::take_answer_memory() {
  if (answers_.capacity() == 0) resize_answers(qp_.path().rd_atomic_dest_max);
}

void RcResponder::hold_answers(std::uint32_t count) {
  if (answers_.capacity() > 0) resize_answers(count);
}

void RcResponder::resize_answers(std::uint32_t count) {
  Ring<Answer> answers(std::max<std::size_t>(count, answers_.size()));
  while (!answers_.empty()) answers.push(answers_.pop());
  answers_ = std::move(answers);
  std::vector<SavedAtomic> saved(count);
  const std::size_t kept = std::min<std::size_t>({count, saved_atomics_.size(), atomics_done_});
  for (std::uint64_t i = atomics_done_ - kept; i < atomics_done_; ++i) {
    saved[i % count] = saved_atomics_[i % saved_atomics_.size()];
  }
  saved_atomics_ = std::move(saved);
}

bool RcResponder::may_read(const Frame& frame) const noexcept {
  return frame.dma_length == 0 ||
         qp_.environment().memory().covers(frame.rkey, frame.va, frame.dma_length, MemoryAccess::remote_read);
}

std::uint64_t RcResponder::read_packets(std::uint32_t length) const noexcept {
  const std::uint32_t mtu = qp_.path().mtu;
  return std::max<std::uint64_t>(1, (std::uint64_t{length} + mtu - 1) / mtu);
}

void RcResponder::push_read(std::uint64_t position, const Frame& frame, Repeated repeated) {
  answers_.push({.first = position,
                 .next = position,
                 .end = position + read_packets(frame.dma_length),
                 .va = frame.va,
                 .length = frame.dma_length,
                 .rkey = frame.rkey,
                 .repeated = repeated});
}

// A full ring means that the peer asks for more than we said we hold, unless the oldest answer is a repeated
// one that it no longer waits for: its request may have been late in the network.
bool RcResponder::make_room_for_answer() {
  take_answer_memory();
  if (!answers_.full()) return true;
  if (answers_.empty() || answers_.front().repeated == Repeated::no) return false;
  answers_.pop();
  return true;
}

void RcResponder::forget_answers_from(std::uint64_t position) {
  while (!answers_.empty() && answers_.back().first >= position) answers_.shrink(answers_.size() - 1);
  if (answers_.empty() || answers_.back().end <= position) return;
  Answer& cut = answers_.back();
  if (cut.next >= position) {
    answers_.shrink(answers_.size() - 1);
  } else {
    cut.end = position;
  }
}

// --- ACK and NAK.

void RcResponder::acknowledge() {
  if (tail_ == Tail::none) tail_ = Tail::ack;  // a NAK acknowledges what is before it
  wake();
}

void RcResponder::receiver_not_ready() {
  nak_sent_ = true;  // what follows is out of sequence, and the peer knows
  nak(static_cast<std::uint8_t>(kSyndromeRnrNak | qp_.path().min_rnr_timer), expected_);
}

void RcResponder::nak(std::uint8_t syndrome, std::uint64_t position) {
  tail_ = Tail::nak;
  nak_syndrome_ = syndrome;
  nak_position_ = position;
  if (syndrome == kSyndromeSequenceNak) qp_.note_loss();
  wake();
}

// A fault that ends the connection. Answers to what came before still leave, then the NAK; the queue pair
// itself is in error at once.
void RcResponder::fail(std::uint8_t syndrome, std::uint64_t position, Told told) {
  last_words_ = true;
  nak(syndrome, position);
  if (told == Told::by_event) {
    const bool access = syndrome == kSyndromeRemoteAccess;
    qp_.environment().raise(access ? NicEventKind::qp_access_error : NicEventKind::qp_request_error,
                            qp_.number());
  }
  qp_.to_error();
}

void RcResponder::wake() {
  if (sends_data() && qp_.holds_data()) return qp_.resume_later();
  const TxClass ready = tx_class();
  if (ready != TxClass::nothing) qp_.environment().activate(*this, ready);
}

// READ responses are data like any other: congestion control paces them.
bool RcResponder::sends_data() const noexcept {
  return !answers_.empty() && !answers_.front().is_atomic;
}

TxClass RcResponder::tx_class() const noexcept {
  if (sends_data()) return qp_.holds_data() ? TxClass::nothing : TxClass::data;
  return tail_ == Tail::none && answers_.empty() ? TxClass::nothing : TxClass::control;
}

void RcResponder::approach(Approach approach) const noexcept {
  if (approach == Approach::far) qp_.approach(RcHalf::responder);
}

Frame* RcResponder::produce() {
  if (sends_data()) {
    if (qp_.holds_data()) {
      qp_.resume_later();
      return nullptr;
    }
    Frame* frame = make_read_response();
    qp_.congestion().on_sent(qp_.environment().now(), frame->wire_bytes);
    if (sends_data() && qp_.holds_data()) qp_.resume_later();
    return frame;
  }
  if (!answers_.empty()) return make_atomic_acknowledge();
  return tail_ == Tail::none ? nullptr : make_tail();
}

// --- Frames.

Frame* RcResponder::make_read_response() {
  Answer& answer = answers_.front();
  RcEnvironment& environment = qp_.environment();
  const std::uint32_t mtu = qp_.path().mtu;
  const std::uint64_t offset = (answer.next - answer.first) * mtu;
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu, answer.length - offset));
  const std::uint64_t addr = answer.va + offset;
  if (bytes > 0 && !environment.memory().covers(answer.rkey, addr, bytes, MemoryAccess::remote_read)) {
    // The region was taken away in the middle of the response.
    const std::uint64_t position = answer.next;
    answers_.shrink(0);
    fail(kSyndromeRemoteAccess, position, Told::by_event);
    return make_tail();
  }
  const bool first = answer.next == answer.first;
  const bool last = answer.next + 1 == answer.end;
  BthOpcode opcode = last ? BthOpcode::read_response_last : BthOpcode::read_response_middle;
  if (first) opcode = last ? BthOpcode::read_response_only : BthOpcode::read_response_first;
  Frame* frame = qp_.make_frame(opcode, answer.next);
  if (bytes > 0) {
    read_payload(environment, *frame, {answer.rkey, addr, bytes}, carried(environment, offset));
  }
  frame->payload_bytes = bytes;
  frame->wire_bytes = wire_bytes(opcode, bytes);
  frame->syndrome = kSyndromeAck;
  frame->msn = msn_;
  ++answer.next;
  if (last) answers_.pop();
  return frame;
}

Frame* RcResponder::make_atomic_acknowledge() {
  const Answer answer = answers_.pop();
  Frame* frame = qp_.make_frame(BthOpcode::atomic_acknowledge, answer.first);
  frame->syndrome = kSyndromeAck;
  frame->msn = msn_;
  frame->atomic_original = answer.original;
  return frame;
}

void RcResponder::add_received_map(Frame& frame) {
  frame.payload = qp_.environment().frames().make_payload();
  reorder_.write_map(nak_position_, frame.payload->bytes.data());
  frame.payload_bytes = kReceivedMapBytes;
  frame.wire_bytes = wire_bytes(frame.opcode, kReceivedMapBytes);
}

Frame* RcResponder::make_tail() {
  NicCounters& counters = qp_.environment().counters();
  const bool is_ack = tail_ == Tail::ack;
  tail_ = Tail::none;
  unacknowledged_ = 0;
  ack_timer_.disarm();
  Frame* frame = qp_.make_frame(BthOpcode::acknowledge, is_ack ? expected_ - 1 : nak_position_);
  frame->syndrome = is_ack ? kSyndromeAck : nak_syndrome_;
  frame->msn = msn_;
  if (is_ack) {
    ++counters.acks_tx;
  } else if (nak_syndrome_ == kSyndromeSequenceNak) {
    ++counters.sequence_naks_tx;
    if (reorder_.size() > 0) add_received_map(*frame);
  } else if ((nak_syndrome_ & kSyndromeKindMask) == kSyndromeRnrNak) {
    ++counters.rnr_naks_tx;
  } else {
    ++counters.fatal_naks_tx;
  }
  return frame;
}

}  // namespace bx::sim
