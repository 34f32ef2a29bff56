// SPDX-License-Identifier: BSD-3-Clause
// What arrives: completions are routed to the lane or the message they belong to.
#include "libbx/engine/receive_path.h"
#include "libbx/engine/send_path.h"
#include "libbx/engine/wr_id.h"

namespace bx::engine {

// The usual way of a message, each step inline in the one before it; what is unusual stands below.

// What every message says beside its own matter; null if it may be believed.
inline const char* Worker::note(Peer& peer, const wire::MessageHeader& header) noexcept {
  if (header.epoch != peer.epoch) return "a message of another epoch";
  if (!peer.credits.on_grant(header.credit_grant, peer.credit_window))
    return "a grant beyond the peer's window";
  if (!peer.issuer.on_control_ack(header.control_ack)) return "an acknowledgement of a grant never sent";
  ++peer.stats.messages_received;
  if (header.kind != wire::MessageKind::credit_grant && !consumed_credit(peer))
    return "a message without a credit";
  if (has(header.flags, wire::kAsks)) [[unlikely]]
    on_credit_request(peer, header.flags);
  return nullptr;
}

inline Worker::SlotUse Worker::on_request(Peer& peer, const wire::Item& item, std::uint32_t slot) noexcept {
  if (!may_request(peer)) return SlotUse::done;
  if (!deferred_requests_.empty() || serving_ == config_.requests_max) [[unlikely]] {
    return defer(item.kind,
                 {peer.index, peer.incarnation, slot, item.offset + item.bytes, Deferred::Form::eager});
  }
  return take_request(peer, item, slot);
}

inline Worker::SlotUse Worker::take_answer(Peer& peer, const wire::Item& item, std::uint32_t slot) noexcept {
  Call* call = find_call(peer, item.call);
  if (call == nullptr) return SlotUse::done;  // its deadline passed, or it was abandoned
  if (call->response_transfer != 0) {
    fail_peer(peer, protocol_error("a second answer to a call"));
    return SlotUse::done;
  }
  Taken taken = take_payload(peer, item, slot);
  call->stats->bytes_in += item.bytes;
  on_answer(*call, item.status, std::move(taken.payload));
  return taken.slot;
}

// The slot of a message that cost a credit, when the message has been dealt with.
inline void Worker::settle_slot(Peer& peer, std::uint32_t slot, SlotUse use) noexcept {
  if (peer.state != PeerState::open) [[unlikely]] {
    settle_of_failed(peer, slot, use);
  } else if (use == SlotUse::kept) {
    repost(peer);
  } else {
    // To the same peer, whoever else waits for a receive: the last credit must always come back.
    receives_->post_again(slot);
    posted_again(peer);
  }
}

// What it holds is taken in its order until the peer breaks a rule; requests that find no place wait
// together.
[[gnu::flatten]] void Worker::on_batch(Peer& peer, std::uint32_t slot, const wire::Batch& batch) noexcept {
  receives_->hold(slot);
  receives_->share(slot);
  bool deferring = false;
  std::uint32_t at = 0;
  do {
    wire::Item item;
    if (!batch.read(at, item)) [[unlikely]] {
      fail_peer(peer, protocol_error("a message in a batch that is not well-formed"));
      break;
    }
    if (at > 0) ++peer.stats.messages_received;
    if (item.kind == wire::MessageKind::response) {
      take_answer(peer, item, slot);
    } else if (item.kind != wire::MessageKind::request) [[unlikely]] {
      on_unusual_item(peer, slot, batch, at, item);
    } else if (may_request(peer) && !deferring) {
      deferring = !deferred_requests_.empty() || serving_ == config_.requests_max;
      if (deferring) [[unlikely]] {
        defer_batch(peer, slot, batch, at, item.kind);
      } else {
        take_request(peer, item, slot);
      }
    }
    at = batch.after(item);
  } while (at > 0 && peer.state == PeerState::open);
  settle_slot(peer, slot, receives_->let_go(slot) ? SlotUse::done : SlotUse::kept);
}

inline void Worker::on_message(Peer& peer, std::uint32_t slot, std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < wire::kHeaderBytes) return on_unusual_message(peer, slot, bytes);
  const wire::LoadedHeader loaded(bytes.data());
  const wire::MessageHeader& header = *loaded;
  const bool eager = wire::is_eager(header, bytes.size());
  if (!eager && !wire::begins_batch(header)) return on_unusual_message(peer, slot, bytes);
  if (const char* fault = note(peer, header)) return refuse(peer, slot, protocol_error(fault));
  slot_owners_[slot] = {peer.index, peer.incarnation};
  if (!eager) return on_batch(peer, slot, wire::Batch(bytes));
  const wire::Item item = wire::item_of(header);
  settle_slot(
      peer, slot,
      item.kind == wire::MessageKind::request ? on_request(peer, item, slot) : take_answer(peer, item, slot));
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
  give_window(peer, record);
  record.buffer.reset();
}

