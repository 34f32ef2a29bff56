// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/port.h"

#include <algorithm>

#include "libbx/base/check.h"
#include "sim/model/mailbox.h"
#include "sim/model/port_faults.h"

namespace bx::sim {
namespace {

constexpr std::uint64_t kQuantumBytes = 512 / 8;

// Events carry two words; a priority rides in the second.
void* as_argument(std::size_t priority) {
  return reinterpret_cast<void*>(priority);
}
std::size_t as_priority(void* argument) {
  return reinterpret_cast<std::size_t>(argument);
}

}  // namespace

Picoseconds pfc_quanta_time(std::uint16_t quanta, Rate rate) noexcept {
  return Serialiser(rate).time_for(std::uint64_t{quanta} * kQuantumBytes);
}

Port::Port(Engine& engine, FramePool& pool, PortOwner& owner, std::uint16_t index, Rate rate)
    : owner_(owner), index_(index), engine_(engine), pool_(pool), serialiser_(rate) {
  BX_CHECK(rate.bits_per_second > 0, "a port needs a rate");
}

void Port::connect(Port& a, Port& b, Picoseconds delay) {
  BX_CHECK(a.peer_ == nullptr && b.peer_ == nullptr && &a != &b, "a port is connected once, to another");
  BX_CHECK(a.rate() == b.rate(), "both ends of a link run at one rate");
  BX_CHECK(delay.count() >= 0, "a link delays by zero or more");
  a.peer_ = &b;
  b.peer_ = &a;
  a.delay_ = b.delay_ = delay;
}

PortCounters Port::counters() const noexcept {
  PortCounters counters = rare_;
  counters.rx_frames = rx_frames_;
  counters.rx_bytes = rx_bytes_;
  counters.tx_frames = tx_frames_;
  counters.tx_bytes = tx_bytes_;
  return counters;
}

Picoseconds Port::paused_time() const noexcept {
  Picoseconds sum = rare_.paused_time;
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    if (paused(p)) sum += engine_.now() - paused_since_[p];
  }
  return sum;
}

void Port::kick() {
  // A kick from inside next_frame() changes nothing.
  if (choosing_ || end_scheduled_) return;
  if (engine_.now() < busy_until_) return notice_at_end();
  settle();
  choosing_ = true;
  const NextFrame next = hooks_ == 0 ? owner_.next_frame(*this) : next_hooked();
  choosing_ = false;
  if (next.frame != nullptr) start(next);
}

void Port::settle() {
  if (!unsettled_ || engine_.now() < busy_until_) return;
  unsettled_ = false;
  owner_.transmitted(*this, tx_wire_bytes_, tx_priority_, tx_ingress_port_);
}

void Port::notice_at_end() {
  if (end_scheduled_ || engine_.now() >= busy_until_) return;
  end_scheduled_ = true;
  engine_.post(busy_until_ - engine_.now(), &on_transmitted, this);
}

void Port::start(const NextFrame& next) {
  BX_CHECK(peer_ != nullptr, "a port sends only when it is connected");
  Frame* const frame = next.frame;
  const Picoseconds serialisation = serialiser_.time_for(frame->wire_bytes);
  Picoseconds late{};
  const bool goes = hooks_ == 0 || start_hooked(frame, serialisation, late);
  tx_wire_bytes_ = frame->wire_bytes;
  tx_priority_ = frame->priority;
  tx_ingress_port_ = frame->ingress_port;
  ++tx_frames_;
  tx_bytes_ += frame->wire_bytes;
  busy_until_ = engine_.now() + serialisation;
  unsettled_ = true;
  if (next.notice == Notice::at_end) {
    end_scheduled_ = true;
    engine_.post(serialisation, &on_transmitted, this);
  }
  if (!goes) {
    pool_.free(frame);
    return;
  }
  const Picoseconds way = serialisation + delay_ + late;
  if ((hooks_ & kCrosses) != 0) {
    mailbox_->send((engine_.now() + way).count(), *peer_, frame, pool_);
  } else {
    engine_.post(way, &on_delivered, peer_, frame);
  }
}

