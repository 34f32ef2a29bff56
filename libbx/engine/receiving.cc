// SPDX-License-Identifier: BSD-3-Clause
// What arrives: completions are routed to the lane or the message they belong to.
#include <algorithm>

#include "libbx/engine/call_path.h"
#include "libbx/engine/wr_id.h"

namespace bx::engine {
namespace {

Error protocol_error(const char* detail) {
  return {ErrorCode::protocol, ErrorScope::session, 0, detail};
}

}  // namespace

// The usual way of a message, each step inline in the one before it; what is unusual stands below.

// Receives are divided. A slot that is kept, lent or holding a message that waits, is made good from the
// spare slots while there are any; beyond them its peer is owed a receive until one of its own slots comes
// back. So what one peer keeps waiting takes nothing from another, nor from peers that are still to come.
// `owed` is how many receives are owed to others than the one that asks.
inline bool Worker::may_replace(std::uint32_t owed) const noexcept {
  return receives_->kept() <= receives_->spare() + owed;
}

inline void Worker::give_receive(Peer& peer) noexcept {
  // One that a peer which is gone has left does as well.
  if (surplus_ > 0) [[unlikely]] {
    --surplus_;
  } else {
    BX_CHECK(receives_->post(), "a receive was given that no slot is left for");
  }
  peer.issuer.on_reposted();
}

// A receive of the peer was consumed and its slot is kept.
inline void Worker::repost(Peer& peer) noexcept {
  if (may_replace(receives_owed_)) [[likely]]
    give_receive(peer);
  else
    owe_receive(peer);
}

// What every message says beside its own matter; null if it may be believed.
inline const char* Worker::note(Peer& peer, const wire::MessageHeader& header) noexcept {
  if (header.epoch != peer.epoch) return "a message of another epoch";
  if (!peer.credits.on_grant(header.credit_grant, peer.credit_window))
    return "a grant beyond the peer's window";
  if (!peer.issuer.on_control_ack(header.control_ack)) return "an acknowledgement of a grant never sent";
  ++peer.stats.messages_received;
  if (header.kind != wire::MessageKind::credit_grant && !peer.issuer.on_received())
    return "a message without a credit";
  return nullptr;
}

// The application may keep what it is given. While slots are plenty it is given the slot itself.
inline Worker::Taken Worker::take_payload(const wire::MessageHeader& header, std::uint32_t slot) noexcept {
  const std::size_t size = header.payload_bytes;
  if (size == 0) return {Buffer{}, SlotUse::done};
  if (receives_->scarce()) [[unlikely]] {
    pressure_watched_ = true;
    if (auto copy = arena_->allocate(size, memory::Side::receive)) {
      const auto body =
          receives_->contents(slot, wire::kHeaderBytes + header.payload_bytes).subspan(wire::kHeaderBytes);
      std::copy(body.begin(), body.end(), copy->data());
      ++stats_.copied_out;
      work_.bytes_copied += size;
      return {std::move(*copy), SlotUse::done};
    }
  }
  return {receives_->lend(slot, wire::kHeaderBytes, size), SlotUse::kept};
}

inline bool Worker::may_request(Peer& peer) noexcept {
  if (peer.service != nullptr) return true;
  fail_peer(peer, protocol_error("a request to a worker that was not asked to serve"));
  return false;
}

inline Worker::SlotUse Worker::take_request(Peer& peer, const wire::MessageHeader& header,
                                            std::uint32_t slot) noexcept {
  Taken taken = take_payload(header, slot);
  peer.stats.bytes_received += header.payload_bytes;
  ++serving_;
  hand_over(peer, header, std::move(taken.payload));
  return taken.slot;
}

inline Worker::SlotUse Worker::on_request(Peer& peer, const wire::MessageHeader& header,
                                          std::uint32_t slot) noexcept {
  if (!may_request(peer)) return SlotUse::done;
  if (!deferred_requests_.empty() || serving_ == config_.requests_max) [[unlikely]] {
    return defer(peer, header, slot, wire::kHeaderBytes + header.payload_bytes);
  }
  return take_request(peer, header, slot);
}

inline Worker::SlotUse Worker::take_answer(Peer& peer, const wire::MessageHeader& header,
                                           std::uint32_t slot) noexcept {
  Call* call = find_call(peer, header.call);
  if (call == nullptr) return SlotUse::done;  // its deadline passed, or it was abandoned
  if (call->response_transfer != 0) {
    fail_peer(peer, protocol_error("a second answer to a call"));
    return SlotUse::done;
  }
  Taken taken = take_payload(header, slot);
  peer.stats.bytes_received += header.payload_bytes;
  on_answer(*call, header.status, std::move(taken.payload));
  return taken.slot;
}

// The slot of a message that cost a credit, when the message has been dealt with.
inline void Worker::settle_slot(Peer& peer, std::uint32_t slot, SlotUse use) noexcept {
  if (peer.state != PeerState::open) [[unlikely]] {
    if (use == SlotUse::done) put_away(slot);
  } else if (use == SlotUse::kept) {
    repost(peer);
  } else {
    // To the same peer, whoever else waits for a receive: the last credit must always come back.
    receives_->post_again(slot);
    peer.issuer.on_reposted();
  }
}

inline void Worker::on_message(Peer& peer, std::uint32_t slot, std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < wire::kHeaderBytes) return on_unusual_message(peer, slot, bytes);
  const wire::LoadedHeader loaded(bytes.data());
  const wire::MessageHeader& header = *loaded;
  if (!wire::is_eager(header, bytes.size())) return on_unusual_message(peer, slot, bytes);
  if (const char* fault = note(peer, header)) return refuse(peer, slot, protocol_error(fault));
  slot_owners_[slot] = {peer.index, peer.incarnation};
  settle_slot(peer, slot,
              header.kind == wire::MessageKind::request ? on_request(peer, header, slot)
                                                        : take_answer(peer, header, slot));
}

