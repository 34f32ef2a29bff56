// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a call.
#include "libbx/engine/worker.h"

namespace bx {

CallOp::~CallOp() {
  if (worker_ != nullptr) worker_->abandon(*this);
  unlink();
}

namespace engine {

void Call::on_timer(Instant /*now*/) noexcept {
  worker->on_deadline(*this);
}

void Worker::start_call(const Session& session, Buffer request, CallOp& op, CallOptions options) noexcept {
  BX_CHECK(op.worker_ == nullptr && !op.linked(), "an operation was started while it is outstanding");
  ++stats_.calls_started;
  Peer* peer = peer_at(session.peer_);
  if (closed_ || peer == nullptr || peer->incarnation != session.incarnation_ ||
      peer->state != PeerState::open) {
    const bool known = !closed_ && peer != nullptr && peer->incarnation == session.incarnation_;
    complete_op(op, known ? Result<Buffer>(tl::unexpected<Error>(peer->error))
                          : fail(ErrorCode::closed, ErrorScope::session, "the session is closed"));
    return;
  }
  if (calls_.full()) {
    complete_op(op, fail(ErrorCode::exhausted, ErrorScope::operation, "calls.max calls are outstanding"));
    return;
  }
  const core::SlotHandle handle = calls_.emplace(*this, op, peer->index);
  Call& call = *calls_.find(handle);
  call.handle = handle;
  call.outgoing.kind = wire::MessageKind::request;
  call.outgoing.session = session.id_;
  call.outgoing.call = handle;
  call.outgoing.payload = std::move(request);
  op.worker_ = this;
  op.call_ = handle;
  peer->calls.push_back(call);
  peer->requests.push_back(call.outgoing);
  ++peer->queued;
  const Instant now = in_turn_ ? now_ : reactor_.now();
  reactor_.arm(call, options.deadline != kNever
                         ? options.deadline
                         : now + Duration(static_cast<std::int64_t>(config_.call_deadline)));
  mark_dirty(*peer);
  wake();
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
  CallOp& op = *call.op;
  const core::SlotHandle response = call.response_transfer;
  if (call.outgoing.linked()) {
    --peers_[call.peer]->queued;
    call.outgoing.unlink();
    mark_dirty(*peers_[call.peer]);  // the one behind it may be able to go
  }
  static_cast<ListHook<OfPeer>&>(call).unlink();
  calls_.erase(call.handle);  // cancels the deadline
  if (response != 0) stop_transfer(response);
  complete_op(op, std::move(result));
}

void Worker::complete_op(CallOp& op, Result<Buffer> result) noexcept {
  ++(result ? stats_.calls_completed : stats_.calls_failed);
  op.worker_ = nullptr;
  op.result_ = std::move(result);
  completed_.push_back(op);
  wake();
}

// A call that this peer may answer.
Call* Worker::find_call(const Peer& peer, core::SlotHandle handle) noexcept {
  Call* call = calls_.find(handle);
  return call != nullptr && call->peer == peer.index ? call : nullptr;
}

core::SlotHandle Worker::make_served(Peer& peer, const wire::MessageHeader& header) noexcept {
  const core::SlotHandle handle = served_.emplace(peer.index);
  Served& served = *served_.find(handle);
  served.session = header.session;
  served.call = header.call;
  return handle;
}

void Worker::on_request(Peer& peer, const wire::MessageHeader& header, Buffer payload) noexcept {
  hand_over(make_served(peer, header), std::move(payload));
}

void Worker::hand_over(core::SlotHandle handle, Buffer payload) noexcept {
  const Served* served = served_.find(handle);
  BX_CHECK(served != nullptr, "a request went away before it was handed to its service");
  ++stats_.requests_served;
  ++work_.handlers;
  peers_[served->peer]->service->handle(Request(*this, handle, std::move(payload)));
}

void Worker::reply(std::uint64_t request, Buffer answer, std::uint8_t status) noexcept {
  Served* served = served_.find(request);
  if (served == nullptr) return;  // the worker was closed under the application
  if (served->peer_gone) {
    served_.erase(request);
    wake();  // its place may be waited for
    return;
  }
  Peer& peer = *peers_[served->peer];
  served->outgoing.kind = wire::MessageKind::response;
  served->outgoing.status = status;
  served->outgoing.session = served->session;
  served->outgoing.call = served->call;
  served->outgoing.served = request;
  served->outgoing.payload = std::move(answer);
  peer.responses.push_back(served->outgoing);
  ++peer.queued;
  mark_dirty(peer);
  wake();
}

void Worker::on_response(Peer& peer, const wire::MessageHeader& header, Buffer payload) noexcept {
  Call* call = find_call(peer, header.call);
  if (call == nullptr) return;  // its deadline passed, or it was abandoned
  call->response_transfer = 0;
  // Whoever answers has read the request, or never will.
  if (call->request_transfer != 0) finish_out_transfer(call->request_transfer);
  if (header.status == 0) {
    complete(*call, std::move(payload));
  } else {
    complete(*call,
             fail(wire::code_of(header.status), ErrorScope::operation, "the service refused the request"));
  }
}

}  // namespace engine
}  // namespace bx
