// SPDX-License-Identifier: GPL-2.0-only
// The switch's pauses: those that it sends, those that it refreshes, and the watch over those that it gets.
#include "sim/model/switch_side.h"

namespace bx::sim {

void Switch::send_xoff(Side& side, std::uint8_t priority) {
  ++side.ingress[priority].xoffs;
  if (observer_ != nullptr) observer_->on_xoff(side.port.index(), priority);
  request_pfc(side, priority);
  if ((side.refresh_scheduled & priority_bit(priority)) == 0) {
    schedule_refresh(side, priority, side.refresh_interval);
  }
}

// What the peer is told is what holds when the frame can leave: an XOFF and an XON that follow each other
// while the port is busy become one frame.
void Switch::request_pfc(Side& side, std::uint8_t priority) {
  side.pfc_pending = static_cast<std::uint8_t>(side.pfc_pending | priority_bit(priority));
  side.pause_sent[priority] = engine_.now();
  side.port.kick();
}

Frame* Switch::make_pfc(Side& side) {
  Frame* frame = pool_.make();
  frame->kind = FrameKind::pfc;
  frame->wire_bytes = kMinimumWireBytes;
  frame->priority = kPriorities - 1;
  frame->ingress_port = kOwnFrame;
  frame->pfc_enable = side.pfc_pending;
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    if ((side.pfc_pending & priority_bit(p)) == 0) continue;
    const bool xoff = buffer_.xoff(side.port.index(), p);
    frame->pfc_quanta[p] = xoff ? config_.pause_quanta : std::uint16_t{0};
    if (!xoff) side.unheard = static_cast<std::uint8_t>(side.unheard & ~priority_bit(p));
    ++(xoff ? side.ingress[p].pause_frames : side.ingress[p].resume_frames);
  }
  side.pfc_pending = 0;
  return frame;
}

void Switch::schedule_refresh(Side& side, std::uint8_t priority, Picoseconds delay) {
  side.refresh_scheduled = static_cast<std::uint8_t>(side.refresh_scheduled | priority_bit(priority));
  engine_.post(delay, &on_refresh, &side, reinterpret_cast<void*>(std::uintptr_t{priority}));
}

void Switch::on_refresh(void* side_argument, void* priority_argument) {
  auto& side = *static_cast<Side*>(side_argument);
  const auto priority = static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(priority_argument));
  Switch& self = side.owner;
  side.refresh_scheduled = static_cast<std::uint8_t>(side.refresh_scheduled & ~priority_bit(priority));
  if (!self.buffer_.xoff(side.port.index(), priority)) return;
  // One event follows many pauses: this one may have begun since.
  const Picoseconds due = side.pause_sent[priority] + side.refresh_interval;
  if (due <= self.engine_.now()) {
    self.request_pfc(side, priority);
    self.schedule_refresh(side, priority, side.refresh_interval);
  } else {
    self.schedule_refresh(side, priority, due - self.engine_.now());
  }
}

// --- The watchdog.

void Switch::pause_began(Port& port, std::uint8_t priorities) {
  Side& side = sides_[port.index()];
  if (side.watchdogs == nullptr) return;
  const auto fresh = static_cast<std::uint8_t>(priorities & ~side.watched);
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    if ((fresh & priority_bit(p)) != 0) (*side.watchdogs)[p].arm(side.look(p));
  }
  if (side.watched == 0) schedule_watch(side);
  side.watched = static_cast<std::uint8_t>(side.watched | fresh);
}

void Switch::schedule_watch(Side& side) {
  engine_.post(config_.watchdog.poll, &on_watch, &side);
}

void Switch::on_watch(void* side_argument, void* /*unused*/) {
  auto& side = *static_cast<Side*>(side_argument);
  std::uint8_t still = 0;
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    if ((side.watched & priority_bit(p)) != 0 && side.owner.watch(side, p)) {
      still = static_cast<std::uint8_t>(still | priority_bit(p));
    }
  }
  side.watched = still;
  if (still != 0) side.owner.schedule_watch(side);
}

bool Switch::watch(Side& side, std::uint8_t priority) {
  QueueWatchdog& watchdog = (*side.watchdogs)[priority];
  std::uint8_t& mask = config_.watchdog.action == WatchdogAction::drop ? side.discarding : side.ignore_pause;
  switch (watchdog.poll(config_.watchdog, side.look(priority))) {
    case WatchdogVerdict::storm:
      ++side.queues[priority].counters.storms;
      mask = static_cast<std::uint8_t>(mask | priority_bit(priority));
      if (config_.watchdog.action == WatchdogAction::drop) {
        flush(side, priority, side.queues[priority].counters.watchdog_drops);
      }
      side.port.kick();
      break;
    case WatchdogVerdict::restored:
      mask = static_cast<std::uint8_t>(mask & ~priority_bit(priority));
      side.port.kick();
      break;
    case WatchdogVerdict::nothing:
      break;
  }
  return watchdog.storm() || side.port.paused(priority);
}

void Switch::flush(Side& side, std::uint8_t priority, std::uint64_t& counter) {
  settle();  // which pauses end depends on the whole buffer
  Queue& queue = side.queues[priority];
  while (!queue.frames.empty()) {
    Frame* frame = queue.frames.pop();
    if (buffer_.release(frame->ingress_port, priority, frame->wire_bytes)) {
      request_pfc(sides_[frame->ingress_port], priority);
    }
    drop(frame, counter);
  }
  queue.counters.bytes = 0;
  side.scheduler.emptied(priority);
  side.waiting = static_cast<std::uint8_t>(side.waiting & ~priority_bit(priority));
}

// --- Links.

void Switch::link_changed(Port& port, LinkState state) {
  Side& side = sides_[port.index()];
  if (state == LinkState::down) {
    for (std::uint8_t p = 0; p < kPriorities; ++p) flush(side, p, side.queues[p].counters.link_drops);
    return;
  }
  pauses_lost(port);
}

void Switch::pauses_lost(Port& port) {
  Side& side = sides_[port.index()];
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    if (!buffer_.xoff(port.index(), p)) continue;
    side.unheard = static_cast<std::uint8_t>(side.unheard | priority_bit(p));
    request_pfc(side, p);
  }
}

}  // namespace bx::sim