inline void Worker::on_receive_completion(std::uint32_t slot, const fabric::Completion& completion) noexcept {
  const auto bytes = receives_->consumed(slot, completion.byte_len);
  Peer* peer = peer_of_qp_.find(completion.qp);
  if (peer == nullptr || peer->state != PeerState::open || completion.status != fabric::WcStatus::success ||
      completion.opcode != fabric::WcOpcode::recv) [[unlikely]] {
    return on_unusual_receive(peer, slot, completion, bytes);
  }
  on_message(*peer, slot, bytes);
  mark_dirty(*peer);
}

inline void Worker::retire_message(Peer& peer, SendRecord& record) noexcept {
  peer.window_out.on_retired(record.window_bytes);
  record.buffer.reset();
}

inline void Worker::on_send_completion(std::uint32_t index, std::uint32_t number,
                                       const fabric::Completion& completion) noexcept {
  Peer* peer = peer_at(index);
  BX_CHECK(peer != nullptr, "a completion for a lane that is gone");
  const bool success = completion.status == fabric::WcStatus::success;
  if (!success) [[unlikely]]
    note_failed_send(*peer, number);
  const bool known = peer->lane->on_completion(number, [&](SendRecord&& record) {
    if (record.use == SendRecord::Use::message) {
      retire_message(*peer, record);
    } else if (record.use != SendRecord::Use::nothing) {
      retire(*peer, std::move(record), success);
    }
  });
  BX_CHECK(known, "a completion for a request that is not outstanding");
  if (success) {
    mark_dirty(*peer);
  } else {
    fail_peer(*peer, {ErrorCode::device, ErrorScope::session, static_cast<int>(completion.status),
                      to_string(completion.status).data()});
  }
}

