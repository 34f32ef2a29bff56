// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/pause_faults.h"

namespace bx::sim {

PauseSender::PauseSender(Engine& engine, FramePool& pool, Port& port)
    : engine_(engine), pool_(pool), port_(port) {}

void PauseSender::pause(std::uint8_t priorities) {
  const auto told = static_cast<std::uint8_t>(priorities | priorities_);
  if (priorities == priorities_) return;
  priorities_ = priorities;
  send(told);
}

void PauseSender::send(std::uint8_t enable) {
  Frame* frame = pool_.make();
  frame->kind = FrameKind::pfc;
  frame->wire_bytes = kMinimumWireBytes;
  frame->priority = kPriorities - 1;
  frame->pfc_enable = enable;
  for (std::size_t p = 0; p < kPriorities; ++p) {
    if (((priorities_ >> p) & 1U) != 0) frame->pfc_quanta[p] = kQuanta;
  }
  ++frames_;
  ++ticket_;
  if (priorities_ != 0) {
    engine_.post(pfc_quanta_time(kQuanta, port_.rate()) / 2, &on_refresh, this,
                 reinterpret_cast<void*>(static_cast<std::uintptr_t>(ticket_)));
  }
  port_.inject(frame);
}

void PauseSender::on_refresh(void* sender, void* ticket) {
  auto& self = *static_cast<PauseSender*>(sender);
  if (self.priorities_ != 0 && self.ticket_ == reinterpret_cast<std::uintptr_t>(ticket)) {
    self.send(self.priorities_);
  }
}

void SlowReceiver::start(Rate rate) {
  memory_ = Serialiser(rate);
  slow_ = true;
  if (linked_) return;
  linked_ = true;
  next_ = nic_.filter();
  nic_.set_filter(this);
}

void SlowReceiver::stop() {
  slow_ = false;
  while (!waiting_.empty()) hand_on(waiting_.pop());
  bytes_ = 0;
  pauses_.pause(0);
  leave();
}

void SlowReceiver::leave() noexcept {
  if (!linked_ || nic_.filter() != this) return;
  nic_.set_filter(next_);
  linked_ = false;
}

void SlowReceiver::hand_on(Frame* frame) {
  if (next_ != nullptr) return next_->filter(nic_, frame);
  nic_.accept(frame);
}

void SlowReceiver::filter(Nic& /*nic*/, Frame* frame) {
  if (!slow_) return hand_on(frame);
  bytes_ += frame->wire_bytes;
  priorities_ = static_cast<std::uint8_t>(priorities_ | (1U << frame->priority));
  ++frames_held_;
  waiting_.push(frame);
  if (bytes_ > kXoffBytes) pauses_.pause(priorities_);
  if (!writing_) write_next();
}

void SlowReceiver::write_next() {
  if (waiting_.empty()) return;
  writing_ = true;
  engine_.post(memory_.time_for(waiting_.front()->wire_bytes), &on_written, this);
}

void SlowReceiver::on_written(void* receiver, void* /*unused*/) {
  auto& self = *static_cast<SlowReceiver*>(receiver);
  self.writing_ = false;
  if (self.waiting_.empty()) return;  // stopped
  Frame* frame = self.waiting_.pop();
  self.bytes_ -= frame->wire_bytes;
  if (self.bytes_ <= kXonBytes) self.pauses_.pause(0);
  self.hand_on(frame);
  self.write_next();
}

}  // namespace bx::sim