inline void Worker::on_send_completion(const WrTag& tag, const fabric::Completion& completion) noexcept {
  Peer* peer = peer_at(tag.peer);
  BX_CHECK(peer != nullptr && tag.lane < peer->lane_count, "a completion for a lane that is gone");
  const bool success = completion.status == fabric::WcStatus::success;
  if (!success) [[unlikely]]
    note_failed_send(*peer, tag);
  PeerLane& lane = peer->lanes[tag.lane];
  const bool known = lane.lane->on_completion(tag.number, [&](SendRecord&& record) {
    if (record.use == SendRecord::Use::message) {
      retire_message(*peer, record);
    } else if (record.use != SendRecord::Use::nothing) {
      retire(*peer, lane, std::move(record), success);
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
        on_send_completion(tag, batch_[i]);
      }
    }
    if (count < batch_.size()) return false;
  }
  return true;
}

// Gives back what a send-queue request held. What may stage anew comes last: the record's place is free.
void Worker::retire(Peer& peer, PeerLane& lane, SendRecord&& record, bool success) noexcept {
  const std::uint64_t bytes = record.window_bytes;
  const core::SlotHandle handle = record.transfer;
  switch (record.use) {
    case SendRecord::Use::nothing:
      break;
    case SendRecord::Use::message:
      retire_message(peer, record);
      break;
    case SendRecord::Use::read: {
      --lane.reads_outstanding;
      if (limits_.adaptive && success) sample_in(peer, bytes, record.posted);
      on_arrived(peer, bytes);
      InTransfer* transfer = in_transfers_.find(handle);
      BX_CHECK(transfer != nullptr, "a transfer went away while a READ of it was outstanding");
      if (!success) transfer->cursor.stop();
      on_chunk_done(*transfer, bytes);
      break;
    }
    case SendRecord::Use::put: {
      give_window(peer, record);
      InTransfer* transfer = in_transfers_.find(handle);
      BX_CHECK(transfer != nullptr, "a transfer went away while a WRITE of it was outstanding");
      if (!success) transfer->cursor.stop();
      on_chunk_done(*transfer, bytes);
      break;
    }
    case SendRecord::Use::write: {
      give_window(peer, record);
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
  put_away_of_failed(peer, slot);
}

// Of a peer that is gone, in error, before it is open, or an announcement.
void Worker::on_unusual_receive(Peer* peer, std::uint32_t slot, const fabric::Completion& completion,
                                std::span<const std::byte> bytes) noexcept {
  if (peer == nullptr || peer->state == PeerState::failed) {
    if (peer != nullptr && peer->receives > 0) {
      --peer->receives;
      return put_away_of_failed(*peer, slot);
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
  } else if (consumed_credit(*peer)) {
    receives_->post_again(slot);
    posted_again(*peer);
    on_notify(*peer, completion);
  } else {
    refuse(*peer, slot, protocol_error("a message without a credit"));
  }
  mark_dirty(*peer);
}

void Worker::on_unusual_item(Peer& peer, std::uint32_t slot, const wire::Batch& batch, std::uint32_t at,
                             const wire::Item& item) noexcept {
  if (wire::is_offering(item.kind)) {
    on_offer_of_batch(peer, slot, batch, at, item);
  } else if (item.kind == wire::MessageKind::write_grant) {
    on_write_grant(peer, wire::read_write_grant(batch.body(item)));
  } else {
    on_transfer_done(peer, wire::read_transfer_done(batch.body(item)).transfer);
  }
}

// Anything but a request or an answer with its payload in it, or a batch that begins with one.
void Worker::on_unusual_message(Peer& peer, std::uint32_t slot, std::span<const std::byte> bytes) noexcept {
  if (bytes.size() >= wire::kHeaderBytes) {
    const wire::LoadedHeader loaded(bytes.data());
    if (wire::begins_batch_by_offer(*loaded)) {
      if (const char* fault = note(peer, *loaded)) return refuse(peer, slot, protocol_error(fault));
      slot_owners_[slot] = {peer.index, peer.incarnation};
      return on_batch(peer, slot, wire::Batch(bytes));
    }
  }
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

}  // namespace bx::engine
