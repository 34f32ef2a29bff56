// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a call.
#include "libbx/engine/call_path.h"

namespace bx {

CallOp::~CallOp() {
  if (worker_ != nullptr) worker_->abandon(*this);
  unlink();
}

namespace engine {

void Call::on_timer(Instant /*now*/) noexcept {
  worker->on_deadline(*this);
}

void Worker::start_call(const Session& session, Buffer&& request, CallOp& op, CallOptions options) noexcept {
  BX_CHECK(op.worker_ == nullptr && !op.linked(), "an operation was started while it is outstanding");
  ++stats_.calls_started;
  Peer* peer = peer_at(session.peer_);
  if (closed_ || peer == nullptr || peer->incarnation != session.incarnation_ ||
      peer->state != PeerState::open || calls_.full()) [[unlikely]] {
    return refuse_call(session, op);
  }
  const auto [handle, call] = calls_.make(*this, op, peer->index, session.id_);
  call.outgoing.call = handle;
  call.outgoing.payload = std::move(request);
  op.worker_ = this;
  op.call_ = handle;
  peer->requests.push_back(call.outgoing);
  ++peer->queued;
  if (options.deadline == kNever) {
    deadlines_.add(call, in_turn_ ? now_ : reactor_.now());
  } else {
    deadlines_.add_own(call, options.deadline);
  }
  mark_dirty(*peer);
  wake();
}

void Worker::refuse_call(const Session& session, CallOp& op) noexcept {
  const Peer* peer = peer_at(session.peer_);
  if (closed_ || peer == nullptr || peer->incarnation != session.incarnation_) {
    complete_op(op, fail(ErrorCode::closed, ErrorScope::session, "the session is closed"));
  } else if (peer->state != PeerState::open) {
    complete_op(op, tl::unexpected<Error>(peer->error));
  } else {
    complete_op(op, fail(ErrorCode::exhausted, ErrorScope::operation, "calls.max calls are outstanding"));
  }
}

void Worker::on_deadline(Call& call) noexcept {
  complete(call, fail(ErrorCode::deadline_exceeded, ErrorScope::operation, "the call's deadline passed"));
  wake();
}

// The awaiting coroutine went away.
void Worker::abandon(CallOp& op) noexcept {
  Call* call = calls_.find(op.call_);
  if (call == nullptr) return;
  complete(*call, fail(ErrorCode::cancelled, ErrorScope::operation, "the call was abandoned"));
  op.unlink();
}

// Ends the call: its operation completes, its request is withdrawn if it has not left, its answer is no
// longer wanted.
void Worker::complete(Call& call, Result<Buffer> result) noexcept {
  const core::SlotHandle response = call.response_transfer;
  CallOp& op = forget(call);
  if (response != 0) stop_transfer(response);
  complete_op(op, std::move(result));
}

void Worker::complete_op(CallOp& op, Result<Buffer> result) noexcept {
  ++(result ? stats_.calls_completed : stats_.calls_failed);
  op.result_ = std::move(result);
  tell(op);
}

void Worker::reply(std::uint64_t request, Buffer&& answer, std::uint8_t status) noexcept {
  Served* served = served_.find(request);
  if (served == nullptr) return;  // the worker was closed under the application
  if (served->peer_gone) {
    served_.erase(request);
    wake();  // its place may be waited for
    return;
  }
  Peer& peer = *peers_[served->peer];
  served->outgoing.status = status;
  served->outgoing.payload = std::move(answer);
  peer.responses.push_back(served->outgoing);
  ++peer.queued;
  mark_dirty(peer);
  wake();
}

}  // namespace engine
}  // namespace bx