// Returns true if completions were left for the next turn.
[[gnu::flatten]] bool Worker::poll() noexcept {
  while (work_.completions < config_.turn_completions_max) {
    const std::size_t count = cq_->poll(batch_);
    if (count == 0) {
      ++work_.polls_empty;
      return false;
    }
    work_.completions += static_cast<std::uint32_t>(count);
    for (std::size_t i = 0; i < count; ++i) {
      const WrTag tag = decode(batch_[i].wr_id);
      if (tag.kind == WrKind::receive) {
        on_receive_completion(tag.number, batch_[i]);
      } else {
        on_send_completion(tag.peer, tag.number, batch_[i]);
      }
    }
    if (count < batch_.size()) return false;
  }
  return true;
}

// Gives back what a send-queue request held. What may stage anew comes last: the record's place is free.
void Worker::retire(Peer& peer, SendRecord&& record, bool success) noexcept {
  const std::uint64_t bytes = record.window_bytes;
  const core::SlotHandle handle = record.transfer;
  switch (record.use) {
    case SendRecord::Use::nothing:
      break;
    case SendRecord::Use::message:
      retire_message(peer, record);
      break;
    case SendRecord::Use::read: {
      --peer.reads_outstanding;
      peer.window_in.on_retired(bytes);
      window_in_.on_retired(bytes);
      InTransfer* transfer = in_transfers_.find(handle);
      BX_CHECK(transfer != nullptr, "a transfer went away while a READ of it was outstanding");
      if (!success) transfer->cursor.stop();
      on_chunk_done(*transfer, bytes);
      break;
    }
    case SendRecord::Use::write: {
      peer.window_out.on_retired(bytes);
      OutTransfer* transfer = out_transfers_.find(handle);
      BX_CHECK(transfer != nullptr, "a transfer went away while a WRITE of it was outstanding");
      if (--transfer->writes_outstanding == 0 && transfer->finished) erase_out_transfer(handle);
      break;
    }
    case SendRecord::Use::notify:
    case SendRecord::Use::drain:
      break;
  }
}

// A receive that the peer has consumed, but not as a credit.
void Worker::refuse(Peer& peer, std::uint32_t slot, const Error& error) noexcept {
  fail_peer(peer, error);
  --peer.receives;
  put_away(slot);
}

// Of a peer that is gone, in error, before it is open, or an announcement.
void Worker::on_unusual_receive(Peer* peer, std::uint32_t slot, const fabric::Completion& completion,
                                std::span<const std::byte> bytes) noexcept {
  if (peer == nullptr || peer->state == PeerState::failed) {
    if (peer != nullptr && peer->receives > 0) {
      --peer->receives;
    } else {
      --surplus_;  // it took a receive of somebody else's
    }
    return put_away(slot);
  }
  if (completion.status != fabric::WcStatus::success) {
    peer->failed_request = "receive";
    refuse(*peer, slot,
           {ErrorCode::device, ErrorScope::session, static_cast<int>(completion.status),
            to_string(completion.status).data()});
  } else if (completion.opcode != fabric::WcOpcode::recv_rdma_with_imm) {
    on_message(*peer, slot, bytes);
  } else if (peer->issuer.on_received()) {
    receives_->post_again(slot);
    peer->issuer.on_reposted();
    on_notify(*peer, completion.imm);
  } else {
    refuse(*peer, slot, protocol_error("a message without a credit"));
  }
  mark_dirty(*peer);
}

// Anything but a request or an answer with its payload in it.
void Worker::on_unusual_message(Peer& peer, std::uint32_t slot, std::span<const std::byte> bytes) noexcept {
  const auto message = wire::decode(bytes);
  if (!message) return refuse(peer, slot, protocol_error(message.error().detail));
  if (const char* fault = note(peer, message->header)) return refuse(peer, slot, protocol_error(fault));
  if (message->header.kind == wire::MessageKind::credit_grant) {
    ++stats_.pure_grants_received;
    if (!peer.issuer.on_pure_grant())
      return refuse(peer, slot, protocol_error("more pure grants at once than there are control receives"));
    // Its receive is not a credit's, but it is posted again all the same, and at once: it lends nothing.
    receives_->post_again(slot);
    return;
  }
  slot_owners_[slot] = {peer.index, peer.incarnation};
  settle_slot(peer, slot, dispatch(peer, *message, slot));
}

