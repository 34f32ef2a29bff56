// SPDX-License-Identifier: BSD-3-Clause
// Receives that are owed: a peer whose slots are all kept gets the next one that comes back.
#include <algorithm>

#include "libbx/engine/receive_path.h"

namespace bx::engine {

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
  if (starved_peers_.empty() && leavers_.empty()) return receives_->set_listener(nullptr);
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
  while (!leavers_.empty() && feed_leaver()) {
  }
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
