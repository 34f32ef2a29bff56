// SPDX-License-Identifier: BSD-3-Clause
// Messages that found no place to be served in (requests.max, transfers.max), and offers, which are what
// needs one. Such a message keeps its receive slot and waits, so its sender is held back by its credits.
#include "libbx/engine/receive_path.h"

namespace bx::engine {

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

void Worker::drop_deferred(const Peer& peer) noexcept {
  for (Ring<Deferred>* deferred : {&deferred_requests_, &deferred_responses_}) {
    for (std::size_t left = deferred->size(); left > 0; --left) {
      const Deferred message = deferred->pop();
      if (message.peer == peer.index && message.incarnation == peer.incarnation) {
        put_away(message.slot);
      } else {
        deferred->push(message);
      }
    }
  }
}

}  // namespace bx::engine
