// SPDX-License-Identifier: BSD-3-Clause
// Connections and peers: how two workers come to share a lane, and how they part.
#include <algorithm>
#include <utility>

#include "libbx/base/path_mtu.h"
#include "libbx/engine/worker.h"
#include "libbx/wire/stream.h"

namespace bx::engine {
namespace {

constexpr std::size_t kHandshakesSpare =
    16;  // handshakes in progress beyond peers.max, to be refused politely
constexpr std::uint32_t kCreditsMax = 1U << 20U;  // more than any honest peer posts

bool acceptable(const wire::Hello& hello) noexcept {
  return is_path_mtu(hello.mtu_bytes) && hello.credits > 0 && hello.credits <= kCreditsMax &&
         hello.control_slots >= core::kControlSlots && hello.receive_bytes >= wire::kEnvelopeBytesMax &&
         hello.reads_max > 0 && hello.reads_max <= kCreditsMax && hello.qp != 0;
}

}  // namespace

Result<> Worker::serve(std::uint16_t port, Service& service, ServeOptions options) {
  if (closed_ || draining_) return fail(ErrorCode::closed, ErrorScope::session, "the worker is closed");
  auto listening =
      std::make_unique<Listening>(*this, static_cast<std::uint32_t>(services_.size()), service, options);
  auto listener = host_.streams().listen(port, *listening);
  if (!listener) return tl::unexpected<Error>(listener.error());
  listening->listener = std::move(*listener);
  services_.push_back(std::move(listening));
  return {};
}

void Worker::connect(ConnectAwaiter& awaiter, std::coroutine_handle<> awaiting) {
  awaiter.awaiting_ = awaiting;
  const auto finish = [&](Result<Session> result) {
    awaiter.result_ = std::move(result);
    connected_.push_back(awaiter);
    wake();
  };
  if (closed_) return finish(fail(ErrorCode::closed, ErrorScope::session, "the worker is closed"));
  const auto known = std::find_if(peers_.begin(), peers_.end(), [&](const auto& peer) {
    return peer != nullptr && peer->state != PeerState::failed && peer->service == nullptr &&
           peer->port == awaiter.port_ && peer->host == awaiter.host_;
  });
  if (known != peers_.end()) {
    if ((*known)->state == PeerState::open) return finish(open_session(**known));
    (*known)->waiters.push_back(awaiter);
    return;
  }
  auto made = make_peer();
  if (!made) return finish(tl::unexpected<Error>(made.error()));
  Peer& peer = **made;
  peer.host = awaiter.host_;
  peer.port = awaiter.port_;
  peer.epoch = next_epoch_++;
  peer.connection = std::make_unique<Connection>(
      *this, reactor_, Role::opener,
      reactor_.now() + Duration(static_cast<std::int64_t>(config_.connect_deadline)));
  peer.connection->peer = peer.index;
  peer.connection->set_hello(hello_of(peer));
  auto stream = host_.streams().connect(peer.host, peer.port, *peer.connection);
  if (!stream) {
    fail_peer(peer, stream.error());
    return finish(tl::unexpected<Error>(stream.error()));
  }
  peer.connection->attach(std::move(*stream));
  peer.waiters.push_back(awaiter);
}

// A peer with its lane made and its receives posted, not yet connected.
Result<Peer*> Worker::make_peer() {
  if (peers_live_ == config_.peers_max) {
    return fail(ErrorCode::exhausted, ErrorScope::session, "peers.max is reached",
                static_cast<int>(config_.peers_max));
  }
  const auto vacant = std::find(peers_.begin(), peers_.end(), nullptr);
  const auto index = static_cast<std::uint32_t>(vacant - peers_.begin());
  const auto receives = static_cast<std::uint32_t>(config_.credits_per_peer) + core::kControlSlots;
  const std::uint32_t promised = receives_->posted() - static_cast<std::uint32_t>(surplus_);
  if (auto reserved = receives_->reserve(receives, promised + receives); !reserved) {
    return tl::unexpected<Error>(reserved.error());
  }
  auto lane = Lane::create(device_, *arena_, *cq_, receives_->queue(), index,
                           {.depth = static_cast<std::uint32_t>(config_.send_depth),
                            .inline_max = limits_.inline_max,
                            .batch_max = static_cast<std::uint32_t>(config_.coalesce_max),
                            .control_reserve = static_cast<std::uint32_t>(config_.send_control_reserve),
                            .parts_max = limits_.parts_max});
  if (!lane) {
    receives_->unreserve(receives);
    return tl::unexpected<Error>(lane.error());
  }
  auto peer = std::make_unique<Peer>();
  peer->index = index;
  peer->incarnation = next_incarnation_++;
  peer->lane = std::move(*lane);
  peer->issuer = core::CreditIssuer(static_cast<std::uint32_t>(config_.credits_per_peer));
  peer->window_out = core::SendWindow(limits_.window_per_peer);
  peer->window_in = core::SendWindow(limits_.window_per_peer);
  post_receives_for(*peer);
  peer_of_qp_.insert(peer->lane->qp().address().qp, *peer);
  ++peers_live_;
  Peer* made = peer.get();
  if (vacant == peers_.end()) {
    peers_.push_back(std::move(peer));
  } else {
    *vacant = std::move(peer);
  }
  return made;
}

// Receives left over from peers that are gone serve the newcomer first.
void Worker::post_receives_for(Peer& peer) noexcept {
  surplus_ -= static_cast<std::int32_t>(peer.issuer.posted() + core::kControlSlots);
  for (; surplus_ < 0; ++surplus_) {
    BX_CHECK(receives_->post(), "reserve() promised a slot for every receive");
  }
  flush_receives();
}

wire::Hello Worker::hello_of(Peer& peer) const {
  const fabric::QpAddress address = peer.lane->qp().address();
  return {.version = wire::kVersion,
          .epoch = peer.epoch,
          .gid = address.gid,
          .qp = static_cast<std::uint32_t>(address.qp),
          .psn = address.psn,
          .mtu_bytes = limits_.mtu,
          .credits = peer.issuer.window(),
          .control_slots = core::kControlSlots,
          .receive_bytes = limits_.slot_bytes,
          .reads_max = limits_.reads_max,
          .capabilities = wire::kCapabilityBatches | wire::kCapabilityStreams,
          .instance = instance_};
}

Result<> Worker::open_lane(Peer& peer, const wire::Hello& hello) {
  peer.credits = core::CreditLedger(hello.credits);
  peer.credit_window = hello.credits;
  peer.instance = hello.instance;
  peer.transfer_limits = {
      .header_bytes = wire::kHeaderBytes,
      .inline_max = limits_.inline_max,
      .eager_max = std::min<std::uint64_t>({config_.eager_max, hello.receive_bytes - wire::kEnvelopeBytesMax,
                                            limits_.message_max - wire::kEnvelopeBytesMax}),
      .prefer_granted_write =
          config_.rendezvous_policy == static_cast<std::uint64_t>(RendezvousPolicy::granted_write)};
  peer.lane->set_batch_max(
      (hello.capabilities & wire::kCapabilityBatches) != 0
          ? static_cast<std::uint32_t>(std::min<std::uint64_t>(hello.receive_bytes, limits_.message_max))
          : 0);
  peer.takes_streams = (hello.capabilities & wire::kCapabilityStreams) != 0;
  peer.reads_max = std::min(limits_.reads_max, hello.reads_max);
  peer.granted = Ring<GrantedChunk>(peer.reads_max);
  peer.grants = Ring<wire::WriteGrant>(peer.reads_max);
  const fabric::QpAddress address{.gid = hello.gid, .qp = fabric::QpNum{hello.qp}, .psn = hello.psn};
  const fabric::PathConfig path{.mtu_bytes = std::min(limits_.mtu, hello.mtu_bytes),
                                .ack_timeout = static_cast<std::uint8_t>(config_.path_ack_timeout),
                                .retry_cnt = static_cast<std::uint8_t>(config_.path_retry_cnt),
                                .rnr_retry = static_cast<std::uint8_t>(config_.path_rnr_retry),
                                .min_rnr_timer = static_cast<std::uint8_t>(config_.path_min_rnr_timer),
                                .rd_atomic_max = static_cast<std::uint8_t>(peer.reads_max),
                                .rd_atomic_dest_max = static_cast<std::uint8_t>(limits_.reads_max),
                                .traffic_class = static_cast<std::uint8_t>(config_.path_traffic_class)};
  peer.remote = address;
  if (auto connected = peer.lane->qp().connect(address, path); !connected) return connected;
  peer.state = PeerState::open;
  ++stats_.peers_opened;
  return {};
}

Session Worker::open_session(Peer& peer) {
  const std::uint32_t id = ++peer.sessions;
  if (peer.session_stats.size() < kSessionsCountedMax) {
    peer.session_stats.push_back(std::make_unique<SessionStats>());
    peer.session_stats.back()->session = id;
  }
  return Session(*this, *peer.session_stats.back(), peer.index, peer.incarnation, id);
}

void Worker::on_accept(std::uint32_t service, std::unique_ptr<fabric::Stream> stream) noexcept {
  if (closed_ || handshakes_.size() >= config_.peers_max + kHandshakesSpare) {
    stream->reset();
    return;
  }
  auto connection = std::make_unique<Connection>(
      *this, reactor_, Role::acceptor,
      reactor_.now() + Duration(static_cast<std::int64_t>(config_.connect_deadline)));
  connection->service = service;
  Connection& made = *connection;
  handshakes_.push_back(std::move(connection));
  made.attach(std::move(stream));
  made.start();
}

Result<> Worker::on_hello(Connection& connection, const wire::Hello& hello, wire::Reject& reject) {
  if (!acceptable(hello)) {
    reject = {wire::RejectReason::incompatible, 0};
    return fail(ErrorCode::protocol, ErrorScope::session, "a handshake with impossible parameters");
  }
  if (hello.version != wire::kVersion) {
    reject = {wire::RejectReason::version, wire::kVersion};
    return fail(ErrorCode::protocol, ErrorScope::session, "the peer speaks another version");
  }
  if (connection.role() == Role::acceptor) return admit(connection, hello, reject);
  Peer& peer = *peers_[connection.peer];
  if (hello.epoch != peer.epoch)
    return fail(ErrorCode::protocol, ErrorScope::session, "the peer answered another epoch");
  return open_lane(peer, hello);
}

Result<> Worker::admit(Connection& connection, const wire::Hello& hello, wire::Reject& reject) {
  reject = {peers_live_ == config_.peers_max ? wire::RejectReason::peers_exhausted
                                             : wire::RejectReason::memory_exhausted,
            static_cast<std::uint32_t>(config_.peers_max)};
  auto made = make_peer();
  if (!made) return tl::unexpected<Error>(made.error());
  Peer& peer = **made;
  peer.epoch = hello.epoch;
  peer.service = &services_[connection.service]->place;
  reject = {wire::RejectReason::incompatible, 0};
  if (auto opened = open_lane(peer, hello); !opened) {
    fail_peer(peer, opened.error());
    return opened;
  }
  connection.peer = peer.index;
  connection.set_hello(hello_of(peer));
  const auto own = std::find_if(handshakes_.begin(), handshakes_.end(),
                                [&](const auto& c) { return c.get() == &connection; });
  peer.connection = std::move(*own);
  handshakes_.erase(own);
  return {};
}

void Worker::on_established(Connection& connection) {
  if (connection.role() == Role::opener) answer_waiters(*peers_[connection.peer]);
}

void Worker::answer_waiters(Peer& peer) {
  while (ConnectAwaiter* awaiter = peer.waiters.pop_front()) {
    awaiter->result_ = peer.state == PeerState::open ? Result<Session>(open_session(peer))
                                                     : tl::unexpected<Error>(peer.error);
    connected_.push_back(*awaiter);
  }
  wake();
}

void Worker::on_lost(Connection& connection, const Error& error) {
  if (connection.peer == Connection::kNoPeer) {
    log_refusal(error);
  } else if (Peer& peer = *peers_[connection.peer];
             peer.state == PeerState::open && connection.closed_by_peer()) {
    peer.left = true;
    peer.error = error;
  } else {
    fail_peer(peer, error);
  }
  untidy_ = true;  // cleared away in the next turn: this may be running inside the connection
  wake();
}

void Worker::fail_peer(Peer& peer, const Error& error) noexcept {
  if (peer.state == PeerState::failed) return;
  log_failure(peer, error);
  peer.state = PeerState::failed;
  peer.error = error;
  peer.error.scope = std::max(error.scope, ErrorScope::session);
  peer.failed_in = stats_.turns;
  peer.receives = peer.issuer.posted() + core::kControlSlots;
  ++stats_.peers_failed;
  untidy_ = true;
  std::erase(starved_peers_, &peer);
  receives_owed_ -= std::exchange(peer.reposts_owed, 0);
  peer.DirtyHook::unlink();
  peer.TransferHook::unlink();
  peer.lane->fail([&](SendRecord&& record) { retire(peer, std::move(record), false); });
  drop_peer_work(peer);
  answer_waiters(peer);
}

// Ends what concerns the peer above its lane. What the NIC may still touch (records of the lane, chunks being
// read) goes when the flush completions say so.
void Worker::drop_peer_work(Peer& peer) noexcept {
  deadlines_.for_each([&](Call& call) {
    if (call.peer == peer.index) complete(call, tl::unexpected<Error>(peer.error));
  });
  end_waiters(peer);
  drop_streams(peer);
  while (Outgoing* answer = peer.responses.pop_front()) {
    answers_.erase(*answer);
    --serving_;
  }
  peer.queued = 0;
  peer.stall.leave(in_turn_ ? now_ : reactor_.now());
  while (InTransfer* transfer = peer.done.pop_front()) in_transfers_.erase(transfer->handle);
  while (!peer.granted.empty()) {
    const GrantedChunk chunk = peer.granted.pop();
    peer.window_in.on_retired(chunk.length);
    window_in_.on_retired(chunk.length);
    if (InTransfer* transfer = in_transfers_.find(chunk.transfer)) transfer->cursor.on_done(chunk.length);
  }
  while (!peer.grants.empty()) peer.grants.pop();
  drop_deferred(peer);
  in_transfers_.for_each([&](core::SlotHandle, InTransfer& transfer) {
    if (transfer.peer != peer.index) return;
    transfer.unlink();
    transfer.cursor.stop();
    if (transfer.cursor.settled()) settle(transfer);
  });
}

void Worker::discard(std::unique_ptr<Peer>& peer) noexcept {
  departed_.add(*peer, now_);
  peer_of_qp_.erase(peer->lane->qp().address().qp);
  out_transfers_.for_each([&](core::SlotHandle handle, OutTransfer& transfer) {
    if (transfer.peer == peer->index) erase_out_transfer(handle);
  });
  if (peer->connection != nullptr) peer->connection->close();
  surplus_ += static_cast<std::int32_t>(peer->receives);
  receives_->unreserve(peer->issuer.window() + core::kControlSlots);
  peer.reset();
  --peers_live_;
  feed_starved();
}

// Clears away failed peers whose lanes have drained, and handshakes that came to nothing. What a peer had
// received before it failed may still be queued: its receives count as posted until the completion queue has
// been `drained` in a turn after the failure.
bool Worker::reap(bool drained) noexcept {
  std::erase_if(handshakes_, [](const auto& connection) { return connection->lost(); });
  untidy_ = false;
  bool soon = false;
  for (auto& peer : peers_) {
    if (peer == nullptr) continue;
    // What it sent before it left is in the completion queue, ahead of whatever may still come.
    if (peer->left && peer->state == PeerState::open) {
      if (drained) fail_peer(*peer, Error(peer->error));
      untidy_ = soon = true;
      continue;
    }
    if (peer->state != PeerState::failed) continue;
    const bool quiet = peer->lane->outstanding() == 0;
    if (quiet && drained && peer->failed_in < stats_.turns) {
      discard(peer);
    } else {
      untidy_ = true;
      if (quiet || peer->lane->drain()) soon = true;
    }
  }
  return soon;
}

void Worker::close() noexcept {
  if (closed_) return;
  closed_ = true;
  for (auto& listening : services_) listening->listener.reset();
  for (auto& connection : handshakes_) connection->close();
  for (auto& peer : peers_) {
    if (peer == nullptr) continue;
    if (peer->connection != nullptr) peer->connection->close();
    fail_peer(*peer, {ErrorCode::closed, ErrorScope::session, 0, "the worker was closed"});
  }
  untidy_ = true;
  wake();
}

}  // namespace bx::engine
