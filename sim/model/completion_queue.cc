// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/completion_queue.h"

#include <cerrno>
#include <utility>

#include "sim/model/nic_costs.h"

namespace bx::sim {

CompletionQueue::CompletionQueue(RcEnvironment& environment, std::uint32_t number, std::uint32_t depth,
                                 Picoseconds write_back, CompletionListener* listener)
    : environment_(environment),
      listener_(listener),
      entries_(depth),
      write_back_(write_back),
      number_(number) {}

std::size_t CompletionQueue::poll(std::span<WorkCompletion> out) {
  // What a completion covers is in memory before software sees it, whatever order events of one instant have.
  if (NicCosts* costs = environment_.costs(); costs != nullptr) costs->land_due_writes();
  const Picoseconds now = environment_.now();
  std::size_t count = 0;
  while (count < out.size() && !entries_.empty() && entries_.front().visible_at <= now) {
    const Entry entry = entries_.pop();
    if (entry.is_send) environment_.retire(entry.completion.qp, entry.send_index);
    out[count++] = entry.completion;
  }
  return count;
}

bool CompletionQueue::arm(ArmFor what) {
  if (!entries_.empty() && entries_.front().visible_at <= environment_.now()) return false;
  if (!armed_ || armed_for_ == ArmFor::solicited) armed_for_ = what;
  armed_ = true;
  wake_scheduled_ = false;
  towards_wake_ = 0;
  if (++ticket_ == kNoWake) ++ticket_;
  for (std::size_t i = 0; i < entries_.size() && !wake_scheduled_; ++i) {
    if (wakes(entries_[i].completion)) count_towards_wake(entries_[i].visible_at);
  }
  keep_event_pending();
  return true;
}

// When a completion that is decided now can be polled.
Picoseconds CompletionQueue::completed_at() const {
  NicCosts* costs = environment_.costs();
  return costs != nullptr ? costs->completion_at() : environment_.now() + write_back_;
}

void CompletionQueue::push_send(const WorkCompletion& completion, std::uint64_t send_index) {
  push({completion, completed_at(), send_index, true});
}

void CompletionQueue::push_receive(const WorkCompletion& completion) {
  push({completion, completed_at(), 0, false});
}

void CompletionQueue::push(const Entry& entry) {
  if (overrun_) return;
  if (entries_.full()) {
    overrun_ = true;
    environment_.raise(NicEventKind::cq_overrun, number_);
    return;
  }
  entries_.push(entry);
  ++environment_.counters().completions;
  if (armed_ && !wake_scheduled_ && wakes(entry.completion)) count_towards_wake(entry.visible_at);
  keep_event_pending();
}

void CompletionQueue::count_towards_wake(Picoseconds visible_at) {
  if (++towards_wake_ >= moderation_.count) {
    wake_scheduled_ = true;
    environment_.schedule_wake(*this, ticket_, visible_at);
  } else if (towards_wake_ == 1) {
    environment_.schedule_wake(*this, ticket_, visible_at + microseconds{moderation_.period_us});
  }
}

Result<> CompletionQueue::moderate(const CqModeration& moderation) {
  if (moderation.count > 1 && moderation.period_us == 0) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation,
                "moderation by count needs a period: the last completions would never be told", EINVAL);
  }
  moderation_ = moderation;
  return {};
}

Result<> CompletionQueue::resize(std::uint32_t depth) {
  if (depth == 0 || depth < entries_.size()) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation,
                "a completion queue cannot be smaller than what waits in it", EINVAL);
  }
  Ring<Entry> entries(depth);
  while (!entries_.empty()) entries.push(entries_.pop());
  entries_ = std::move(entries);
  return {};
}

// Whichever event comes next calls again, so the last completion's turn comes too.
void CompletionQueue::keep_event_pending() {
  if (wake_scheduled_ || event_pending_ || entries_.empty()) return;
  const Picoseconds last = entries_.back().visible_at;
  if (last <= environment_.now()) return;
  event_pending_ = true;
  environment_.schedule_wake(*this, kNoWake, last);
}

bool CompletionQueue::wakes(const WorkCompletion& completion) const noexcept {
  return armed_for_ == ArmFor::any || completion.solicited || completion.status != CompletionStatus::success;
}

void CompletionQueue::on_wake(std::uint32_t ticket) {
  if (ticket == kNoWake) {
    event_pending_ = false;
    return keep_event_pending();
  }
  if (!armed_ || ticket != ticket_) return;
  armed_ = false;
  wake_scheduled_ = false;
  keep_event_pending();
  if (listener_ != nullptr) listener_->on_wake(*this);
}

}  // namespace bx::sim
