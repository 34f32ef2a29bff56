// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/stream_connection.h"

#include <algorithm>
#include <utility>

#include "libbx/providers/virtual/stream_world.h"
#include "libbx/providers/virtual/virtual_streams.h"

namespace bx::virtual_time {

using fabric::StreamState;

StreamConnection::Side::Side(StreamConnection& owner, VirtualStreams& at, Alarm::Fn deliver,
                             std::size_t buffer_bytes)
    : connection(owner), host(&at), space(buffer_bytes), alarm(at.world().alarms(), deliver, this) {}

StreamConnection::StreamConnection(StreamWorld& world, VirtualStreams& client, VirtualStreams& server,
                                   std::uint16_t port)
    : world_(world),
      port_(port),
      sides_{Side(*this, client, &on_arrival<kClient>, world.config().buffer_bytes),
             Side(*this, server, &on_arrival<kServer>, world.config().buffer_bytes)} {
  send(kClient, Kind::syn, 0);
}

std::size_t StreamConnection::write(std::size_t side, std::span<const std::byte> bytes) noexcept {
  Side& self = sides_[side];
  const bool open = self.state == StreamState::open || self.state == StreamState::peer_closed;
  if (!open || self.fin_sent || self.lane.size() >= kSegmentsMax) return 0;
  const std::size_t accepted = std::min(bytes.size(), self.space);
  if (accepted == 0) return 0;
  self.host->reactor().cpu().charge_tcp(world_.now(), accepted);
  self.space -= accepted;
  sides_[1 - side].received.push(bytes.first(accepted));
  send(side, Kind::data, accepted);
  return accepted;
}

std::size_t StreamConnection::read(std::size_t side, std::span<std::byte> out) noexcept {
  Side& self = sides_[side];
  const std::size_t taken = std::min(out.size(), self.arrived);
  if (taken == 0) return 0;
  self.host->reactor().cpu().charge_tcp(world_.now(), taken);
  self.received.pop(out.first(taken));
  self.arrived -= taken;
  self.owed += taken;
  send_credit(side);
  return taken;
}

void StreamConnection::close_write(std::size_t side) noexcept {
  Side& self = sides_[side];
  if (self.fin_sent || self.state == StreamState::reset) return;
  self.fin_sent = true;
  send(side, Kind::fin, 0);
}

void StreamConnection::reset(std::size_t side) noexcept {
  if (sides_[side].state == StreamState::reset) return;
  send_reset(side);
  become_reset(side);
}

void StreamConnection::let_go(std::size_t side) noexcept {
  close_write(side);
  sides_[side].user = nullptr;
  sides_[side].gone = true;
}

void StreamConnection::refuse() noexcept {
  sides_[kServer].gone = true;
  reset(kServer);
}

void StreamConnection::vanish(std::size_t side) noexcept {
  Side& self = sides_[side];
  static_cast<ListHook<PendingTag>&>(*this).unlink();
  reset(side);
  if (self.user != nullptr) self.user->forget_reactor();
  self.host = nullptr;
  self.gone = true;
}

bool StreamConnection::held() const noexcept {
  return sides_[kClient].user != nullptr || sides_[kServer].user != nullptr;
}

bool StreamConnection::dead() const noexcept {
  const bool quiet = std::ranges::all_of(sides_, [](const Side& side) {
    return side.user == nullptr && side.gone && side.lane.empty() && side.held_bytes == 0 && !side.held_fin;
  });
  return quiet && !static_cast<const ListHook<PendingTag>&>(*this).linked();
}

template <std::size_t kFrom>
void StreamConnection::on_arrival(void* side) {
  static_cast<Side*>(side)->connection.deliver(kFrom);
}

void StreamConnection::deliver(std::size_t from) noexcept {
  Side& sender = sides_[from];
  const bool was_full = sender.lane.size() >= kSegmentsMax;
  const Instant now = world_.now();
  while (!sender.lane.empty() && sender.lane.front().arrival <= now) {
    const Segment segment = sender.lane.pop();
    // TCP would send it again; here this direction says nothing more once something of it was lost.
    sender.mute = sender.mute || unheard();
    if (!sender.mute) handle(1 - from, segment);
  }
  if (!sender.lane.empty()) sender.alarm.arm(sender.lane.front().arrival);
  if (was_full) {
    send_credit(from);
    notify(from);
  }
  world_.reap(*this);
}

bool StreamConnection::unheard() const noexcept {
  return std::ranges::any_of(sides_,
                             [](const Side& side) { return side.host != nullptr && side.host->silent(); });
}

void StreamConnection::handle(std::size_t to, const Segment& segment) noexcept {
  Side& self = sides_[to];
  switch (segment.kind) {
    case Kind::syn:
      return handle_syn();
    case Kind::data:
      return handle_data(to, segment.bytes);
    case Kind::reset:
      return become_reset(to);
    case Kind::open:
      if (self.state != StreamState::connecting) return;
      self.state = StreamState::open;
      break;
    case Kind::credit:
      self.space += segment.bytes;
      break;
    case Kind::fin:
      if (self.state == StreamState::open) self.state = StreamState::peer_closed;
      break;
  }
  notify(to);
}

void StreamConnection::handle_syn() noexcept {
  Side& server = sides_[kServer];
  if (server.host == nullptr) return;  // vanished: its reset is on the way
  VirtualListener* listener = server.host->find_listener(port_);
  if (listener == nullptr || !listener->offer(*this)) return refuse();
  server.state = StreamState::open;
  send(kServer, Kind::open, 0);
}

void StreamConnection::handle_data(std::size_t to, std::size_t bytes) noexcept {
  Side& self = sides_[to];
  if (self.gone || self.state == StreamState::reset) {
    self.received.drop(std::min(bytes, self.received.size()));
    return send_reset(to);
  }
  self.arrived += bytes;
  notify(to);
}

void StreamConnection::send(std::size_t from, Kind kind, std::size_t bytes) noexcept {
  Side& self = sides_[from];
  const bool waits =
      (kind == Kind::data || kind == Kind::fin) && self.host != nullptr && self.host->reactor().dispatching();
  if (waits) {
    if (kind == Kind::data) self.held_bytes += bytes;
    if (kind == Kind::fin) self.held_fin = true;
    return self.host->reactor().ring(self);
  }
  if (kind != Kind::credit) send_held(self);  // they were first
  put_under_way(self, kind, bytes);
}

void StreamConnection::send_held(Side& self) noexcept {
  if (self.held_bytes > 0) put_under_way(self, Kind::data, std::exchange(self.held_bytes, 0));
  if (std::exchange(self.held_fin, false)) put_under_way(self, Kind::fin, 0);
}

void StreamConnection::put_under_way(Side& self, Kind kind, std::size_t bytes) noexcept {
  Instant leaves = world_.now();
  if (kind == Kind::data) leaves = self.host->transmit(bytes);
  Instant arrival = leaves + world_.config().latency;
  if (!self.lane.empty()) arrival = std::max(arrival, self.lane.back().arrival);
  self.lane.push({arrival, bytes, kind});
  if (self.lane.size() == 1) self.alarm.arm(arrival);
}

void StreamConnection::send_credit(std::size_t side) noexcept {
  Side& self = sides_[side];
  if (self.state == StreamState::reset || self.lane.size() >= kSegmentsMax) return;
  if (self.owed < std::max<std::size_t>(world_.config().buffer_bytes / kCreditFraction, 1)) return;
  send(side, Kind::credit, self.owed);
  self.owed = 0;
}

void StreamConnection::send_reset(std::size_t side) noexcept {
  if (sides_[side].reset_sent) return;
  sides_[side].reset_sent = true;
  send(side, Kind::reset, 0);
}

void StreamConnection::become_reset(std::size_t side) noexcept {
  Side& self = sides_[side];
  if (self.state == StreamState::reset) return;
  self.state = StreamState::reset;
  self.received.drop(self.arrived);
  self.arrived = 0;
  notify(side);
}

void StreamConnection::notify(std::size_t side) noexcept {
  if (sides_[side].user != nullptr) sides_[side].user->notify();
}

}  // namespace bx::virtual_time
