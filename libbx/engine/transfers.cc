// SPDX-License-Identifier: BSD-3-Clause
// The receiver's end of rendezvous: which chunk of which payload to ask for next. All peers share one window
// (window.receiver), so the bytes on their way to this host stay bounded however many peers answer at once;
// chunks are asked for in turn, one a transfer, which shares the window evenly.
#include <algorithm>
#include <utility>

#include "libbx/engine/call_path.h"

namespace bx::engine {

void Worker::begin_transfer(Peer& peer, const wire::Message& message) noexcept {
  const wire::MessageHeader& header = message.header;
  Call* call = header.kind == wire::MessageKind::response ? find_call(peer, header.call) : nullptr;
  const core::SlotHandle handle = in_transfers_.emplace(peer.index, message);
  InTransfer& transfer = *in_transfers_.find(handle);
  transfer.handle = handle;
  transfer.cursor = core::ChunkCursor(message.offer.length, limits_.chunk);
  if (header.kind == wire::MessageKind::request) {
    ++serving_;
    if (peer.service->serving >= peer.service->serving_max) return refuse_transfer(transfer, overload());
  } else if (call != nullptr) {
    call->response_transfer = handle;
  } else {  // nobody wants it: tell the sender at once
    transfer.cursor.stop();
    peer.done.push_back(transfer);
    return;
  }
  give_memory(transfer);
}

void Worker::give_memory(InTransfer& transfer) noexcept {
  if (auto buffer = arena_->allocate(transfer.offer.length, memory::Side::receive);
      buffer && !buffer->empty()) {
    transfer.buffer = std::move(*buffer);
    ask_for_chunks_of(transfer);
  } else if (arena_->could_hold(transfer.offer.length, memory::Side::receive)) {
    ++stats_.stall_memory;
    pressure_watched_ = true;
    starved_.push_back(transfer);
    arena_->set_listener(this);
  } else {
    refuse_transfer(transfer, {ErrorCode::too_large, ErrorScope::operation, receive_mebibytes(),
                               "the payload is larger than memory.receive, less the receive slots (MiB)"});
  }
}

int Worker::receive_mebibytes() const noexcept {
  return static_cast<int>(arena_->usage(memory::Side::receive).quota >> 20U);
}

// A payload that no amount of waiting will make room for, or a request that is not taken.
void Worker::refuse_transfer(InTransfer& transfer, const Error& error) noexcept {
  if (transfer.header.kind == wire::MessageKind::request) {
    ++stats_.requests_refused;
    const Peer& peer = *peers_[transfer.peer];
    transfer.answered = true;
    ++peer.service->serving;
    reply({peer.index, peer.incarnation, transfer.header.session, peer.service->index, transfer.header.call},
          Buffer{}, wire::status_of(error.code));
    stop_transfer(transfer.handle);
  } else {
    complete(*calls_.find(transfer.header.call), tl::unexpected<Error>(error));  // stops the transfer
  }
}

// Each of them is tried, the longest waiting first: one that needs much must not keep out those that need
// little, for whoever holds the memory may be waiting for one of these.
void Worker::retry_starved() noexcept {
  memory_freed_ = false;
  IntrusiveList<InTransfer> waiting;
  while (InTransfer* transfer = starved_.pop_front()) waiting.push_back(*transfer);
  while (InTransfer* transfer = waiting.pop_front()) give_memory(*transfer);
}

void Worker::on_memory_free() noexcept {
  if (starved_.empty()) return arena_->set_listener(nullptr);
  memory_freed_ = true;
  wake();
}

// Asks for chunks while the receiver's window has room, going round the transfers; one whose peer cannot take
// another request now loses its turn.
void Worker::pump_transfers() noexcept {
  IntrusiveList<InTransfer> blocked;
  while (InTransfer* transfer = active_.front()) {
    if (!budget_.admits(transfer->cursor.next_length())) {
      ++stats_.stall_receiver_window;
      break;
    }
    Peer& peer = *peers_[transfer->peer];
    transfer->unlink();
    if (!may_ask(peer, *transfer)) {
      blocked.push_back(*transfer);
      continue;
    }
    take_inbound(peer, transfer->cursor.next_length());
    ask(peer, *transfer);
    if (!transfer->cursor.all_issued()) active_.push_back(*transfer);
  }
  while (InTransfer* transfer = blocked.pop_front()) active_.push_back(*transfer);
}

bool Worker::may_ask(Peer& peer, const InTransfer& transfer) noexcept {
  if (!peer.window_in.admits(transfer.cursor.next_length())) {
    ++peer.stats.stall_window;
    return false;
  }
  const PeerLane& lane = peer.lane_of(transfer.header.session);
  if (transfer.by_write()) {
    const PeerLane& control = peer.control_lane_of(transfer.header.session);
    return !lane.granted.full() && may_send_control(peer, *control.lane, wire::MessageKind::write_grant);
  }
  if (lane.reads_outstanding == peer.reads_max || lane.lane->data_slots() == 0) {
    ++peer.stats.stall_slot;
    return false;
  }
  return true;
}

void Worker::ask(Peer& peer, InTransfer& transfer) noexcept {
  const core::ChunkCursor::Chunk chunk = transfer.cursor.issue();
  std::byte* target = transfer.buffer.data() + chunk.offset;
  PeerLane& lane = peer.lane_of(transfer.header.session);
  if (transfer.by_write()) {
    wire::Message message;
    message.header.kind = wire::MessageKind::write_grant;
    message.grant = {.transfer = transfer.offer.transfer,
                     .target = lane.grant_number,
                     .offset = chunk.offset,
                     .length = chunk.length,
                     .addr = reinterpret_cast<std::uint64_t>(target),
                     .rkey = transfer.buffer.rkey()};
    lane.granted.push({transfer.handle, chunk.length, lane.grant_number++, posting_time()});
    ++stats_.writes_granted;
    send_control(peer, *peer.control_lane_of(transfer.header.session).lane, message);
  } else {
    ++lane.reads_outstanding;
    ++stats_.reads_posted;
    lane.lane->stage_read({reinterpret_cast<std::uint64_t>(target), static_cast<std::uint32_t>(chunk.length),
                           fabric::LKey{transfer.buffer.lkey()}},
                          {transfer.offer.addr + chunk.offset, fabric::RKey{transfer.offer.rkey}},
                          {.use = SendRecord::Use::read,
                           .window_bytes = chunk.length,
                           .transfer = transfer.handle,
                           .buffer = {},
                           .posted = posting_time()});
  }
  mark_dirty(peer);
}

void Worker::on_chunk_done(InTransfer& transfer, std::uint64_t bytes) noexcept {
  transfer.cursor.on_done(bytes);
  if (transfer.cursor.settled()) settle(transfer);
}

// Nothing more of the transfer is outstanding: owes the sender the news, and hands the payload on or drops
// it. The transfer is put away first, because the application may end anything from inside its handler.
void Worker::settle(InTransfer& transfer) noexcept {
  Peer& peer = *peers_[transfer.peer];
  const bool complete = !transfer.cursor.stopped();
  const wire::MessageHeader header = transfer.header;
  const bool serving = header.kind == wire::MessageKind::request && !transfer.answered;
  Buffer payload = std::move(transfer.buffer);
  transfer.unlink();
  const bool put = transfer.way == TransferWay::put;
  if (peer.state == PeerState::open && !transfer.one_sided()) {
    peer.done.push_back(transfer);
    mark_dirty(peer);
  } else {
    in_transfers_.erase(transfer.handle);
  }
  if (!complete) {
    ++stats_.transfers_dropped;
    if (serving) --serving_;
    return;
  }
  ++stats_.transfers_completed;
  if (!put) peer.stats.bytes_received += payload.size();
  if (header.kind == wire::MessageKind::request) {
    hand_over(peer, header.session, header.call, std::move(payload));
  } else {
    Call* call = find_call(peer, header.call);
    if (call == nullptr) return;
    (put ? call->stats->bytes_out : call->stats->bytes_in) += payload.size();
    on_answer(*call, header.status, std::move(payload));
  }
}

// The application no longer wants it. What is outstanding still lands in the buffer, which is kept until
// then.
void Worker::stop_transfer(core::SlotHandle handle) noexcept {
  InTransfer* transfer = in_transfers_.find(handle);
  if (transfer == nullptr || transfer->cursor.stopped()) return;
  transfer->unlink();
  transfer->cursor.stop();
  if (transfer->cursor.settled()) settle(*transfer);
}

// A granted WRITE is all there.
void Worker::on_notify(Peer& peer, const fabric::Completion& completion) noexcept {
  const wire::Announcement announcement = wire::decode_announcement(completion.imm);
  if (!peer.issuer.on_control_ack(announcement.control_ack)) {
    fail_peer(peer, protocol_error("an acknowledgement of a grant never sent"));
    return;
  }
  const auto lanes = peer.all_lanes();
  const auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const PeerLane& each) {
    return each.lane->qp().address().qp == completion.qp;
  });
  BX_CHECK(lane != lanes.end(), "an announcement by a lane that its peer does not have");
  if (lane->granted.empty() || lane->granted.front().number != announcement.target) {
    fail_peer(peer, protocol_error("an announcement of a WRITE that was not granted"));
    return;
  }
  const GrantedChunk chunk = lane->granted.pop();
  if (limits_.adaptive) sample_in(peer, chunk.length, chunk.granted);
  on_arrived(peer, chunk.length);
  InTransfer* transfer = in_transfers_.find(chunk.transfer);
  BX_CHECK(transfer != nullptr, "a transfer went away while a WRITE to it was granted");
  on_chunk_done(*transfer, chunk.length);
}

void Worker::send_done(Peer& peer) noexcept {
  while (InTransfer* transfer = peer.done.front()) {
    Lane& lane = *peer.control_lane_of(transfer->header.session).lane;
    if (!may_send_control(peer, lane, wire::MessageKind::transfer_done)) return;
    wire::Message message;
    message.header.kind = wire::MessageKind::transfer_done;
    message.done.transfer = transfer->offer.transfer;
    send_control(peer, lane, message);
    peer.done.pop_front();
    in_transfers_.erase(transfer->handle);
  }
}

}  // namespace bx::engine
