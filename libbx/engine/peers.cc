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
         hello.reads_max > 0 && hello.reads_max <= kCreditsMax && hello.qp != 0 && hello.weight > 0 &&
         hello.weight <= core::BudgetShare::kWeightMax && hello.credits_max <= kCreditsMax;
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
  auto made = make_peer(lanes_wanted());
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

// A peer with its lanes made and its receives posted, not yet connected.
Result<Peer*> Worker::make_peer(const LaneCounts& lanes) {
  if (peers_live_ == config_.peers_max) {
    return fail(ErrorCode::exhausted, ErrorScope::session, "peers.max is reached",
                static_cast<int>(config_.peers_max));
  }
  const std::uint32_t index = place_for_peer();
  if (index == config_.peers_max) {
    return fail(ErrorCode::exhausted, ErrorScope::session,
                "peers.max is reached: the application keeps messages of peers that are gone");
  }
  const auto receives =
      (shares_ != nullptr ? 0 : static_cast<std::uint32_t>(config_.credits_per_peer)) + core::kControlSlots;
  const std::uint32_t promised = receives_->posted() - static_cast<std::uint32_t>(surplus_);
  if (auto reserved = receives_->reserve(receives, promised + receives); !reserved) {
    return tl::unexpected<Error>(reserved.error());
  }
  auto peer = std::make_unique<Peer>(config_.lanes_fair != 0 ? FairQueue::kPlaces : 1, limits_.slot_bytes);
  peer->index = index;
  peer->data_lanes = lanes.data;
  peer->lane_count = lanes.data + (lanes.control ? 1 : 0);
  for (std::uint32_t number = 0; number < peer->lane_count; ++number) {
    if (auto lane = make_lane(*peer, number); !lane) {
      receives_->unreserve(receives);
      return tl::unexpected<Error>(lane.error());
    }
  }
  peer->incarnation = next_incarnation_++;
  const auto window = static_cast<std::uint32_t>(config_.credits_per_peer);
  peer->issuer = core::CreditIssuer(window, 0, shares_ != nullptr ? limits_.floor : window);
  peer->window_out = core::SendWindow(limits_.window_per_peer);
  peer->window_in =
      core::SendWindow(limits_.adaptive ? std::max(limits_.window_per_peer, config_.window_adaptive_max)
                                        : limits_.window_per_peer);
  if (limits_.adaptive) {
    peer->control_out = core::WindowControl(adaptive_window(config_, limits_.window_per_peer));
  }
  peer->session_windows.resize(
      limits_.window_per_session == core::SendWindow::kUnbounded ? 1 : kSessionsCountedMax,
      core::SendWindow(limits_.window_per_session));
  post_receives_for(*peer);
  for (PeerLane& each : peer->all_lanes()) peer_of_qp_.insert(each.lane->qp().address().qp, *peer);
  ++peers_live_;
  if (index == peers_.size()) peers_.emplace_back();
  peers_[index] = std::move(peer);
  return peers_[index].get();
}

// Receives left over from peers that are gone serve the newcomer first.
void Worker::post_receives_for(Peer& peer) noexcept {
  if (shares_ != nullptr) open_share(peer);
  surplus_ -=
      static_cast<std::int32_t>((shares_ != nullptr ? 0 : peer.issuer.posted()) + core::kControlSlots);
  for (; surplus_ < 0; ++surplus_) {
    BX_CHECK(receives_->post(), "reserve() promised a slot for every receive");
  }
  flush_receives();
}

