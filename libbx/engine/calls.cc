// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a call.
#include "libbx/engine/call_path.h"
#include "libbx/engine/send_path.h"

namespace bx {

CallOp::~CallOp() {
  if (worker_ != nullptr) worker_->abandon(*this);
  unlink();
}

namespace engine {

void Call::on_timer(Instant /*now*/) noexcept {
  worker->on_deadline(*this);
}

inline void Worker::start_call(const Session& session, Buffer&& request, CallOp& op,
                               CallOptions options) noexcept {
  BX_CHECK(op.worker_ == nullptr && !op.linked(), "an operation was started while it is outstanding");
  Peer* peer = peer_at(session.peer_);
  if (closed_ || peer == nullptr || peer->incarnation != session.incarnation_ ||
      peer->state != PeerState::open || calls_.full()) [[unlikely]] {
    return refuse_call(session, op);
  }
  const auto [handle, call] = calls_.make(*this, op, peer->index, session.id_, std::move(request));
  op.worker_ = this;
  op.call_ = handle;
  call.stats = session.stats_;
  ++call.stats->calls_started;
  call.stats->bytes_out += call.payload.size();
  const Instant now = in_turn_ ? now_ : reactor_.now();
  if (options.deadline == kNever) {
    deadlines_.add(call, now);
  } else {
    deadlines_.add_own(call, options.deadline, now);
  }
  call.header.call = handle;
  if (!send_now(*peer, call.header, call.payload)) {
    (options.priority == Priority::high ? peer->urgent : peer->requests).push(call);
    ++peer->queued;
  }
  mark_dirty(*peer);
  wake();
}

void Worker::fail_at_once(CallOp& op, const Error& error) noexcept {
  ++stats_.calls_started;
  ++stats_.calls_failed;
  complete_op(op, tl::unexpected<Error>(error));
}

void Worker::refuse_call(const Session& session, CallOp& op) noexcept {
  fail_at_once(op, refusal_of(session));
}

void Worker::start_call(const Session& session, Gather&& request, CallOp& op, CallOptions options) noexcept {
  auto whole = gather(std::move(request));
  if (!whole) return fail_at_once(op, whole.error());
  start_call(session, std::move(*whole), op, options);
}

void Worker::reply(const RequestId& request, Gather&& answer) noexcept {
  auto whole = gather(std::move(answer));
  const std::uint8_t status = whole ? std::uint8_t{0} : wire::status_of(whole.error().code);
  reply(request, whole ? std::move(*whole) : Buffer{}, status);
}

// Why a service that is there takes no more.
Error Worker::overload() const noexcept {
  if (draining_) return {ErrorCode::draining, ErrorScope::operation, 0, "the worker drains"};
  return {ErrorCode::exhausted, ErrorScope::operation, 0, "the service has concurrency_max requests"};
}

void Worker::refuse_request(const RequestId& request) noexcept {
  ++stats_.requests_refused;
  reply(request, Buffer{}, wire::status_of(overload().code));
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
  ++call.stats->calls_failed;
  CallOp& op = forget(call);
  if (response != 0) stop_transfer(response);
  complete_op(op, std::move(result));
}

// A request that has not left.
void Worker::withdraw(Call& call) noexcept {
  Peer& peer = *peers_[call.peer];
  call.ListHook<Waiting>::unlink();
  --peer.queued;
  if (peer.queued == 0) peer.stall.leave(in_turn_ ? now_ : reactor_.now());
  mark_dirty(peer);  // the one behind it may be able to go
}

void Worker::complete_op(CallOp& op, Result<Buffer> result) noexcept {
  op.result_ = std::move(result);
  tell(op);
}

void Worker::reply(const RequestId& request, Buffer&& answer, std::uint8_t status) noexcept {
  --services_[request.service]->place.serving;
  Peer* peer = peer_at(request.peer);
  if (peer == nullptr || peer->incarnation != request.incarnation || peer->state != PeerState::open)
      [[unlikely]] {
    --serving_;
    return wake();  // its place may be waited for
  }
  wire::MessageHeader header;
  header.kind = wire::MessageKind::response;
  header.status = status;
  header.session = request.session;
  header.call = request.call;
  if (send_now(*peer, header, answer)) {
    --serving_;
  } else {
    peer->responses.push(answers_.make(header, std::move(answer)).value);
    ++peer->queued;
  }
  mark_dirty(*peer);
  wake();
}

}  // namespace engine

// Here rather than with the other handles, so that the engine's part is inline in them.
[[gnu::flatten]] void Session::start_call(Buffer request, CallOp& op, CallOptions options) noexcept {
  BX_CHECK(worker_ != nullptr, "a call over a session that was never connected");
  worker_->start_call(*this, std::move(request), op, options);
}

void Session::set_weight(std::uint32_t weight) noexcept {
  id_ = engine::with_weight(id_, weight);
}

void Session::start_call(Gather request, CallOp& op, CallOptions options) noexcept {
  BX_CHECK(worker_ != nullptr, "a call over a session that was never connected");
  worker_->start_call(*this, std::move(request), op, options);
}

Result<> Session::try_start_call(Buffer& request, CallOp& op, CallOptions options) noexcept {
  switch (pressure()) {
    case Pressure::none:
      start_call(std::move(request), op, options);
      return {};
    case Pressure::waiting:
      return fail(ErrorCode::would_block, ErrorScope::operation, "the call would have to wait");
    case Pressure::full:
    case Pressure::closed:
      break;
  }
  return tl::unexpected<Error>(worker_->refusal_of(*this));
}

[[gnu::flatten]] void Request::reply(Buffer answer) noexcept {
  BX_CHECK(worker_ != nullptr, "a request was answered twice");
  payload_.reset();
  std::exchange(worker_, nullptr)->reply(id_, std::move(answer), 0);
}

}  // namespace bx
