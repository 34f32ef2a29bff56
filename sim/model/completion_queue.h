// SPDX-License-Identifier: GPL-2.0-only
// A completion queue of fixed size. A completion takes its place when the NIC decides it and can be polled
// `write_back` later (DMA write and CQE write-back): the delay is a latency, entries do not wait for each
// other.
//
// Moderated (ibv_modify_cq(3)), an armed queue wakes its listener only for the count-th completion, or a
// period after the first.
//
// Invariants: completions are polled in the order of push(); at most one wake-up an arm(), from an event of
// its own; while a completion cannot be polled yet an event is pending, so that a run does not come to rest
// before it can be (the wake-up, or else one event for all of them); a push on a full queue is an overrun,
// after which nothing is accepted any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libbx/base/result.h"
#include "libbx/base/ring.h"
#include "sim/model/rc_environment.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

class CompletionListener {
 public:
  virtual void on_wake(CompletionQueue& cq) = 0;

 protected:
  ~CompletionListener() = default;
};

enum class ArmFor : std::uint8_t { any, solicited };

// What ibv_modify_cq(3) calls cq_count and cq_period.
struct CqModeration {
  std::uint16_t count = 0;  // 0 and 1: every completion
  std::uint16_t period_us = 0;
};

class CompletionQueue {
 public:
  // `listener` may be null for a queue that is only polled.
  CompletionQueue(RcEnvironment& environment, std::uint32_t number, std::uint32_t depth,
                  Picoseconds write_back, CompletionListener* listener);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  // Moves up to out.size() visible completions to `out`, oldest first.
  std::size_t poll(std::span<WorkCompletion> out);
  // ibv_req_notify_cq(3). False, and the queue is not armed, if a completion can be polled already: whoever
  // polls until empty and then arms misses nothing, for what came in between is seen here or wakes.
  // `solicited` also wakes for errors, and takes nothing back from a queue armed for `any`
  // (IBA 1.4, 11.4.2.2).
  bool arm(ArmFor what);
  // From the next arm() on. Errors: invalid_argument (a count without a period: the last completions would
  // never be told).
  Result<> moderate(const CqModeration& moderation);
  // ibv_resize_cq(3). Errors: invalid_argument (fewer than its present entries, or 0).
  Result<> resize(std::uint32_t depth);
  // Entries, visible or not.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t depth() const noexcept { return entries_.capacity(); }
  [[nodiscard]] bool overrun() const noexcept { return overrun_; }

  // For the NIC. `send_index` is that of the send-queue entry to free when the completion is polled.
  void push_send(const WorkCompletion& completion, std::uint64_t send_index);
  void push_receive(const WorkCompletion& completion);
  void on_wake(std::uint32_t ticket);
  std::uint32_t users = 0;  // queue pairs attached

 private:
  struct Entry {
    WorkCompletion completion{};
    Picoseconds visible_at{};
    std::uint64_t send_index = 0;
    bool is_send = false;
  };
  static constexpr std::uint32_t kNoWake = 0;  // in place of a ticket: the event of a queue that nobody armed
  void push(const Entry& entry);
  void keep_event_pending();
  [[nodiscard]] Picoseconds completed_at() const;
  void count_towards_wake(Picoseconds visible_at);
  [[nodiscard]] bool wakes(const WorkCompletion& completion) const noexcept;

  RcEnvironment& environment_;
  CompletionListener* listener_;
  Ring<Entry> entries_;
  Picoseconds write_back_;
  std::uint32_t number_;
  std::uint32_t ticket_ = kNoWake;  // of the latest arm(): a wake-up scheduled for an earlier one is void
  ArmFor armed_for_ = ArmFor::any;
  CqModeration moderation_{};
  std::uint32_t towards_wake_ = 0;  // completions since arm() that may wake
  bool armed_ = false;
  bool wake_scheduled_ = false;
  bool event_pending_ = false;  // one of kNoWake
  bool overrun_ = false;
};

}  // namespace bx::sim
