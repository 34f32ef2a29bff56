// SPDX-License-Identifier: GPL-2.0-only
// What the responder does with packets that come early (loss_recovery.h), and its ACKs that nobody asked for.
#include <algorithm>

#include "sim/model/psn.h"
#include "sim/model/rc_queue_pair.h"
#include "sim/model/rc_responder.h"

namespace bx::sim {

RcResponder::~RcResponder() {
  reorder_.clear(qp_.environment().frames());
}

void RcResponder::keep_for_later(std::uint64_t position, const Frame& frame) {
  FramePool& pool = qp_.environment().frames();
  if (!reorder_.keep(pool, expected_, position, frame)) return;
  const std::uint64_t end = std::max(seen_end_, expected_);
  const std::uint64_t packets = frame.opcode == BthOpcode::read_request ? read_packets(frame.dma_length) : 1;
  seen_end_ = std::max(end, position + packets);
  // One NAK a hole. After an RNR NAK the peer comes back to the first one by itself.
  if (position > end && !nak_sent_) nak(kSyndromeSequenceNak, expected_);
}

void RcResponder::execute_kept() {
  FramePool& pool = qp_.environment().frames();
  while (reorder_.size() > 0) {
    Frame* frame = reorder_.take(pool, expected_);
    if (frame == nullptr) return;
    const std::uint64_t before = expected_;
    execute(*frame);
    pool.free(frame);
    if (expected_ == before) return;  // refused: the peer will send it again
  }
}

void RcResponder::note_unasked() {
  const RecoveryConfig& recovery = qp_.config().recovery;
  if (++unacknowledged_ >= recovery.ack_every) return acknowledge();
  if (ack_timer_.armed()) return;
  RcEnvironment& environment = qp_.environment();
  ack_timer_.arm(environment.now() + recovery.ack_delay,
                 [&](Picoseconds when) { environment.schedule_timer(qp_, RcTimer::delayed_ack, when); });
}

void RcResponder::on_ack_timer() {
  RcEnvironment& environment = qp_.environment();
  const auto post = [&](Picoseconds when) { environment.schedule_timer(qp_, RcTimer::delayed_ack, when); };
  if (ack_timer_.expired(environment.now(), post) && unacknowledged_ > 0) acknowledge();
}

}  // namespace bx::sim
