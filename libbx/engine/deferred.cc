// SPDX-License-Identifier: BSD-3-Clause
// Messages that found no place to be served in (requests.max, transfers.max), and offers, which are what
// needs one. Such a message holds its receive slot and waits, so its sender is held back by its credits.
#include "libbx/engine/receive_path.h"

namespace bx::engine {

Worker::SlotUse Worker::on_offer(Peer& peer, const wire::Message& message, std::uint32_t slot) noexcept {
  const wire::MessageKind kind = message.header.kind;
  const bool request = kind == wire::MessageKind::request;
  if (request && !may_request(peer)) return SlotUse::done;
  if (!deferred_of(kind).empty() || !room_for(kind, Deferred::Form::offer)) {
    return defer(kind, {peer.index, peer.incarnation, slot, wire::kHeaderBytes + wire::kOfferBytes,
                        Deferred::Form::offer});
  }
  take_offer(peer, message);
  return SlotUse::done;
}

Worker::SlotUse Worker::defer(wire::MessageKind kind, const Deferred& deferred) noexcept {
  receives_->hold(deferred.slot);
  deferred_of(kind).push(deferred);
  ++stats_.stall_transfer;
  return SlotUse::kept;
}

// Once for all that is behind it: what waits holds the slot, so no other has its number.
void Worker::defer_batch(Peer& peer, std::uint32_t slot, const wire::Batch& batch, std::uint32_t at,
                         wire::MessageKind item) noexcept {
  const wire::MessageKind kind = wire::kind_of(item);
  Ring<Deferred>& waiting = deferred_of(kind);
  if (!waiting.empty() && waiting.back().slot == slot) return;
  const bool offering = wire::is_offering(item);
  defer(kind, {peer.index, peer.incarnation, slot, batch.size(),
               offering ? Deferred::Form::batch_offer : Deferred::Form::batch, at});
}

void Worker::on_offer_of_batch(Peer& peer, std::uint32_t slot, const wire::Batch& batch, std::uint32_t at,
                               const wire::Item& item) noexcept {
  const wire::MessageKind kind = wire::kind_of(item.kind);
  if (kind == wire::MessageKind::request && !may_request(peer)) return;
  if (!deferred_of(kind).empty() || !room_for(kind, Deferred::Form::offer)) {
    return defer_batch(peer, slot, batch, at, item.kind);
  }
  take_offer(peer, wire::offer_message(batch, item));
}

bool Worker::room_for(wire::MessageKind kind, Deferred::Form form) const noexcept {
  return !(kind == wire::MessageKind::request && serving_ == config_.requests_max) &&
         !((form == Deferred::Form::offer || form == Deferred::Form::batch_offer) && in_transfers_.full());
}

bool Worker::deferred_ready() const noexcept {
  const auto ready = [&](wire::MessageKind kind, const Ring<Deferred>& deferred) {
    return !deferred.empty() && room_for(kind, deferred.front().form);
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

// Messages that waited for a place to be served in, in the order they came. A peer that fails takes its
// deferred messages along.
void Worker::retry_deferred(wire::MessageKind kind, Ring<Deferred>& waiting) noexcept {
  while (!waiting.empty() && room_for(kind, waiting.front().form)) {
    Peer& peer = *peers_[waiting.front().peer];
    const Deferred::Form form = waiting.front().form;
    if (form == Deferred::Form::batch || form == Deferred::Form::batch_offer) {
      serve_deferred_batch(kind, waiting);
    } else {
      serve_deferred(waiting.pop());
    }
    mark_dirty(peer);
  }
}

void Worker::serve_deferred(const Deferred& deferred) noexcept {
  const auto message = wire::decode(receives_->contents(deferred.slot, deferred.bytes));
  BX_CHECK(message.has_value(), "a deferred message was decoded before");
  Peer& peer = *peers_[deferred.peer];
  if (deferred.form == Deferred::Form::offer) {
    take_offer(peer, *message);
  } else {
    take_request(peer, wire::item_of(message->header), deferred.slot);
  }
  let_go(deferred.slot);
}

// One message of it; what is behind it stays where it is.
void Worker::serve_deferred_batch(wire::MessageKind kind, Ring<Deferred>& waiting) noexcept {
  // Requests wait for their turn whatever they bring; of answers only those whose payload is offered.
  const auto waits = [kind](const wire::Item& item) {
    return wire::kind_of(item.kind) == kind &&
           (kind == wire::MessageKind::request || wire::is_offering(item.kind));
  };
  const Deferred deferred = waiting.front();
  const wire::Batch batch(receives_->contents(deferred.slot, deferred.bytes));
  wire::Item item;
  BX_CHECK(batch.read(deferred.at, item) && waits(item), "a deferred message was read before");
  // What is behind it was read before as well, unless the peer failed at it.
  std::uint32_t at = deferred.at;
  wire::Item next = item;
  do {
    at = batch.after(next);
  } while (at > 0 && batch.read(at, next) && !waits(next));
  const bool last = at == 0;
  if (last) {
    waiting.pop();
  } else {
    waiting.front().at = at;
    waiting.front().form = wire::is_offering(next.kind) ? Deferred::Form::batch_offer : Deferred::Form::batch;
  }
  Peer& peer = *peers_[deferred.peer];
  if (wire::is_offering(item.kind)) {
    take_offer(peer, wire::offer_message(batch, item));
  } else {
    take_request(peer, item, deferred.slot);
  }
  if (last) let_go(deferred.slot);
}

void Worker::let_go(std::uint32_t slot) noexcept {
  if (receives_->let_go(slot)) put_away(slot);
}

void Worker::drop_deferred(const Peer& peer) noexcept {
  for (Ring<Deferred>* deferred : {&deferred_requests_, &deferred_responses_}) {
    for (std::size_t left = deferred->size(); left > 0; --left) {
      const Deferred message = deferred->pop();
      if (message.peer == peer.index && message.incarnation == peer.incarnation) {
        let_go(message.slot);
      } else {
        deferred->push(message);
      }
    }
  }
}

}  // namespace bx::engine
