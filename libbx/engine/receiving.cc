// SPDX-License-Identifier: BSD-3-Clause
// What arrives: completions are routed to the lane or the message they belong to.
#include <algorithm>

#include "libbx/engine/worker.h"
#include "libbx/engine/wr_id.h"

namespace bx::engine {
namespace {

Error protocol_error(const char* detail) {
  return {ErrorCode::protocol, ErrorScope::session, 0, detail};
}

}  // namespace

void Worker::route(const fabric::Completion& completion) noexcept {
  const WrTag tag = decode(completion.wr_id);
  if (tag.kind == WrKind::send) {
    on_send_completion(tag.peer, tag.number, completion);
  } else {
    on_receive_completion(tag.number, completion);
  }
}

void Worker::on_send_completion(std::uint32_t index, std::uint32_t number,
                                const fabric::Completion& completion) noexcept {
  Peer* peer = peer_at(index);
  BX_CHECK(peer != nullptr, "a completion for a lane that is gone");
  const bool success = completion.status == fabric::WcStatus::success;
  const bool known = peer->lane->on_completion(
      number, [&](SendRecord record) { retire(*peer, std::move(record), success); });
  BX_CHECK(known, "a completion for a request that is not outstanding");
  if (success) {
    mark_dirty(*peer);
  } else {
    fail_peer(*peer, {ErrorCode::device, ErrorScope::session, static_cast<int>(completion.status),
                      to_string(completion.status).data()});
  }
}

// Gives back what a send-queue request held.
void Worker::retire(Peer& peer, SendRecord record, bool success) noexcept {
  switch (record.use) {
    case SendRecord::Use::message:
      peer.window_out.on_retired(record.window_bytes);
      break;
    case SendRecord::Use::read: {
      --peer.reads_outstanding;
      peer.window_in.on_retired(record.window_bytes);
      window_in_.on_retired(record.window_bytes);
      InTransfer* transfer = in_transfers_.find(record.transfer);
      BX_CHECK(transfer != nullptr, "a transfer went away while a READ of it was outstanding");
      if (!success) transfer->cursor.stop();
      on_chunk_done(*transfer, record.transfer_bytes);
      break;
    }
    case SendRecord::Use::write: {
      peer.window_out.on_retired(record.window_bytes);
      OutTransfer* transfer = out_transfers_.find(record.transfer);
      BX_CHECK(transfer != nullptr, "a transfer went away while a WRITE of it was outstanding");
      if (--transfer->writes_outstanding == 0 && transfer->finished) erase_out_transfer(record.transfer);
      break;
    }
    case SendRecord::Use::notify:
    case SendRecord::Use::drain:
      break;
  }
}

void Worker::on_receive_completion(std::uint32_t slot, const fabric::Completion& completion) noexcept {
  const auto bytes = receives_->consumed(slot, completion.byte_len);
  const auto found = peer_of_qp_.find(static_cast<std::uint32_t>(completion.qp));
  Peer* peer = found == peer_of_qp_.end() ? nullptr : peers_[found->second].get();
  if (peer != nullptr && peer->receives > 0) {  // else it took a receive of somebody else's
    --peer->receives;
    --promised_;
  }
  if (peer == nullptr || peer->state == PeerState::failed) {
    put_away(slot);
    return;
  }
  if (completion.status != fabric::WcStatus::success) {
    fail_peer(*peer, {ErrorCode::device, ErrorScope::session, static_cast<int>(completion.status),
                      to_string(completion.status).data()});
    put_away(slot);
  } else if (completion.opcode == fabric::WcOpcode::recv_rdma_with_imm) {
    if (peer->issuer.on_received()) {
      receives_->post_again(slot);
      promise(*peer);
      peer->issuer.on_reposted();
      on_notify(*peer, completion.imm);
    } else {
      fail_peer(*peer, protocol_error("a message without a credit"));
      put_away(slot);
    }
  } else {
    on_message(*peer, slot, bytes);
  }
  if (peer->state == PeerState::open) mark_dirty(*peer);
}

void Worker::on_message(Peer& peer, std::uint32_t slot, std::span<const std::byte> bytes) noexcept {
  const auto refuse = [&](const char* detail) {
    fail_peer(peer, protocol_error(detail));
    put_away(slot);
  };
  const auto message = wire::decode(bytes);
  if (!message) return refuse(message.error().detail);
  const wire::MessageHeader& header = message->header;
  if (header.epoch != peer.epoch) return refuse("a message of another epoch");
  if (!peer.credits.on_grant(header.credit_grant, peer.credit_window))
    return refuse("a grant beyond the peer's window");
  if (!peer.issuer.on_control_ack(header.control_ack))
    return refuse("an acknowledgement of a grant never sent");
  ++stats_.messages_received;
  if (header.kind == wire::MessageKind::credit_grant) {
    ++stats_.pure_grants_received;
    if (!peer.issuer.on_pure_grant())
      return refuse("more pure grants at once than there are control receives");
    // Its receive is not a credit's, but it is posted again all the same, and at once: it lends nothing.
    receives_->post_again(slot);
    promise(peer);
    return;
  }
  if (!peer.issuer.on_received()) return refuse("a message without a credit");
  slot_owners_[slot] = {peer.index, peer.incarnation};
  const bool done = dispatch(peer, *message, slot, bytes);
  if (peer.state != PeerState::open) {
    if (done) put_away(slot);
  } else if (done) {
    // To the same peer, whoever else waits for a receive: the last credit must always come back.
    receives_->post_again(slot);
    promise(peer);
    peer.issuer.on_reposted();
  } else {
    repost(peer);
  }
}

bool Worker::dispatch(Peer& peer, const wire::Message& message, std::uint32_t slot,
                      std::span<const std::byte> bytes) noexcept {
  switch (message.header.kind) {
    case wire::MessageKind::request:
    case wire::MessageKind::response:
      return on_payload(peer, message, slot, bytes);
    case wire::MessageKind::write_grant:
      on_write_grant(peer, message.grant);
      return true;
    case wire::MessageKind::transfer_done:
      on_transfer_done(peer, message.done.transfer);
      return true;
    case wire::MessageKind::credit_grant:
      break;
  }
  return true;
}

// A request or a response, its payload here or offered. Returns false if the slot is kept.
bool Worker::on_payload(Peer& peer, const wire::Message& message, std::uint32_t slot,
                        std::span<const std::byte> bytes) noexcept {
  const wire::MessageHeader& header = message.header;
  if (header.kind == wire::MessageKind::request && peer.service == nullptr) {
    fail_peer(peer, protocol_error("a request to a worker that was not asked to serve"));
    return true;
  }
  const bool offered = has(header.flags, wire::MessageFlags::offered);
  const bool request = header.kind == wire::MessageKind::request;
  Ring<Deferred>& deferred = request ? deferred_requests_ : deferred_responses_;
  if ((request || offered) && (!deferred.empty() || !room_for(header.kind, offered))) {
    deferred.push({peer.index, peer.incarnation, slot, static_cast<std::uint32_t>(bytes.size()), offered});
    ++stats_.stall_transfer;
    return false;
  }
  return take_payload(peer, message, slot, bytes);
}

bool Worker::room_for(wire::MessageKind kind, bool offered) const noexcept {
  return !(kind == wire::MessageKind::request && served_.full()) && !(offered && in_transfers_.full());
}

bool Worker::deferred_ready() const noexcept {
  const auto ready = [&](wire::MessageKind kind, const Ring<Deferred>& deferred) {
    return !deferred.empty() && room_for(kind, deferred.front().offered);
  };
  return ready(wire::MessageKind::response, deferred_responses_) ||
         ready(wire::MessageKind::request, deferred_requests_);
}

bool Worker::take_payload(Peer& peer, const wire::Message& message, std::uint32_t slot,
                          std::span<const std::byte> bytes) noexcept {
  const wire::MessageHeader& header = message.header;
  if (header.kind == wire::MessageKind::response) {
    const Call* call = find_call(peer, header.call);
    if (call != nullptr && call->response_transfer != 0) {
      fail_peer(peer, protocol_error("a second answer to a call"));
      return true;
    }
    const bool eager = !has(header.flags, wire::MessageFlags::offered);
    if (call == nullptr && eager) return true;  // its deadline passed, or it was abandoned
  }
  if (has(header.flags, wire::MessageFlags::offered)) {
    begin_transfer(peer, message);
    return true;
  }
  Buffer payload;
  bool lent = false;
  const std::span<const std::byte> body = message.payload;
  if (!body.empty()) {
    stats_.bytes_received += body.size();
    // The application may keep what it is given. While slots are plenty it is given the slot itself.
    Result<Buffer> copy = receives_->scarce() ? arena_->allocate(body.size()) : Result<Buffer>(Buffer{});
    if (copy && !copy->empty()) {
      std::copy(body.begin(), body.end(), copy->data());
      ++stats_.copied_out;
      work_.bytes_copied += body.size();
      payload = std::move(*copy);
    } else {
      lent = true;
      payload = receives_->lend(slot, static_cast<std::size_t>(body.data() - bytes.data()), body.size());
    }
  }
  if (header.kind == wire::MessageKind::request) {
    on_request(peer, header, std::move(payload));
  } else {
    on_response(peer, header, std::move(payload));
  }
  return !lent;
}

// Messages that waited for a place to be served in, in the order they came.
void Worker::retry_deferred(wire::MessageKind kind, Ring<Deferred>& waiting) noexcept {
  while (!waiting.empty() && room_for(kind, waiting.front().offered)) {
    const Deferred deferred = waiting.pop();
    const auto bytes = receives_->contents(deferred.slot, deferred.bytes);
    const auto message = wire::decode(bytes);
    BX_CHECK(message.has_value(), "a deferred message was decoded before");
    Peer& peer = *peers_[deferred.peer];  // a peer that fails takes its deferred messages along
    if (take_payload(peer, *message, deferred.slot, bytes)) put_away(deferred.slot);
    mark_dirty(peer);
  }
}

void Worker::on_write_grant(Peer& peer, const wire::WriteGrant& grant) noexcept {
  const core::SlotHandle handle = out_transfers_.from_wire(grant.transfer);
  OutTransfer* transfer = out_transfers_.find(handle);
  if (transfer == nullptr || transfer->peer != peer.index || transfer->finished || grant.length == 0 ||
      grant.length > limits_.message_max || grant.offset > transfer->payload.size() ||
      grant.length > transfer->payload.size() - grant.offset || peer.grants.full()) {
    fail_peer(peer, protocol_error("a WRITE grant for what was not offered"));
    return;
  }
  ++transfer->writes_outstanding;
  peer.grants.push(grant);
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

// A granted WRITE is all there.
void Worker::on_notify(Peer& peer, std::uint32_t imm) noexcept {
  const wire::Announcement announcement = wire::decode_announcement(imm);
  if (!peer.issuer.on_control_ack(announcement.control_ack)) {
    fail_peer(peer, protocol_error("an acknowledgement of a grant never sent"));
    return;
  }
  if (peer.granted.empty() || peer.granted.front().number != announcement.target) {
    fail_peer(peer, protocol_error("an announcement of a WRITE that was not granted"));
    return;
  }
  const GrantedChunk chunk = peer.granted.pop();
  peer.window_in.on_retired(chunk.length);
  window_in_.on_retired(chunk.length);
  InTransfer* transfer = in_transfers_.find(chunk.transfer);
  BX_CHECK(transfer != nullptr, "a transfer went away while a WRITE to it was granted");
  on_chunk_done(*transfer, chunk.length);
}

void Worker::promise(Peer& peer) noexcept {
  ++peer.receives;
  ++promised_;
}

// Receives are divided. A slot that is kept, lent or holding a message that waits, is made good from the
// spare slots while there are any; beyond them its peer is owed a receive until one of its own slots comes
// back. So what one peer keeps waiting takes nothing from another, nor from peers that are still to come.
// `owed` is how many receives are owed to others than the one that asks.
bool Worker::may_replace(std::uint32_t owed) const noexcept {
  return receives_->kept() <= receives_->spare() + owed;
}

void Worker::give_receive(Peer& peer) noexcept {
  // One that a peer which is gone has left does as well.
  const bool there = receives_->posted() > promised_ || receives_->post();
  BX_CHECK(there, "a receive was given that no slot is left for");
  peer.issuer.on_reposted();
  promise(peer);
}

// A receive of the peer was consumed and its slot is kept.
void Worker::repost(Peer& peer) noexcept {
  if (may_replace(receives_owed_)) return give_receive(peer);
  ++stats_.stall_receive;
  ++receives_owed_;
  if (++peer.reposts_owed == 1) starved_peers_.push_back(&peer);
  receives_->set_listener(this);
}

void Worker::pay_back(Peer& peer) noexcept {
  give_receive(peer);
  --receives_owed_;
  if (--peer.reposts_owed == 0) std::erase(starved_peers_, &peer);
  mark_dirty(peer);
  wake();
}

void Worker::on_slot_free(std::uint32_t slot) noexcept {
  if (starved_peers_.empty()) return receives_->set_listener(nullptr);
  const SlotOwner owner = slot_owners_[slot];
  Peer* peer = peer_at(owner.peer);
  if (peer != nullptr && peer->incarnation == owner.incarnation && peer->reposts_owed > 0) {
    pay_back(*peer);
  } else {
    feed_starved();
  }
}

// Spare slots came back: whoever has waited longest gets one.
void Worker::feed_starved() noexcept {
  while (!starved_peers_.empty() && may_replace(receives_owed_ - 1)) {
    Peer& peer = *starved_peers_.front();
    std::rotate(starved_peers_.begin(), starved_peers_.begin() + 1, starved_peers_.end());
    pay_back(peer);
  }
}

// A consumed slot that nobody keeps. It is posted again if a peer that broke the rules consumed a receive
// that another was promised.
void Worker::put_away(std::uint32_t slot) noexcept {
  if (receives_->posted() < promised_) {
    receives_->post_again(slot);
  } else {
    receives_->release(slot);
  }
}

void Worker::mark_dirty(Peer& peer) noexcept {
  if (peer.state == PeerState::open && !peer.DirtyHook::linked()) dirty_.push_back(peer);
}

}  // namespace bx::engine
