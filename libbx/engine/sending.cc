// SPDX-License-Identifier: BSD-3-Clause
// What leaves: per peer, in this order: ends of transfers, granted WRITEs, requests and responses, a pure
// grant if one is due. Each goes only with a credit, a send-queue slot and room in the window (mechanisms 4
// and 5).
#include <algorithm>
#include <array>
#include <utility>

#include "libbx/engine/send_path.h"

namespace bx::engine {

// A message costs a credit and a slot; what is missing is counted. `credits` must be there: more than the one
// it costs, for a message that may not take the last.
bool Worker::may_send(Peer& peer, const Lane& lane, std::uint32_t credits) noexcept {
  if (peer.credits.available() < credits) {
    ++peer.stats.stall_credit;
    peer.stall.enter(StallReason::credit, now_);
    return false;
  }
  if (lane.data_slots() == 0) {
    note_no_slot(peer);
    return false;
  }
  if (peer.stall.reason() > StallReason::window) peer.stall.leave(now_);  // the window is asked next
  return true;
}

void Worker::note_no_slot(Peer& peer) noexcept {
  const auto data = peer.all_lanes().first(peer.data_lanes);
  const bool elsewhere =
      std::any_of(data.begin(), data.end(), [](const PeerLane& each) { return each.lane->data_slots() > 0; });
  ++(elsewhere ? peer.stats.stall_lane : peer.stats.stall_slot);
  peer.stall.enter(elsewhere ? StallReason::lane : StallReason::slot, now_);
}

// What goes at any time, the last credit included: ends of transfers and grants of WRITEs.
bool Worker::may_send_control(Peer& peer, const Lane& lane, wire::MessageKind kind) noexcept {
  return lane.may_follow(wire::descriptor_bytes(kind)) || may_send(peer, lane);
}

void Worker::send_control(Peer& peer, Lane& lane, wire::Message& message) noexcept {
  const std::size_t descriptor = wire::descriptor_bytes(message.header.kind);
  if (lane.may_follow(descriptor)) {
    std::array<std::byte, wire::kEnvelopeBytesMax> envelope;
    wire::encode_envelope(message, envelope);
    follow(peer, lane, message.header, std::span(envelope).subspan(wire::kHeaderBytes, descriptor));
  } else {
    peer.credits.consume();
    stage(peer, lane, message);
  }
}

// An offer may have to wait at its receiver, as a request may: the last credit is not for the SEND it is in.
bool Worker::offer_may_follow(const Peer& peer, const Lane& lane) noexcept {
  return peer.takes_offer_batches && may_follow(peer, lane, wire::MessageKind::request, wire::kOfferBytes);
}

// It has left its queue for its lane, as `bytes`.
inline Worker::Attempt Worker::done_with(Peer& peer, FairQueue& queue, Outgoing& outgoing,
                                         std::uint64_t bytes) noexcept {
  queue.pop_sent(outgoing, bytes);
  --peer.queued;
  peer.stall.leave(now_);
  if (outgoing.header.kind == wire::MessageKind::response) {
    answers_.erase(outgoing);
    --serving_;
  }
  return Attempt::sent;
}

// A payload that is offered counts as the largest message does: the bytes of it come later.
inline Worker::Attempt Worker::attempt(Peer& peer, FairQueue& queue, Outgoing& outgoing) noexcept {
  const std::size_t bytes = outgoing.payload.size();
  const core::Transfer choice = core::choose_transfer(bytes, peer.transfer_limits);
  const bool offered = choice == core::Transfer::pull || choice == core::Transfer::granted_write;
  const std::uint64_t cost = wire::kHeaderBytes + bytes;
  Lane& lane = *peer.lane_of(outgoing.header.session).lane;
  if (choice == core::Transfer::inlined && may_follow(peer, lane, outgoing.header.kind, bytes)) {
    follow_payload(peer, lane, outgoing.header, outgoing.payload);
    return done_with(peer, queue, outgoing, cost);
  }
  if (!(offered && offer_may_follow(peer, lane)) &&
      !may_send(peer, lane, offered ? 1 + core::kCreditsReserved : credits_for(outgoing.header.kind))) {
    return peer.data_lanes == 1 || lane.data_slots() > 0 ? Attempt::waits : Attempt::session_waits;
  }
  if (offered) {
    if (!send_offer(peer, outgoing, choice == core::Transfer::granted_write)) return Attempt::waits;
  } else {
    if (choice == core::Transfer::eager) {
      const core::WindowVerdict verdict = window_verdict(peer, outgoing.header.session, bytes);
      if (verdict > core::WindowVerdict::lent) {
        count_closed(peer, verdict);
        return verdict == core::WindowVerdict::session_closed ? Attempt::session_waits : Attempt::waits;
      }
    }
    send_payload(peer, lane, outgoing.header, outgoing.payload, choice == core::Transfer::inlined);
  }
  return done_with(peer, queue, outgoing, cost);
}

// False if there is none or all have to wait. A session whose lane is full or whose window is closed stands
// back for those of others; in a queue that knows no sessions it holds them all up.
inline bool Worker::send_first(Peer& peer, FairQueue& queue) noexcept {
  Outgoing* outgoing = queue.front();
  if (outgoing == nullptr) return false;
  const Attempt outcome = attempt(peer, queue, *outgoing);
  if (outcome == Attempt::session_waits) queue.step_aside();
  return outcome != Attempt::waits;
}

// Requests of high priority go first, but only so many in a row while others wait.
inline bool Worker::send_first_request(Peer& peer) noexcept {
  if (peer.urgent.front() == nullptr) [[likely]]
    return send_first(peer, peer.requests);
  const bool contended = peer.requests.front() != nullptr;
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
  FairQueue* queue = &peer.responses;
  FairQueue* other = &peer.requests;
  while (queue != nullptr) {
    // False: there is none, or it has to wait.
    if (!(queue == &peer.requests ? send_first_request(peer) : send_first(peer, *queue))) queue = nullptr;
    if (other != nullptr) std::swap(queue, other);
  }
  if (peer.data_lanes == 1 && !limits_.windows_nested) return;  // nobody stood back
  peer.responses.resume();
  peer.requests.resume();
  peer.urgent.resume();
}

void Worker::flush_receives() noexcept {
  const auto flushed = receives_->flush();
  if (flushed.receives == 0) return;
  work_.receives_posted += flushed.receives;
  work_.doorbells += flushed.doorbells;
}

inline void Worker::flush_peer(Peer& peer) noexcept {
  if (!peer.done.empty()) send_done(peer);
  if (peer.grants_waiting > 0) send_granted(peer);
  if (peer.queued > 0) send_pending(peer);
  if (peer.issuer.pure_grant_due() && peer.control_lane().lane->free_slots() > 0) send_pure_grant(peer);
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
    bool more = false;
    PeerLane* each = peer->lanes.data();
    PeerLane* const end = each + peer->lane_count;
    do {
      const auto sent = each->lane->flush();
      work_.sends_posted += sent.sends;
      work_.doorbells += sent.doorbells;
      more |= sent.more;
    } while (++each != end);
    peer->issuer.on_left();
    if (more && !peer->DirtyHook::linked()) [[unlikely]]
      again.push_back(*peer);  // linked: a slot it freed is its own
  }
  dirty_.splice_back(again);
}

void Worker::stage(Peer& peer, Lane& lane, wire::Message& message) noexcept {
  const bool pure = message.header.kind == wire::MessageKind::credit_grant;
  stamp(peer, pure ? peer.issuer.pure_grant() : peer.issuer.notice_ahead(), message.header);
  const std::size_t length = wire::encode_envelope(message, {lane.next_envelope(), wire::kEnvelopeBytesMax});
  lane.stage_message(length, {});
}

void Worker::send_pure_grant(Peer& peer) noexcept {
  wire::Message message;
  message.header.kind = wire::MessageKind::credit_grant;
  ++stats_.pure_grants_sent;
  Lane& lane = *peer.control_lane().lane;
  stage(peer, lane, message);
  lane.end_batch();
}

}  // namespace bx::engine
