// SPDX-License-Identifier: GPL-2.0-only
// The responder half of an RC queue pair: executes the peer's requests in PSN order and answers them (IBA
// 1.4, 9.7.3 to 9.7.5 and 9.9.3).
//
// Answers leave in PSN order. READ responses and atomic acknowledgements wait in answers_; behind them there
// is at most one ACK or NAK, the tail. An ACK covers everything before it, so ACKs coalesce by themselves: a
// tail that has not left yet is simply overtaken by events.
//
//      answers_: [READ 10..13] [atomic 14] [READ 20..83]   tail_: ACK or NAK
//
// Invariants: the ring of answers is sorted and its ranges do not overlap; at most one NAK a gap; a receive
// is held from the packet that takes it to its completion, which it gets exactly once.
#pragma once

#include <cstdint>
#include <vector>

#include "libbx/base/ring.h"
#include "sim/model/lazy_timer.h"
#include "sim/model/loss_recovery.h"
#include "sim/model/rc_environment.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

class RcQueuePair;

class RcResponder final : public TxSource {
 public:
  static constexpr std::uint32_t kReadsMax = 128;  // of rd_atomic_dest_max

  RcResponder(RcQueuePair& qp, std::uint32_t receive_segments_max);
  ~RcResponder();

  void start(std::uint8_t priority);  // to RTR; takes the memory for rd_atomic_dest_max answers
  void flush();                       // to ERR: a half-filled receive completes as flushed
  void clear();                       // to RESET
  void silence();                     // nothing leaves any more

  void set_priority(std::uint8_t priority);
  // Takes the memory for another number of answers, and keeps those that wait.
  void hold_answers(std::uint32_t count);

  void on_request(const Frame& frame);
  void on_ack_timer();

  // Something may have become sendable.
  void wake();

  TxClass tx_class() const noexcept override;
  Frame* produce() override;
  void approach(Approach approach) const noexcept override;

  // A receive half filled, or answers unsent.
  [[nodiscard]] bool busy() const noexcept {
    return receive_.held || !answers_.empty() || tail_ != Tail::none;
  }
  // Of selective repeat: that wait for those before them.
  [[nodiscard]] bool keeps_early_packets() const noexcept { return reorder_.size() > 0; }

 private:
  enum class Message : std::uint8_t { none, send, write };
  enum class Tail : std::uint8_t { none, ack, nak };
  enum class Repeated : std::uint8_t { no, yes };
  enum class Told : std::uint8_t { by_completion, by_event };
  struct Answer {
    std::uint64_t first = 0;  // positions [next, end) are still to be sent
    std::uint64_t next = 0;
    std::uint64_t end = 0;
    std::uint64_t va = 0;  // of `first`
    std::uint64_t original = 0;
    std::uint32_t length = 0;
    std::uint32_t rkey = 0;
    bool is_atomic = false;
    Repeated repeated = Repeated::no;  // for a duplicate request
  };
  struct SavedAtomic {
    std::uint64_t position = 0;
    std::uint64_t original = 0;
  };
  struct Receive {
    std::uint64_t id = 0;
    std::uint64_t length = 0;
    std::uint32_t segment_count = 0;
    bool held = false;
  };
  struct PayloadForm;

  void execute(const Frame& frame);
  void keep_for_later(std::uint64_t position, const Frame& frame);
  void execute_kept();
  void note_unasked();
  [[nodiscard]] std::uint64_t read_packets(std::uint32_t length) const noexcept;
  void on_payload(const Frame& frame);
  [[nodiscard]] bool begin_write(const Frame& frame);
  [[nodiscard]] bool place_send(const Frame& frame);
  [[nodiscard]] bool place_write(const Frame& frame, bool ends);
  void finish_message(const Frame& frame, const PayloadForm& form);
  void fail_to_invalidate();
  void on_read(const Frame& frame);
  void on_atomic(const Frame& frame);
  void on_duplicate(std::uint64_t position, const Frame& frame);
  void on_gap(std::uint64_t position, const Frame& frame);

  [[nodiscard]] bool take_receive();
  void complete_receive(WorkCompletion completion);
  [[nodiscard]] bool may_read(const Frame& frame) const noexcept;
  void push_read(std::uint64_t position, const Frame& frame, Repeated repeated);
  void take_answer_memory();
  void resize_answers(std::uint32_t count);
  [[nodiscard]] bool make_room_for_answer();
  void forget_answers_from(std::uint64_t position);
  void acknowledge();
  void receiver_not_ready();
  void nak(std::uint8_t syndrome, std::uint64_t position);
  void fail(std::uint8_t syndrome, std::uint64_t position, Told told);
  [[nodiscard]] bool sends_data() const noexcept;
  Frame* make_read_response();
  Frame* make_atomic_acknowledge();
  Frame* make_tail();
  void add_received_map(Frame& frame);

  RcQueuePair& qp_;
  Ring<Answer> answers_;
  std::vector<SavedAtomic> saved_atomics_;  // the latest, for duplicates
  std::uint64_t atomics_done_ = 0;
  std::vector<Segment> receive_segments_;
  Receive receive_{};
  std::uint64_t expected_ = 0;  // position of the next new packet
  std::uint32_t msn_ = 0;       // messages completed, 24 bits
  // The message whose packets are arriving.
  Message message_ = Message::none;
  std::uint64_t received_ = 0;
  std::uint64_t write_addr_ = 0;
  std::uint32_t write_length_ = 0;
  std::uint32_t write_rkey_ = 0;
  Tail tail_ = Tail::none;
  std::uint8_t nak_syndrome_ = 0;
  std::uint64_t nak_position_ = 0;
  ReorderBuffer reorder_;             // of selective repeat
  std::uint64_t seen_end_ = 0;        // behind the last packet that came
  std::uint32_t unacknowledged_ = 0;  // packets that did not ask, since the last ACK or NAK
  LazyTimer ack_timer_;
  bool nak_sent_ = false;    // for the present gap or receiver-not-ready: say it once
  bool last_words_ = false;  // failed by a NAK of ours: the answers before it, and it, still leave
};

}  // namespace bx::sim
