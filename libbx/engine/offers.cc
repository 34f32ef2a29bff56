// SPDX-License-Identifier: BSD-3-Clause
// The sender's end of rendezvous: a payload is offered, WRITTEN where the receiver grants (or left for it to
// READ), and its memory kept until the receiver is done and no WRITE of it is outstanding.
#include <algorithm>
#include <array>
#include <utility>

#include "libbx/engine/send_path.h"

namespace bx::engine {

void Worker::on_write_grant(Peer& peer, const wire::WriteGrant& grant) noexcept {
  const core::SlotHandle handle = out_transfers_.from_wire(grant.transfer);
  OutTransfer* transfer = out_transfers_.find(handle);
  if (transfer == nullptr || transfer->peer != peer.index || transfer->finished || grant.length == 0 ||
      grant.offset > transfer->payload.size() || grant.length > transfer->payload.size() - grant.offset ||
      peer.lanes[transfer->lane].grants.full()) {
    fail_peer(peer, protocol_error("a WRITE grant for what was not offered"));
    return;
  }
  ++transfer->writes_outstanding;
  peer.lanes[transfer->lane].grants.push(grant);
  ++peer.grants_waiting;
}

void Worker::on_transfer_done(const Peer& peer, std::uint32_t transfer) noexcept {
  const core::SlotHandle handle = out_transfers_.from_wire(transfer);
  const OutTransfer* found = out_transfers_.find(handle);
  if (found != nullptr && found->peer == peer.index) finish_out_transfer(handle);
}

// The receiver is done with a payload of ours. Its memory is free once no WRITE of it is outstanding.
void Worker::finish_out_transfer(core::SlotHandle handle) noexcept {
  OutTransfer* transfer = out_transfers_.find(handle);
  if (transfer == nullptr) return;
  transfer->finished = true;
  if (transfer->writes_outstanding == 0) erase_out_transfer(handle);
}

// Whoever has something to offer may have been waiting for this place.
void Worker::erase_out_transfer(core::SlotHandle handle) noexcept {
  --out_count(out_transfers_.find(handle)->kind);
  out_transfers_.erase(handle);
  while (Peer* peer = awaiting_transfer_.pop_front()) mark_dirty(*peer);
}

// The WRITEs the peer granted, each followed by the zero-byte WRITE_WITH_IMM that announces it: ordered
// behind the data by the transport, whatever order the network delivers in.
void Worker::send_granted(Peer& peer) noexcept {
  for (PeerLane& each : peer.all_lanes()) send_granted(peer, each);
}

void Worker::send_granted(Peer& peer, PeerLane& granted) noexcept {
  Lane& lane = *granted.lane;
  while (!granted.grants.empty()) {
    wire::WriteGrant& grant = granted.grants.front();
    if (!may_send(peer, lane)) return;
    if (lane.data_slots() < 2) return note_no_slot(peer);
    const core::SlotHandle handle = out_transfers_.from_wire(grant.transfer);
    OutTransfer& transfer = *out_transfers_.find(handle);
    const fabric::Sge piece =
        piece_of(transfer.payload, grant.offset, std::min(grant.length, limits_.message_max));
    const core::WindowVerdict verdict = window_verdict(peer, transfer.session, piece.length);
    if (verdict > core::WindowVerdict::lent) return count_closed(peer, verdict);
    peer.stall.leave(now_);
    take_window(peer, transfer.session, piece.length);
    peer.stats.bytes_sent += piece.length;
    lane.stage_write(piece, {grant.addr, fabric::RKey{grant.rkey}},
                     {.use = SendRecord::Use::write,
                      .session = transfer.session,
                      .window_bytes = piece.length,
                      .transfer = handle,
                      .buffer = {},
                      .posted = posting_time()});
    if (piece.length < grant.length) {  // the rest lies elsewhere, or is too long for one request
      ++transfer.writes_outstanding;
      grant.offset += piece.length;
      grant.addr += piece.length;
      grant.length -= piece.length;
      continue;
    }
    peer.credits.consume();
    lane.stage_notify(wire::encode({grant.target, peer.issuer.control_ack()}));
    granted.grants.pop();
    --peer.grants_waiting;
  }
}

bool Worker::send_offer(Peer& peer, Outgoing& outgoing, bool by_write) noexcept {
  by_write = by_write || gathered(outgoing.payload) != nullptr;  // no one address for the receiver to read
  const wire::MessageKind kind = outgoing.header.kind;
  std::uint32_t& count = out_count(kind);
  if (count == config_.transfers_max) {
    ++stats_.stall_transfer;
    if (!peer.TransferHook::linked()) awaiting_transfer_.push_back(peer);
    return false;
  }
  ++count;
  const auto [handle, transfer] = out_transfers_.make();
  transfer.peer = peer.index;
  transfer.lane = peer.lane_index_of(outgoing.header.session);
  transfer.kind = kind;
  transfer.session = outgoing.header.session;
  transfer.payload = std::move(outgoing.payload);
  wire::Message message;
  message.header = outgoing.header;
  message.header.flags = by_write ? wire::MessageFlags::offered | wire::MessageFlags::granted_write
                                  : wire::MessageFlags::offered;
  message.offer.transfer = decltype(out_transfers_)::to_wire(handle);
  message.offer.length = transfer.payload.size();
  if (!by_write) {
    message.offer.addr = reinterpret_cast<std::uint64_t>(transfer.payload.data());
    message.offer.rkey = transfer.payload.rkey();
    peer.stats.bytes_sent += transfer.payload.size();
  }
  if (kind == wire::MessageKind::request) static_cast<Call&>(outgoing).request_transfer = handle;
  ++peer.stats.messages_offered;
  Lane& lane = *peer.lanes[transfer.lane].lane;
  if (offer_may_follow(peer, lane)) {
    std::array<std::byte, wire::kEnvelopeBytesMax> envelope;
    const std::size_t length = wire::encode_envelope(message, envelope);
    message.header.kind = wire::offering(kind, message.header.flags);
    follow(peer, lane, message.header, std::span(envelope).first(length).subspan(wire::kHeaderBytes));
  } else {
    peer.credits.consume();
    stage(peer, lane, message);
    if (!peer.takes_offer_batches) lane.end_batch();
  }
  return true;
}

}  // namespace bx::engine