NextFrame Port::next_hooked() {
  if ((hooks_ & kInjecting) == 0) return owner_.next_frame(*this);
  Frame* frame = injected_.pop();
  if (injected_.empty()) hooks_ = static_cast<std::uint8_t>(hooks_ & ~kInjecting);
  return {frame, Notice::at_end};
}

bool Port::start_hooked(Frame* frame, Picoseconds serialisation, Picoseconds& late) {
  if ((hooks_ & kCut) != 0) {
    ++rare_.link_losses;
    return false;
  }
  FrameFate fate;
  if (faults_ != nullptr) fate = faults_->apply(*frame);
  if (tap_ != nullptr) tap_->on_frame(*this, Direction::sent, *frame);
  if (fate.lost) return false;
  late = fate.late;
  if (!fate.overtaken) {
    // Behind what is late already, unless that is to be overtaken.
    const Picoseconds earliest = fifo_delivery_ - engine_.now() - serialisation - delay_;
    late = std::max(late, earliest);
    fifo_delivery_ = engine_.now() + serialisation + delay_ + late;
  }
  tx_late_ = late;
  hooks_ = static_cast<std::uint8_t>(late.count() != 0 ? hooks_ | kLate : hooks_ & ~kLate);
  return true;
}

void Port::set_faults(PortFaults* faults) noexcept {
  faults_ = faults;
  hooks_ = static_cast<std::uint8_t>(faults != nullptr ? hooks_ | kFaulty : hooks_ & ~kFaulty);
}

bool Port::loses_pauses() const noexcept {
  if ((hooks_ & kCut) != 0) return true;
  // Late ones, and frames that were on their way longer than the headroom was made for, are as bad as lost
  // ones.
  return faults_ != nullptr && (faults_->active(FaultKind::pause_loss) || faults_->active(FaultKind::delay) ||
                                faults_->active(FaultKind::reorder));
}

void Port::inject(Frame* frame) {
  injected_.push(frame);
  hooks_ = static_cast<std::uint8_t>(hooks_ | kInjecting);
  kick();
}

bool Port::deliver_hooked(Frame& frame) {
  if ((hooks_ & kLosing) != 0) {
    if (engine_.now() <= lose_until_) return false;
    hooks_ = static_cast<std::uint8_t>(hooks_ & ~kLosing);
  }
  if (tap_ != nullptr) tap_->on_frame(*this, Direction::received, frame);
  return true;
}

void Port::set_mailbox(Mailbox& mailbox) noexcept {
  mailbox_ = &mailbox;
  hooks_ = static_cast<std::uint8_t>(hooks_ | kCrosses);
}

void Port::set_tap(PortTap* tap) noexcept {
  tap_ = tap;
  hooks_ = static_cast<std::uint8_t>(tap != nullptr ? hooks_ | kTapped : hooks_ & ~kTapped);
}

void Port::set_link(LinkState state) {
  BX_CHECK(peer_ != nullptr, "only a link that is there can be cut");
  BX_CHECK((hooks_ & kCrosses) == 0, "links between partitions cannot be cut");
  if (state == link_state()) return;
  if (state == LinkState::down) {
    hooks_ = static_cast<std::uint8_t>(hooks_ | kCut);
    peer_->lose_until_ = busy_until_ + delay_ + tx_late_;
    peer_->hooks_ = static_cast<std::uint8_t>(peer_->hooks_ | kLosing);
    for (std::size_t p = 0; p < kPriorities; ++p) resume(p);
  } else {
    hooks_ = static_cast<std::uint8_t>(hooks_ & ~kCut);
  }
  owner_.link_changed(*this, state);
  // This end has forgotten what the other had paused.
  if (state == LinkState::up) peer_->owner_.pauses_lost(*peer_);
  kick();
}