wire::Hello Worker::hello_of(Peer& peer) const {
  const auto address_of = [&](std::uint32_t lane) { return peer.lanes[lane].lane->qp().address(); };
  const auto more_of = [&](std::uint32_t lane) {
    return wire::LaneAddress{static_cast<std::uint32_t>(address_of(lane).qp), address_of(lane).psn};
  };
  wire::MoreLanes more;
  for (std::uint32_t lane = 1; lane < peer.data_lanes; ++lane) more.at[more.count++] = more_of(lane);
  const fabric::QpAddress address = address_of(0);
  return {.version = wire::kVersion,
          .epoch = peer.epoch,
          .gid = address.gid,
          .qp = static_cast<std::uint32_t>(address.qp),
          .psn = address.psn,
          .mtu_bytes = limits_.mtu,
          .credits = peer.issuer.posted(),
          .control_slots = core::kControlSlots,
          .receive_bytes = limits_.slot_bytes,
          .reads_max = limits_.reads_max,
          .capabilities = wire::kCapabilityBatches | wire::kCapabilityStreams |
                          wire::kCapabilityCreditRequests | wire::kCapabilityOfferBatches,
          .instance = instance_,
          .credits_max = peer.issuer.window() > peer.issuer.posted() ? peer.issuer.window() : 0,
          .weight = static_cast<std::uint32_t>(config_.window_weight),
          .more_lanes = more,
          .control_lane = peer.has_control_lane() ? more_of(peer.data_lanes) : wire::LaneAddress{}};
}

Result<> Worker::open_peer(Peer& peer, const wire::Hello& hello) {
  if (auto settled = settle_lanes(peer, hello); !settled) return settled;
  peer.credits = core::CreditLedger(hello.credits);
  const bool requests = (hello.capabilities & wire::kCapabilityCreditRequests) != 0;
  peer.credit_window = requests ? std::max(hello.credits, hello.credits_max) : hello.credits;
  peer.asks = requests && (config_.credits_ask != 0 || peer.credit_window > hello.credits);
  if (!requests && shares_ != nullptr) peer.issuer.keep_to_initial();
  peer.instance = hello.instance;
  peer.set_weight(hello.weight);
  peer.transfer_limits = {
      .header_bytes = wire::kHeaderBytes,
      .inline_max = limits_.inline_max,
      .eager_max = std::min<std::uint64_t>({config_.eager_max, hello.receive_bytes - wire::kEnvelopeBytesMax,
                                            limits_.message_max - wire::kEnvelopeBytesMax}),
      .prefer_granted_write =
          config_.rendezvous_policy == static_cast<std::uint64_t>(RendezvousPolicy::granted_write)};
  const bool batches = (hello.capabilities & wire::kCapabilityBatches) != 0;
  const auto batch_max = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(batches ? hello.receive_bytes : 0, limits_.message_max));
  for (PeerLane& each : peer.all_lanes()) each.lane->set_batch_max(batch_max);
  peer.takes_offer_batches = batches && (hello.capabilities & wire::kCapabilityOfferBatches) != 0;
  peer.takes_streams = (hello.capabilities & wire::kCapabilityStreams) != 0;
  peer.reads_max = std::min(limits_.reads_max, hello.reads_max);
  peer.mtu_bytes = std::min(limits_.mtu, hello.mtu_bytes);
  for (std::uint32_t number = 0; number < peer.lane_count; ++number) {
    PeerLane& lane = peer.lanes[number];
    const bool control = number == peer.data_lanes;
    const wire::LaneAddress at = control       ? hello.control_lane
                                 : number == 0 ? wire::LaneAddress{hello.qp, hello.psn}
                                               : hello.more_lanes.at[number - 1];
    if (!control) {
      lane.granted = Ring<GrantedChunk>(peer.reads_max);
      lane.grants = Ring<wire::WriteGrant>(peer.reads_max);
    }
    const auto connected = connect_lane(
        peer, lane, {.gid = hello.gid, .qp = fabric::QpNum{at.qp}, .psn = at.psn},
        static_cast<std::uint8_t>(control ? config_.path_control_traffic_class : config_.path_traffic_class));
    if (!connected) return connected;
  }
  if (peer.lane_count > 1) peer.issuer.set_unordered();
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
  return open_peer(peer, hello);
}

