// SPDX-License-Identifier: BSD-3-Clause
// The division of a shared receive pool among peers: how many of the posted receives may be promised to each.
// What is promised becomes credit (credits.h); here it is only counted.
//
//   floor       of every peer, open or yet to come: never lent, there at once whatever the others do
//   guaranteed  of each open peer: its share. Nobody else keeps it for good.
//   most        a peer may be promised and hold so many, by loan of what others do not use
//
// A receive is free, promised to a peer (a credit that it may use), or held (a message of it lies there).
// Used = promised + held. A promise cannot be taken back, so a loan ends by attrition: the borrower's message
// uses it up, and while somebody wants what was lent it is not renewed. Who wants: a peer that asked for its
// share and did not get all of it (promise() puts it on a list, the longest waiting first; the owner asks
// again for it when receives come back). While there is a line, nobody but its first takes beyond its floor
// what those in it lack. A borrower that falls silent keeps its loan as long as it is silent: the lender then
// has its floor and what the others return, which is why the floor is not lent.
//
// Everything is O(1). Invariants (check_invariants):
//   shares_promised   sum of promised <= receives posted and not held, so no peer's credit lacks its receive
//   floor_kept        free >= what all peers lack of their floors
//   guarantees_fit    sum of guaranteed <= receives, so with no loans out every share is there
#pragma once

#include <algorithm>
#include <cstdint>

#include "libbx/base/check.h"
#include "libbx/base/intrusive_list.h"

namespace bx::core {

// A peer's part. Members of the pool's owner; it must be closed before it is destroyed.
class ReceiveShare : public ListHook<ReceiveShare> {
 public:
  enum class State : std::uint8_t { closed, open, closing };

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::uint32_t promised() const noexcept { return promised_; }
  [[nodiscard]] std::uint32_t held() const noexcept { return held_; }
  [[nodiscard]] std::uint32_t used() const noexcept { return promised_ + held_; }
  [[nodiscard]] std::uint32_t guaranteed() const noexcept { return guaranteed_; }
  [[nodiscard]] std::uint32_t borrowed() const noexcept { return used() - std::min(used(), guaranteed_); }
  // Its share was asked for and is not there yet.
  [[nodiscard]] bool wanting() const noexcept { return linked(); }

 private:
  friend class ReceiveShares;
  State state_ = State::closed;
  std::uint32_t guaranteed_ = 0;
  std::uint32_t most_ = 0;
  std::uint32_t promised_ = 0;
  std::uint32_t held_ = 0;
};

class ReceiveShares {
 public:
  struct Limits {
    std::uint32_t receives;  // posted in all, when none is held
    std::uint32_t peers_max;
    std::uint32_t floor;  // of each peer; peers_max * floor <= receives
  };

  explicit ReceiveShares(const Limits& limits) noexcept
      : limits_(limits),
        free_(limits.receives),
        floors_lacking_(limits.peers_max * limits.floor),
        kept_(floors_lacking_) {
    BX_CHECK(std::uint64_t{limits.peers_max} * limits.floor <= limits.receives,
             "floor_kept: there are fewer receives than floors");
  }

  // Admits a peer. Returns false if there are too many, or the guarantees would exceed the receives.
  [[nodiscard]] bool open(ReceiveShare& share, std::uint32_t guaranteed, std::uint32_t most) noexcept {
    BX_CHECK(share.state_ == ReceiveShare::State::closed, "a share is open already");
    BX_CHECK(limits_.floor <= guaranteed && guaranteed <= most, "a share is at least the floor");
    if (peers_ == limits_.peers_max) return false;
    const std::uint32_t to_come = limits_.peers_max - peers_ - 1;
    if (std::uint64_t{guarantees_} + guaranteed + std::uint64_t{to_come} * limits_.floor > limits_.receives)
      return false;
    ++peers_;
    guarantees_ += guaranteed;
    share.guaranteed_ = guaranteed;
    share.most_ = most;
    share.state_ = ReceiveShare::State::open;
    return true;
  }
  // What was promised is void (the connection is gone); what is held comes back by on_returned(), and the
  // place is free for another peer when all is.
  void close(ReceiveShare& share) noexcept {
    BX_CHECK(share.state_ == ReceiveShare::State::open, "a share that is not open was closed");
    satisfied(share);
    change(share, 0, share.held_);
    share.state_ = ReceiveShare::State::closing;
    finish(share);
  }
  // Promises up to `wanted` more receives to the peer; returns how many. If the peer's own share is not all
  // there it is wanting from now on.
  std::uint32_t promise(ReceiveShare& share, std::uint32_t wanted) noexcept {
    BX_CHECK(share.state_ == ReceiveShare::State::open, "receives were promised to nobody");
    const std::uint32_t own = std::min({wanted, lacking(share, share.guaranteed_),
                                        std::max(lacking(share, limits_.floor), own_room(share))});
    change(share, share.promised_ + own, share.held_);
    if (share.used() < share.guaranteed_) {
      if (own < wanted) want(share);
      return own;
    }
    satisfied(share);
    const std::uint32_t room = share.most_ - std::min(share.most_, share.used());
    const std::uint32_t lent = std::min({wanted - own, room, free_ - std::min(free_, kept_)});
    change(share, share.promised_ + lent, share.held_);
    return own + lent;
  }
  // The peer has nothing more to send: what its share lacks may be lent again.
  void satisfied(ReceiveShare& share) noexcept {
    if (!share.wanting()) return;
    kept_ -= lacking(share, share.guaranteed_) - lacking(share, limits_.floor);
    share.unlink();
  }
  // The peer whose promise() to try when receives came back, or null.
  [[nodiscard]] ReceiveShare* first_wanting() noexcept { return wanting_.front(); }

