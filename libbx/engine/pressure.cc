// SPDX-License-Identifier: BSD-3-Clause
// Back-pressure on callers as a state: what a call that is started now would meet, and who waits for that to
// change. Nobody is asked while nobody waits.
#include <algorithm>
#include <utility>

#include "libbx/engine/worker.h"

namespace bx::engine {

// Calls to the peer that would leave at once, as far as can be known without their sizes.
std::uint32_t Worker::room_for_calls(const Peer& peer) const noexcept {
  if (peer.queued > 0 || !peer.done.empty() || peer.grants_waiting > 0 || !peer.window_out.admits(1)) {
    return 0;
  }
  const std::uint32_t credits = peer.credits.available();
  std::uint32_t room =
      std::min(credits - std::min(credits, core::kCreditsReserved), calls_.capacity() - calls_.size());
  for (const PeerLane& each : peer.all_lanes().first(peer.data_lanes)) {  // whichever the call goes by
    room = std::min(room, each.lane->data_slots());
  }
  return room;
}

// Why a call over the session is refused now.
Error Worker::refusal_of(const Session& session) const noexcept {
  const Peer* peer = session.peer_ < peers_.size() ? peers_[session.peer_].get() : nullptr;
  if (closed_ || peer == nullptr || peer->incarnation != session.incarnation_) {
    return {ErrorCode::closed, ErrorScope::session, 0, "the session is closed"};
  }
  if (peer->state != PeerState::open) return peer->error;
  return {ErrorCode::exhausted, ErrorScope::operation, static_cast<int>(calls_.capacity()),
          "calls.max calls are outstanding"};
}

Pressure Worker::pressure_of(const Session& session) const noexcept {
  const Peer* peer = session.peer_ < peers_.size() ? peers_[session.peer_].get() : nullptr;
  if (closed_ || peer == nullptr || peer->incarnation != session.incarnation_ ||
      peer->state != PeerState::open) {
    return Pressure::closed;
  }
  if (calls_.full()) return Pressure::full;
  return room_for_calls(*peer) > 0 ? Pressure::none : Pressure::waiting;
}

void Worker::await_ready(const Session& session, Waiter& waiter, std::coroutine_handle<> awaiting) noexcept {
  waiter.awaiting_ = awaiting;
  if (pressure_of(session) == Pressure::closed) {
    return resume(waiter, tl::unexpected<Error>(refusal_of(session)));
  }
  peers_[session.peer_]->ready_waiters.push_back(waiter);
  awaiting_ready_ = true;
}

void Worker::resume(Waiter& waiter, const Result<>& result) noexcept {
  waiter.result_ = result;
  resumed_.push_back(waiter);
  wake();
}

void Worker::resume_waiters() noexcept {
  IntrusiveList<Waiter> batch;
  batch.splice_back(resumed_);
  while (Waiter* waiter = batch.pop_front()) {
    ++work_.handlers;
    waiter->awaiting_.resume();
  }
}

// At the end of a turn. Those who are resumed and do not call leave the room to the next: there is another
// turn.
void Worker::tell_ready() noexcept {
  awaiting_ready_ = false;
  for (const auto& peer : peers_) {
    if (peer == nullptr || peer->ready_waiters.empty()) continue;
    for (std::uint32_t room = room_for_calls(*peer); room > 0 && !peer->ready_waiters.empty(); --room) {
      resume(*peer->ready_waiters.pop_front(), {});
    }
    awaiting_ready_ = awaiting_ready_ || !peer->ready_waiters.empty();
  }
}

void Worker::end_waiters(Peer& peer) noexcept {
  while (Waiter* waiter = peer.ready_waiters.pop_front()) resume(*waiter, tl::unexpected<Error>(peer.error));
}

}  // namespace bx::engine

namespace bx {

Pressure Session::pressure() const noexcept {
  return worker_ == nullptr ? Pressure::closed : worker_->pressure_of(*this);
}

void ReadyAwaiter::await_suspend(std::coroutine_handle<> awaiting) noexcept {
  BX_CHECK(session_.worker_ != nullptr, "a wait for a session that was never connected");
  session_.worker_->await_ready(session_, *this, awaiting);
}

}  // namespace bx