Result<> Worker::admit(Connection& connection, const wire::Hello& hello, wire::Reject& reject) {
  reject = {peers_live_ == config_.peers_max ? wire::RejectReason::peers_exhausted
                                             : wire::RejectReason::memory_exhausted,
            static_cast<std::uint32_t>(config_.peers_max)};
  const LaneCounts wanted = lanes_wanted();
  auto made = make_peer({std::min(wanted.data, static_cast<std::uint32_t>(hello.more_lanes.count) + 1),
                         wanted.control && hello.control_lane.qp != 0});
  if (!made) return tl::unexpected<Error>(made.error());
  Peer& peer = **made;
  peer.epoch = hello.epoch;
  peer.service = &services_[connection.service]->place;
  reject = {wire::RejectReason::incompatible, 0};
  if (auto opened = open_peer(peer, hello); !opened) {
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
  if (connection.role() != Role::opener) return;
  answer_waiters(*peers_[connection.peer]);
  watch_idle_peers();
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
  ++stats_.peers_failed;
  end_peer(peer, error);
}

// One lane that fails takes the others along: what a session may rely on (order, credits, the epoch) holds
// for the peer. The peer goes when all of them have drained.
void Worker::end_peer(Peer& peer, const Error& error) noexcept {
  peer.state = PeerState::failed;
  peer.error = error;
  peer.error.scope = std::max(error.scope, ErrorScope::session);
  peer.failed_in = stats_.turns;
  peer.receives = peer.issuer.posted() + core::kControlSlots;
  untidy_ = true;
  std::erase(starved_peers_, &peer);
  const std::uint32_t owed = std::exchange(peer.reposts_owed, 0);
  if (shares_ == nullptr) receives_owed_ -= owed;  // else it is owed to the pool
  peer.DirtyHook::unlink();
  peer.TransferHook::unlink();
  leave_windows(peer);
  for (PeerLane& each : peer.all_lanes()) {
    each.lane->fail([&](SendRecord&& record) { retire(peer, each, std::move(record), false); });
  }
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
  while (Outgoing* answer = peer.responses.pop_any()) {
    answers_.erase(*answer);
    --serving_;
  }
  peer.queued = 0;
  peer.stall.leave(in_turn_ ? now_ : reactor_.now());
  while (InTransfer* transfer = peer.done.pop_front()) in_transfers_.erase(transfer->handle);
  for (PeerLane& each : peer.all_lanes()) {
    while (!each.granted.empty()) {
      const GrantedChunk chunk = each.granted.pop();
      on_arrived(peer, chunk.length);
      if (InTransfer* transfer = in_transfers_.find(chunk.transfer)) transfer->cursor.on_done(chunk.length);
    }
    while (!each.grants.empty()) each.grants.pop();
  }
  peer.grants_waiting = 0;
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
  out_transfers_.for_each([&](core::SlotHandle handle, OutTransfer& transfer) {
    if (transfer.peer == peer->index) erase_out_transfer(handle);
  });
  if (peer->connection != nullptr) peer->connection->close();
  surplus_ += static_cast<std::int32_t>(peer->receives);
  if (shares_ != nullptr) {
    surplus_ -= static_cast<std::int32_t>(share_of(*peer).promised());  // the pool's
    close_share(*peer);
    if (!leavers_.empty()) receives_->set_listener(this);
    receives_->unreserve(core::kControlSlots);
  } else {
    receives_->unreserve(peer->issuer.window() + core::kControlSlots);
  }
  for (PeerLane& each : peer->all_lanes()) drop_lane(each);
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
    const bool quiet = peer->outstanding() == 0;
    if (quiet && drained && peer->failed_in < stats_.turns) {
      discard(peer);
    } else {
      untidy_ = true;
      if (quiet) soon = true;
      for (PeerLane& each : peer->all_lanes()) soon = each.lane->drain() || soon;
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
  if (idle_watch_.armed()) reactor_.cancel(idle_watch_);
  untidy_ = true;
  wake();
}

}  // namespace bx::engine
