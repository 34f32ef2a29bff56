// SPDX-License-Identifier: BSD-3-Clause
// put and get: a call that has no message, only a transfer that this end drives alone, chunk by chunk like a
// rendezvous. A get is a pull whose payload was never offered; a put is paced by the window towards its peer.
// The call ends when the last chunk has; one that ends before (deadline, cancelled) leaves the transfer, and
// so the memory, until the NIC is done with it.
#include <utility>

#include "libbx/engine/call_path.h"
#include "libbx/engine/send_path.h"

namespace bx::engine {

Result<Exposed> Worker::expose(Buffer&& buffer) {
  if (buffer.empty()) return fail(ErrorCode::invalid_argument, ErrorScope::operation, "nothing to expose");
  auto region =
      device_.register_memory(buffer.bytes(), fabric::Access::remote_read | fabric::Access::remote_write);
  if (!region) return tl::unexpected<Error>(region.error());
  const RemoteRegion remote{.addr = reinterpret_cast<std::uint64_t>(buffer.data()),
                            .length = buffer.size(),
                            .rkey = static_cast<std::uint32_t>((*region)->rkey()),
                            .owner = instance_};
  return Exposed(std::move(buffer), std::move(*region), remote);
}

// What can be known before the NIC is asked; null if nothing is wrong.
const char* Worker::one_sided_fault(const Peer& peer, const Buffer& local,
                                    const RemoteRegion& remote) noexcept {
  if (peer.instance != 0 && remote.owner != peer.instance) {
    return "the region is of another worker, or of one that has been started again";
  }
  if (local.size() > remote.length) return "the region is shorter than the buffer";
  return nullptr;
}

void Worker::start_one_sided(const Session& session, OneSided&& operation, CallOp& op,
                             CallOptions options) noexcept {
  BX_CHECK(op.worker_ == nullptr && !op.linked(), "an operation was started while it is outstanding");
  Peer* peer = peer_at(session.peer_);
  if (closed_ || peer == nullptr || peer->incarnation != session.incarnation_ ||
      peer->state != PeerState::open || calls_.full()) {
    return refuse_call(session, op);
  }
  if (const char* fault = one_sided_fault(*peer, operation.local, operation.remote)) {
    return fail_at_once(op, {ErrorCode::invalid_argument, ErrorScope::operation, 0, fault});
  }
  if (in_transfers_.full()) {
    return fail_at_once(
        op, {ErrorCode::exhausted, ErrorScope::operation, 0, "transfers.max transfers are in progress"});
  }
  ++session.stats_->calls_started;
  if (operation.local.empty()) {
    session.stats_->latency.add(Duration::zero());
    return complete_op(op, std::move(operation.local));
  }
  const auto [handle, call] = calls_.make(*this, op, peer->index, session.id_, Buffer{});
  op.worker_ = this;
  op.call_ = handle;
  call.stats = session.stats_;
  const Instant now = in_turn_ ? now_ : reactor_.now();
  if (options.deadline == kNever) {
    deadlines_.add(call, now);
  } else {
    deadlines_.add_own(call, options.deadline, now);
  }
  call.header.call = handle;
  wire::Message message;  // as if the peer had offered it in answer to the call
  message.header.kind = wire::MessageKind::response;
  message.header.session = session.id_;
  message.header.call = handle;
  message.offer = {.transfer = 0,
                   .rkey = operation.remote.rkey,
                   .addr = operation.remote.addr,
                   .length = operation.local.size()};
  const auto [transfer_handle, transfer] = in_transfers_.make(peer->index, message);
  transfer.handle = transfer_handle;
  transfer.way = operation.way;
  transfer.cursor = core::ChunkCursor(message.offer.length, limits_.chunk);
  transfer.buffer = std::move(operation.local);
  call.response_transfer = transfer_handle;
  if (operation.way == TransferWay::put)
    puts_.push_back(transfer);
  else
    ask_for_chunks_of(transfer);
  wake();
}

// Chunks of puts in turn, one a transfer; one whose peer cannot take another now loses its turn.
void Worker::pump_puts() noexcept {
  IntrusiveList<InTransfer> blocked;
  while (InTransfer* transfer = puts_.pop_front()) {
    Peer& peer = *peers_[transfer->peer];
    const std::uint32_t session = transfer->header.session;
    const core::WindowVerdict verdict = window_verdict(peer, session, transfer->cursor.next_length());
    Lane& lane = *peer.lane_of(session).lane;
    if (verdict > core::WindowVerdict::lent || lane.data_slots() == 0) {
      if (verdict <= core::WindowVerdict::lent)
        ++peer.stats.stall_slot;
      else
        count_closed(peer, verdict);
      blocked.push_back(*transfer);
      continue;
    }
    const core::ChunkCursor::Chunk chunk = transfer->cursor.issue();
    take_window(peer, session, chunk.length);
    peer.stats.bytes_sent += chunk.length;
    lane.stage_write({reinterpret_cast<std::uint64_t>(transfer->buffer.data() + chunk.offset),
                      static_cast<std::uint32_t>(chunk.length), fabric::LKey{transfer->buffer.lkey()}},
                     {transfer->offer.addr + chunk.offset, fabric::RKey{transfer->offer.rkey}},
                     {.use = SendRecord::Use::put,
                      .session = session,
                      .window_bytes = chunk.length,
                      .transfer = transfer->handle,
                      .buffer = {},
                      .posted = posting_time()});
    if (!transfer->cursor.all_issued()) puts_.push_back(*transfer);
    mark_dirty(peer);
  }
  puts_.splice_back(blocked);
}

// Ends the call now; its completion is told as any is.
void Worker::cancel(CallOp& op) noexcept {
  Call* call = calls_.find(op.call_);
  if (call == nullptr) return;
  complete(*call, fail(ErrorCode::cancelled, ErrorScope::operation, "the call was cancelled"));
}

}  // namespace bx::engine

namespace bx {

void CallOp::cancel() noexcept {
  if (worker_ != nullptr) worker_->cancel(*this);
}

void Session::start_put(Buffer from, const RemoteRegion& to, CallOp& op, CallOptions options) noexcept {
  BX_CHECK(worker_ != nullptr, "a put over a session that was never connected");
  worker_->start_one_sided(*this, {engine::TransferWay::put, std::move(from), to}, op, options);
}

void Session::start_get(Buffer into, const RemoteRegion& from, CallOp& op, CallOptions options) noexcept {
  BX_CHECK(worker_ != nullptr, "a get over a session that was never connected");
  worker_->start_one_sided(*this, {engine::TransferWay::get, std::move(into), from}, op, options);
}

}  // namespace bx
