// SPDX-License-Identifier: BSD-3-Clause
// What leaves: per peer, in this order: ends of transfers, granted WRITEs, requests and responses, a pure
// grant if one is due. Each goes only with a credit, a send-queue slot and room in the window (mechanisms 4
// and 5).
#include <array>
#include <utility>

#include "libbx/engine/send_path.h"

namespace bx::engine {

// A message costs a credit and a slot; what is missing is counted. `credits` must be there: more than the one
// it costs, for a message that may not take the last.
bool Worker::may_send(Peer& peer, std::uint32_t credits) noexcept {
  if (peer.credits.available() < credits) {
    ++peer.stats.stall_credit;
    peer.stall.enter(StallReason::credit, now_);
    return false;
  }
  if (peer.lane->data_slots() == 0) {
    ++peer.stats.stall_slot;
    peer.stall.enter(StallReason::slot, now_);
    return false;
  }
  if (peer.stall.reason() > StallReason::window) peer.stall.leave(now_);  // the window is asked next
  return true;
}

// What goes at any time, the last credit included: ends of transfers and grants of WRITEs.
bool Worker::may_send_control(Peer& peer, wire::MessageKind kind) noexcept {
  return peer.lane->may_follow(wire::descriptor_bytes(kind)) || may_send(peer);
}

void Worker::send_control(Peer& peer, wire::Message& message) noexcept {
  const std::size_t descriptor = wire::descriptor_bytes(message.header.kind);
  if (peer.lane->may_follow(descriptor)) {
    std::array<std::byte, wire::kEnvelopeBytesMax> envelope;
    wire::encode_envelope(message, envelope);
    follow(peer, message.header, std::span(envelope).subspan(wire::kHeaderBytes, descriptor));
  } else {
    peer.credits.consume();
    stage(peer, message);
  }
}

// It has left its queue for the lane.
inline bool Worker::done_with(Peer& peer, Outgoing& outgoing) noexcept {
  outgoing.unlink();
  --peer.queued;
  peer.stall.leave(now_);
  if (outgoing.header.kind == wire::MessageKind::response) {
    answers_.erase(outgoing);
    --serving_;
  }
  return true;
}

// False if there is none or it has to wait.
inline bool Worker::send_first(Peer& peer, IntrusiveList<Outgoing, Waiting>& queue) noexcept {
  Outgoing* outgoing = queue.front();
  if (outgoing == nullptr) return false;
  const std::size_t bytes = outgoing->payload.size();
  const core::Transfer choice = core::choose_transfer(bytes, peer.transfer_limits);
  const bool offered = choice == core::Transfer::pull || choice == core::Transfer::granted_write;
  if (choice == core::Transfer::inlined && may_follow(peer, outgoing->header.kind, bytes)) {
    follow_payload(peer, outgoing->header, outgoing->payload);
    return done_with(peer, *outgoing);
  }
  if (!may_send(peer, offered ? 1 + core::kCreditsReserved : credits_for(outgoing->header.kind)))
    return false;
  if (offered) {
    if (!send_offer(peer, *outgoing, choice == core::Transfer::granted_write)) return false;
  } else {
    if (choice == core::Transfer::eager && !peer.window_out.admits(bytes)) {
      ++peer.stats.stall_window;
      peer.stall.enter(StallReason::window, now_);
      return false;
    }
    send_payload(peer, outgoing->header, outgoing->payload, choice == core::Transfer::inlined);
  }
  return done_with(peer, *outgoing);
}

// Requests of high priority go first, but only so many in a row while others wait.
inline bool Worker::send_first_request(Peer& peer) noexcept {
  if (peer.urgent.empty()) [[likely]]
    return send_first(peer, peer.requests);
  const bool contended = !peer.requests.empty();
  if (contended && peer.urgent_in_a_row == kHighInARow) {
    if (!send_first(peer, peer.requests)) return false;
    peer.urgent_in_a_row = 0;
    return true;
  }
  if (!send_first(peer, peer.urgent)) return false;
  peer.urgent_in_a_row = contended ? peer.urgent_in_a_row + 1 : 0;
  return true;
}

// One of each in turn, so that neither starves the other.
inline void Worker::send_pending(Peer& peer) noexcept {
  IntrusiveList<Outgoing, Waiting>* queue = &peer.responses;
  IntrusiveList<Outgoing, Waiting>* other = &peer.requests;
  while (queue != nullptr) {
    // False: there is none, or it has to wait.
    if (!(queue == &peer.requests ? send_first_request(peer) : send_first(peer, *queue))) queue = nullptr;
    if (other != nullptr) std::swap(queue, other);
  }
}

void Worker::flush_receives() noexcept {
  const auto flushed = receives_->flush();
  if (flushed.receives == 0) return;
  work_.receives_posted += flushed.receives;
  work_.doorbells += flushed.doorbells;
}

inline void Worker::flush_peer(Peer& peer) noexcept {
  if (!peer.done.empty()) send_done(peer);
  if (!peer.grants.empty()) send_granted(peer);
  if (peer.queued > 0) send_pending(peer);
  if (peer.issuer.pure_grant_due() && peer.lane->free_slots() > 0) send_pure_grant(peer);
}

// Receives are posted before any grant that promises them leaves. What is staged for a peer may free slots
// (payloads copied into the request), and so make receives that its messages already tell of.
[[gnu::flatten]] void Worker::flush_dirty() noexcept {
  flush_receives();
  if (dirty_.empty()) return;
  IntrusiveList<Peer, Dirty> again;
  while (Peer* peer = dirty_.pop_front()) {
    flush_peer(*peer);
    flush_receives();
    const auto sent = peer->lane->flush();
    peer->issuer.on_left();
    work_.sends_posted += sent.sends;
    work_.doorbells += sent.doorbells;
    if (sent.more && !peer->DirtyHook::linked()) [[unlikely]]
      again.push_back(*peer);  // linked: a slot it freed is its own
  }
  dirty_.splice_back(again);
}

void Worker::stage(Peer& peer, wire::Message& message) noexcept {
  const bool pure = message.header.kind == wire::MessageKind::credit_grant;
  stamp(peer, pure ? peer.issuer.pure_grant() : peer.issuer.notice_ahead(), message.header);
  const std::size_t length =
      wire::encode_envelope(message, {peer.lane->next_envelope(), wire::kEnvelopeBytesMax});
  peer.lane->stage_message(length, {});
}

void Worker::send_pure_grant(Peer& peer) noexcept {
  wire::Message message;
  message.header.kind = wire::MessageKind::credit_grant;
  ++stats_.pure_grants_sent;
  stage(peer, message);
  peer.lane->end_batch();
}

}  // namespace bx::engine
