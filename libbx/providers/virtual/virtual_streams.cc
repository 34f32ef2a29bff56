// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/virtual_streams.h"

#include <utility>

namespace bx::virtual_time {

using fabric::StreamState;

VirtualStream::VirtualStream(StreamWorld& world, StreamConnection& connection, std::size_t side,
                             fabric::StreamEvents* events)
    : world_(world), connection_(connection), side_(side), events_(events) {
  connection.set_user(side, *this);
}

VirtualStream::~VirtualStream() {
  connection_.let_go(side_);
  world_.reap(connection_);
}

void VirtualStream::set_events(fabric::StreamEvents* events) noexcept {
  events_ = events;
  // The new listener has missed what came before it.
  if (events != nullptr && state() != StreamState::connecting) notify();
}

void VirtualStream::notify() noexcept {
  VirtualStreams* host = connection_.host(side_);
  if (events_ != nullptr && host != nullptr) host->reactor().submit(*this);
}

void VirtualStream::run_task(Instant) noexcept {
  if (events_ != nullptr) events_->on_stream(*this);  // may destroy this
}

VirtualListener::VirtualListener(VirtualStreams& host, std::uint16_t port, fabric::StreamAcceptor& acceptor)
    : host_(&host), world_(host.world()), port_(port), acceptor_(acceptor) {}

VirtualListener::~VirtualListener() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  if (host_ != nullptr) host_->remove_listener(port_);
  refuse_pending();
}

bool VirtualListener::offer(StreamConnection& connection) noexcept {
  if (pending_count_ >= world_.config().backlog_max) return false;
  ++pending_count_;
  pending_.push_back(connection);
  host_->reactor().submit(*this);
  return true;
}

void VirtualListener::vanish() noexcept {
  unlink();
  refuse_pending();
  host_ = nullptr;
}

void VirtualListener::refuse_pending() noexcept {
  while (StreamConnection* connection = pending_.pop_front()) {
    connection->refuse();
    world_.reap(*connection);
  }
  pending_count_ = 0;
}

void VirtualListener::run_task(Instant) noexcept {
  bool gone = false;
  bool* const outer = std::exchange(destroyed_, &gone);
  while (StreamConnection* connection = pending_.pop_front()) {
    --pending_count_;
    acceptor_.on_accept(
        std::make_unique<VirtualStream>(world_, *connection, StreamConnection::kServer, nullptr));
    if (gone) return;
  }
  destroyed_ = outer;
}

VirtualStreams::VirtualStreams(StreamWorld& world, VirtualReactor& reactor, std::string_view host)
    : world_(world), reactor_(reactor), name_(host), transmitter_(world.config().bytes_per_second) {
  world_.add_host(name_, *this);
}

VirtualStreams::~VirtualStreams() {
  for (const auto& [port, listener] : listeners_) listener->vanish();
  world_.vanish(*this);
  world_.remove_host(name_);
}

Result<std::unique_ptr<fabric::Listener>> VirtualStreams::listen(std::uint16_t port,
                                                                 fabric::StreamAcceptor& acceptor) {
  if (port == 0)
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, "port 0 cannot be listened on");
  if (listeners_.contains(port))
    return fail(ErrorCode::exhausted, ErrorScope::operation, "the port is taken");
  auto listener = std::make_unique<VirtualListener>(*this, port, acceptor);
  listeners_.emplace(port, listener.get());
  return listener;
}

Result<std::unique_ptr<fabric::Stream>> VirtualStreams::connect(std::string_view host, std::uint16_t port,
                                                                fabric::StreamEvents& events) {
  VirtualStreams* server = world_.find_host(host);
  if (server == nullptr) return fail(ErrorCode::unreachable, ErrorScope::operation, "no such host");
  StreamConnection& connection = world_.make_connection(*this, *server, port);
  return std::make_unique<VirtualStream>(world_, connection, StreamConnection::kClient, &events);
}

VirtualListener* VirtualStreams::find_listener(std::uint16_t port) noexcept {
  const auto found = listeners_.find(port);
  return found == listeners_.end() ? nullptr : found->second;
}

}  // namespace bx::virtual_time
