// SPDX-License-Identifier: BSD-3-Clause
// How a receive that was consumed is made good, and how its payload is taken. Members of Worker, here so that
// they are inline in receiving.cc, receives.cc and deferred.cc.
#pragma once

#include <algorithm>
#include <utility>

#include "libbx/engine/call_path.h"

namespace bx::engine {

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
  posted_again(peer);
}

// A message arrived that cost a credit. False if the peer had none: it broke the protocol.
inline bool Worker::consumed_credit(Peer& peer) noexcept {
  if (!peer.issuer.on_received()) [[unlikely]]
    return false;
  if (shares_ != nullptr) [[unlikely]]
    shares_->on_received(share_of(peer));
  return true;
}

// The receive that a message of the peer consumed is posted again: for that peer, unless all share.
inline void Worker::posted_again(Peer& peer) noexcept {
  if (shares_ != nullptr) [[unlikely]]
    return on_share_returned(peer);
  peer.issuer.on_reposted();
}

// A receive of the peer was consumed and its slot is kept.
inline void Worker::repost(Peer& peer) noexcept {
  if (may_replace(receives_owed_)) [[likely]]
    give_receive(peer);
  else
    owe_receive(peer);
}

// The application may keep what it is given. While slots are plenty it is given the slot itself.
inline Worker::Taken Worker::take_payload(Peer& peer, const wire::Item& item, std::uint32_t slot) noexcept {
  const std::size_t size = item.bytes;
  if (size == 0) return {Buffer{}, SlotUse::done};
  peer.stats.bytes_received += size;
  if (receives_->scarce()) [[unlikely]] {
    pressure_watched_ = true;
    if (auto copy = arena_->allocate(size, memory::Side::receive)) {
      const auto body = receives_->contents(slot, item.offset + item.bytes).subspan(item.offset);
      std::copy(body.begin(), body.end(), copy->data());
      ++stats_.copied_out;
      work_.bytes_copied += size;
      return {std::move(*copy), SlotUse::done};
    }
  }
  return {receives_->lend(slot, item.offset, size), SlotUse::kept};
}

inline bool Worker::may_request(Peer& peer) noexcept {
  if (peer.service != nullptr) return true;
  fail_peer(peer, protocol_error("a request to a worker that was not asked to serve"));
  return false;
}

inline Worker::SlotUse Worker::take_request(Peer& peer, const wire::Item& item, std::uint32_t slot) noexcept {
  Taken taken = take_payload(peer, item, slot);
  ++serving_;
  hand_over(peer, item.session, item.call, std::move(taken.payload));
  return taken.slot;
}

}  // namespace bx::engine