Worker::SlotUse Worker::dispatch(Peer& peer, const wire::Message& message, std::uint32_t slot) noexcept {
  switch (message.header.kind) {
    case wire::MessageKind::request:
    case wire::MessageKind::response:
      return on_offer(peer, message, slot);
    case wire::MessageKind::write_grant:
      on_write_grant(peer, message.grant);
      break;
    case wire::MessageKind::transfer_done:
      on_transfer_done(peer, message.done.transfer);
      break;
    case wire::MessageKind::credit_grant:
      break;
  }
  return SlotUse::done;
}

Worker::SlotUse Worker::on_offer(Peer& peer, const wire::Message& message, std::uint32_t slot) noexcept {
  const wire::MessageHeader& header = message.header;
  const bool request = header.kind == wire::MessageKind::request;
  if (request && !may_request(peer)) return SlotUse::done;
  const Ring<Deferred>& deferred = request ? deferred_requests_ : deferred_responses_;
  if (!deferred.empty() || !room_for(header.kind, true)) {
    return defer(peer, header, slot, wire::kHeaderBytes + wire::kOfferBytes);
  }
  take_offer(peer, message);
  return SlotUse::done;
}

Worker::SlotUse Worker::defer(Peer& peer, const wire::MessageHeader& header, std::uint32_t slot,
                              std::size_t bytes) noexcept {
  const bool request = header.kind == wire::MessageKind::request;
  (request ? deferred_requests_ : deferred_responses_)
      .push({peer.index, peer.incarnation, slot, static_cast<std::uint32_t>(bytes),
             has(header.flags, wire::MessageFlags::offered)});
  ++stats_.stall_transfer;
  return SlotUse::kept;
}

bool Worker::room_for(wire::MessageKind kind, bool offered) const noexcept {
  return !(kind == wire::MessageKind::request && serving_ == config_.requests_max) &&
         !(offered && in_transfers_.full());
}

bool Worker::deferred_ready() const noexcept {
  const auto ready = [&](wire::MessageKind kind, const Ring<Deferred>& deferred) {
    return !deferred.empty() && room_for(kind, deferred.front().offered);
  };
  return ready(wire::MessageKind::response, deferred_responses_) ||
         ready(wire::MessageKind::request, deferred_requests_);
}

void Worker::take_offer(Peer& peer, const wire::Message& message) noexcept {
  const wire::MessageHeader& header = message.header;
  if (header.kind == wire::MessageKind::response) {
    const Call* call = find_call(peer, header.call);
    if (call != nullptr && call->response_transfer != 0) {
      fail_peer(peer, protocol_error("a second answer to a call"));
      return;
    }
  }
  begin_transfer(peer, message);
}

// Messages that waited for a place to be served in, in the order they came.
void Worker::retry_deferred(wire::MessageKind kind, Ring<Deferred>& waiting) noexcept {
  while (!waiting.empty() && room_for(kind, waiting.front().offered)) {
    const Deferred deferred = waiting.pop();
    const auto message = wire::decode(receives_->contents(deferred.slot, deferred.bytes));
    BX_CHECK(message.has_value(), "a deferred message was decoded before");
    Peer& peer = *peers_[deferred.peer];  // a peer that fails takes its deferred messages along
    SlotUse use = SlotUse::done;
    if (deferred.offered) {
      take_offer(peer, *message);
    } else {
      use = take_request(peer, message->header, deferred.slot);
    }
    if (use == SlotUse::done) put_away(deferred.slot);
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

void Worker::owe_receive(Peer& peer) noexcept {
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
  if (surplus_ < 0) {
    ++surplus_;
    receives_->post_again(slot);
  } else {
    receives_->release(slot);
  }
}

}  // namespace bx::engine