void Port::approach(const Event& event, Approach approach) {
  if (event.fn == &on_delivered) {
    auto& port = *static_cast<Port*>(event.object);
    port.owner_.approach(port, static_cast<Frame*>(event.argument), approach);
  } else if (event.fn == &on_transmitted) {
    auto& port = *static_cast<Port*>(event.object);
    port.owner_.approach(port, nullptr, approach);
  }
}

void Port::on_transmitted(void* port, void* /*unused*/) {
  auto& self = *static_cast<Port*>(port);
  self.end_scheduled_ = false;
  self.settle();
  self.kick();
}

void Port::on_delivered(void* port, void* frame_argument) {
  auto& self = *static_cast<Port*>(port);
  auto* frame = static_cast<Frame*>(frame_argument);
  if (self.hooks_ != 0 && !self.deliver_hooked(*frame)) {
    ++self.peer_->rare_.link_losses;
    self.pool_.free(frame);
    return;
  }
  ++self.rx_frames_;
  self.rx_bytes_ += frame->wire_bytes;
  if (self.digest_ != nullptr) self.digest_->delivered(self.engine_.now(), *frame);
  if (frame->kind == FrameKind::pfc) {
    self.handle_pfc(*frame);
    self.pool_.free(frame);
    return;
  }
  self.owner_.receive(self, frame);
}

// IEEE 802.1Q-2018, 36.1.3.2: each enabled priority may not send for its time; time zero ends a pause. A
// frame that is being sent is finished.
void Port::handle_pfc(const Frame& frame) {
  bool pauses = false;
  const std::uint8_t paused_before = paused_;
  for (std::size_t p = 0; p < kPriorities; ++p) {
    if (((frame.pfc_enable >> p) & 1U) == 0) continue;
    if (frame.pfc_quanta[p] != 0) {
      pauses = true;
      ++pause_frames_rx_[p];
      pause(p, pfc_quanta_time(frame.pfc_quanta[p], rate()));
    } else {
      resume(p);
    }
  }
  ++(pauses ? rare_.pfc_pause_rx : rare_.pfc_resume_rx);
  const auto began = static_cast<std::uint8_t>(paused_ & ~paused_before);
  if (began != 0) owner_.pause_began(*this, began);
  if ((paused_before & ~paused_) != 0) kick();
}

void Port::pause(std::size_t priority, Picoseconds duration) {
  const Picoseconds now = engine_.now();
  if (!paused(static_cast<std::uint8_t>(priority))) {
    paused_ = static_cast<std::uint8_t>(paused_ | (1U << priority));
    paused_since_[priority] = now;
  }
  paused_until_[priority] = now + duration;
  // A check that is still to come and early enough serves this pause too.
  if (check_at_[priority] <= now || check_at_[priority] > paused_until_[priority]) {
    schedule_pause_check(priority);
  }
}

void Port::resume(std::size_t priority) {
  if (!paused(static_cast<std::uint8_t>(priority))) return;
  paused_ = static_cast<std::uint8_t>(paused_ & ~(1U << priority));
  rare_.paused_time += engine_.now() - paused_since_[priority];
}

void Port::schedule_pause_check(std::size_t priority) {
  check_at_[priority] = paused_until_[priority];
  engine_.post(check_at_[priority] - engine_.now(), &on_pause_check, this, as_argument(priority));
}

void Port::on_pause_check(void* port, void* priority_argument) {
  auto& self = *static_cast<Port*>(port);
  const std::size_t priority = as_priority(priority_argument);
  const Picoseconds now = self.engine_.now();
  if (!self.paused(static_cast<std::uint8_t>(priority))) return;
  if (now >= self.paused_until_[priority]) {
    self.resume(priority);
    self.kick();
  } else if (now >= self.check_at_[priority]) {
    // Refreshed since the check was scheduled.
    self.schedule_pause_check(priority);
  }
}

}  // namespace bx::sim