  // A message of the peer used up a promise and lies in the receive.
  void on_received(ReceiveShare& share) noexcept {
    BX_CHECK(share.promised_ > 0, "shares_promised: a message arrived in a receive promised to another");
    change(share, share.promised_ - 1, share.held_ + 1);
  }
  // A receive that held a message of the peer was posted again, for that peer: it is not the pool's in
  // between. For who must not be left without any (credits.h: the last credit comes back at once); it keeps
  // one loan at most from ending.
  void on_renewed(ReceiveShare& share) noexcept {
    BX_CHECK(share.held_ > 0, "a receive was renewed that the peer does not hold");
    BX_CHECK(share.state_ == ReceiveShare::State::open, "a receive was renewed for nobody");
    change(share, share.promised_ + 1, share.held_ - 1);
  }
  // A receive that held a message of the peer was posted again.
  void on_returned(ReceiveShare& share) noexcept {
    BX_CHECK(share.held_ > 0, "a receive was returned that the peer does not hold");
    change(share, share.promised_, share.held_ - 1);
    finish(share);
  }

  [[nodiscard]] std::uint32_t free() const noexcept { return free_; }
  [[nodiscard]] std::uint32_t promised() const noexcept { return promised_; }

  void check_invariants() const {
    BX_CHECK(std::uint64_t{promised_} + held_ + free_ == limits_.receives, "shares_promised");
    BX_CHECK(free_ >= floors_lacking_, "floor_kept");
    BX_CHECK(kept_ >= floors_lacking_, "floor_kept");
    BX_CHECK(guarantees_ <= limits_.receives, "guarantees_fit");
  }

 private:
  [[nodiscard]] static std::uint32_t lacking(const ReceiveShare& share, std::uint32_t entitled) noexcept {
    return entitled - std::min(entitled, share.used());
  }
  [[nodiscard]] std::uint32_t kept_for(const ReceiveShare& share) const noexcept {
    return share.wanting() ? share.guaranteed_ : limits_.floor;
  }
  // What may become the peer's own: all but the others' floors for the first in line, and for the rest also
  // not what those that want lack. Without that two borrowers could take turns at what the first waits for,
  // one by a loan and the other as its share (found by models/lending.pml).
  [[nodiscard]] std::uint32_t own_room(const ReceiveShare& share) noexcept {
    const bool first = wanting_.empty() || wanting_.front() == &share;
    const std::uint32_t others =
        first ? floors_lacking_ - lacking(share, limits_.floor) : kept_ - lacking(share, kept_for(share));
    return free_ - std::min(free_, others);
  }
  void want(ReceiveShare& share) noexcept {
    if (share.wanting()) return;
    kept_ += lacking(share, share.guaranteed_) - lacking(share, limits_.floor);
    wanting_.push_back(share);
  }
  void change(ReceiveShare& share, std::uint32_t promised, std::uint32_t held) noexcept {
    floors_lacking_ -= lacking(share, limits_.floor);
    kept_ -= lacking(share, kept_for(share));
    free_ += share.used();
    promised_ += promised - share.promised_;
    held_ += held - share.held_;
    share.promised_ = promised;
    share.held_ = held;
    free_ -= share.used();
    kept_ += lacking(share, kept_for(share));
    floors_lacking_ += lacking(share, limits_.floor);
  }
  void finish(ReceiveShare& share) noexcept {
    if (share.state_ != ReceiveShare::State::closing || share.held_ > 0) return;
    share.state_ = ReceiveShare::State::closed;
    guarantees_ -= share.guaranteed_;
    --peers_;
  }

  Limits limits_;
  std::uint32_t peers_ = 0;  // open or closing
  std::uint32_t guarantees_ = 0;
  std::uint32_t free_;
  std::uint32_t promised_ = 0;
  std::uint32_t held_ = 0;
  std::uint32_t floors_lacking_;  // sum over all peers, open or to come, of floor - used
  std::uint32_t kept_;            // the same with `guaranteed` for those that want: what is not lent
  IntrusiveList<ReceiveShare, ReceiveShare> wanting_;
};

}  // namespace bx::core
