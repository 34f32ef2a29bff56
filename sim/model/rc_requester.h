// SPDX-License-Identifier: GPL-2.0-only
// The requester half of an RC queue pair: turns send-queue entries into request packets, takes the answers,
// retransmits and completes (IBA 1.4, 9.7.2 to 9.7.7 and 9.9).
//
//      head_            cursor_                queue.rung        positions (PSNs, see psn.h):
//   ----|==acknowledged..|--sent-->|--to send----|--unrung--        una_ <= high_ <= next_
//
// head_ is the oldest incomplete entry, and una_ the oldest unacknowledged position, always within head_ (or
// equal to next_ when nothing is outstanding). cursor_/cursor_packet_ is what is sent next; going back to
// una_ is all that retransmission is. A READ takes as many positions as its response has packets, and only
// its responses acknowledge it. A local invalidation takes none: it runs when it is at head_.
//
// Invariants: entries complete in post order, each exactly once; at most rd_atomic_max READs and atomics lie
// between head_ and cursor_; the ACK timer runs if and only if something sent asks for an answer; after an
// error nothing is sent any more.
#pragma once

#include <cstdint>
#include <span>

#include "sim/model/lazy_timer.h"
#include "sim/model/loss_recovery.h"
#include "sim/model/psn.h"
#include "sim/model/rc_environment.h"
#include "sim/model/send_queue.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

class RcQueuePair;

class RcRequester final : public TxSource {
 public:
  RcRequester(RcQueuePair& qp, const SendQueueConfig& config);

  // Writes requests into the send queue; returns the length of the prefix that fitted. In the error state
  // they complete as flushed.
  std::size_t post(std::span<const SendRequest> requests);
  void ring(Picoseconds visible_at, std::uint64_t entries) { queue_.ring(visible_at, entries); }
  // Posted, and no doorbell rung.
  [[nodiscard]] std::uint64_t unrung() const noexcept { return queue_.tail() - queue_.rung(); }
  [[nodiscard]] const SendEntry& first_unrung() const noexcept { return queue_[queue_.rung()]; }
  void retire(std::uint64_t index) noexcept { queue_.free_through(index, head_); }

  void start(std::uint8_t priority);  // from RTR to RTS
  // To SQD: messages that have begun are finished, no other begins. Calls qp.on_drained() when the last of
  // them is acknowledged, which may be at once.
  void drain();
  void resume();  // from SQD to RTS
  [[nodiscard]] bool drained() const noexcept { return una_ == next_; }
  void set_priority(std::uint8_t priority);  // in SQD
  void flush();                              // to ERR: everything outstanding completes as flushed
  void clear();                              // to RESET: everything outstanding is forgotten

  void on_response(const Frame& frame);
  void on_timer(RcTimer timer);
  // Something may have become sendable.
  void wake();

  TxClass tx_class() const noexcept override;
  Frame* produce() override;
  void approach(Approach approach) const noexcept override;

  [[nodiscard]] std::uint64_t outstanding() const noexcept { return queue_.tail() - head_; }
  [[nodiscard]] bool timer_armed() const noexcept { return ack_timer_.armed() || rnr_timer_.armed(); }

 private:
  void stop();
  void renew_retries() noexcept;
  // Something is to be sent, unless congestion control holds it.
  [[nodiscard]] bool sendable() const noexcept;
  [[nodiscard]] bool may_begin(const SendEntry& entry) const noexcept;
  // There may be more to send, now or when something else has happened.
  [[nodiscard]] bool has_more() const noexcept { return cursor_ != queue_.rung() || losses_.waiting() > 0; }
  [[nodiscard]] bool start_entry(SendEntry& entry);
  void run_invalidations();
  void stop_at_cursor(CompletionStatus fault);
  Frame* make_payload_packet(SendEntry& entry);
  [[nodiscard]] bool give_payload(Frame& frame, const SendEntry& entry, std::uint64_t offset,
                                  std::uint32_t bytes);
  Frame* make_read_request(SendEntry& entry);
  Frame* make_atomic_request(SendEntry& entry);
  [[nodiscard]] bool wants_ack(std::uint64_t position, bool last) noexcept;
  Frame* make_at_cursor();
  Frame* make_next(SendEntry& entry);
  void sent(std::uint64_t first, std::uint64_t end, std::uint64_t payload);
  void expect_answer(std::uint64_t end);
  void restart_ack_timer();
  void start_probe(std::uint64_t position);
  void take_probe();

  void on_acknowledge(std::uint64_t position, const Frame& frame);
  void on_read_response(std::uint64_t position, const Frame& frame);
  void on_atomic_acknowledge(std::uint64_t position, const Frame& frame);
  void on_rnr_nak(std::uint8_t code);
  void on_received_map(std::uint64_t position, const Frame& frame);
  Frame* resend_lost();
  [[nodiscard]] bool acknowledge_below(std::uint64_t limit);
  void take_data(std::uint64_t position);
  void progressed();
  void go_back_for_missing();
  void retry();
  void rewind();
  void fail_head(CompletionStatus status);
  void complete_head(CompletionStatus status);

  RcQueuePair& qp_;
  SendQueue queue_;
  LazyTimer ack_timer_;
  LazyTimer rnr_timer_;
  std::uint64_t head_ = 0;
  std::uint64_t cursor_ = 0;
  std::uint32_t cursor_packet_ = 0;  // packet (READ: response packet) within the cursor's entry
  std::uint32_t reads_in_flight_ = 0;
  std::uint32_t invalidations_ = 0;  // local ones between head_ and the queue's tail
  std::uint64_t una_ = 0;
  std::uint64_t high_ = 0;          // everything below has been sent at least once
  std::uint64_t next_ = 0;          // the next position to give to an entry
  std::uint64_t answer_below_ = 0;  // an answer that covers positions below this is asked for
  std::uint64_t ack_asked_ = 0;     // position of the latest packet that asked
  std::uint64_t went_back_to_ = 0;  // una_ at the latest NAK: one retransmission a gap, not one a NAK
  std::uint64_t probe_ = 0;         // position of the packet whose round trip is being measured, or 0
  Picoseconds probe_sent_{};
  std::uint64_t window_ = kPsnWindow;  // positions that may be outstanding
  LossMap losses_;                     // of selective repeat
  std::uint8_t retries_left_ = 0;
  std::uint8_t rnr_retries_left_ = 0;
  bool running_ = false;
  bool draining_ = false;  // in SQD
  bool rnr_waiting_ = false;
  CompletionStatus fault_ = CompletionStatus::success;  // local fault of the entry at the cursor
};

}  // namespace bx::sim
