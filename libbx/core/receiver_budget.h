// SPDX-License-Identifier: BSD-3-Clause
// The bytes that may be on their way to one receiver, divided among the peers that have something to send.
// It bounds an incast at its end: N peers share one budget however large N is.
//
//   claim     a peer has something to send (an offer of it waits): it counts with its weight
//   share     budget * weight / weights of all that claim, at least share_min; it changes as others come and
//   go take      so many bytes are asked of the peer now: pulled, or granted to be written release   the peer
//   has nothing more: its share is the others' at once; what is on its way still counts
//
// A peer takes while what it has on its way stays within its share, or is nothing, and the sum stays within
// the budget. When shares shrink, whoever is above its own gets nothing until it is below. With so many
// claims that share_min binds, the shares are more than the budget; then whoever finds no room waits in line,
// and nobody else takes before the first in it: the room that comes back reaches everybody in turn.
//
// O(1) a step. An amount larger than the budget may go when nothing else is on its way.
//
// Invariants (check_invariants): budget_kept: on its way <= budget, or it is one amount larger than that, or
// what was on its way when the budget was lowered; claims_counted: weights is the sum of those that claim.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libbx/base/check.h"
#include "libbx/base/intrusive_list.h"
#include "libbx/core/send_window.h"

namespace bx::core {

// A peer's part, a member of the peer. It must be released before it is destroyed.
class BudgetShare : public ListHook<BudgetShare> {
 public:
  static constexpr std::uint32_t kWeightMax = 1024;

  explicit BudgetShare(std::uint32_t weight = 1) noexcept : weight_(weight) {
    BX_CHECK(weight > 0 && weight <= kWeightMax, "the weight of a peer is out of range");
  }
  // Between claims.
  void set_weight(std::uint32_t weight) noexcept {
    BX_CHECK(!claims_ && weight > 0 && weight <= kWeightMax, "the weight of a peer is out of range");
    weight_ = weight;
  }
  [[nodiscard]] bool claims() const noexcept { return claims_; }
  // It found no room in the budget.
  [[nodiscard]] bool waiting() const noexcept { return linked(); }
  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_; }

 private:
  friend class ReceiverBudget;
  std::uint32_t weight_;
  bool claims_ = false;
  std::uint64_t outstanding_ = 0;  // taken and not arrived
};

enum class BudgetVerdict : std::uint8_t {
  taken,
  share_used,   // try again when something of this peer has arrived
  budget_used,  // the peer is in line: next_waiting() gives it when there may be room
};

class ReceiverBudget {
 public:
  static constexpr std::uint64_t kBudgetMax = std::uint64_t{1} << 40U;

  struct Limits {
    std::uint64_t budget;
    std::uint64_t share_min;  // a share is never less: a chunk, or nobody would move
  };
  explicit ReceiverBudget(const Limits& limits) noexcept : share_min_(limits.share_min), all_(limits.budget) {
    BX_CHECK(limits.share_min > 0 && limits.share_min <= limits.budget && limits.budget <= kBudgetMax,
             "budget_kept: the least share is nothing, or more than the budget");
  }

  // Nothing happens if it claims already.
  void claim(BudgetShare& peer) noexcept {
    if (peer.claims_) return;
    peer.claims_ = true;
    weights_ += peer.weight_;
    ++claims_;
  }
  void release(BudgetShare& peer) noexcept {
    if (!peer.claims_) return;
    peer.claims_ = false;
    weights_ -= peer.weight_;
    --claims_;
    peer.unlink();
  }
  [[nodiscard]] std::uint64_t share(const BudgetShare& peer) const noexcept {
    return peer.claims_ ? std::max(share_min_, all_.limit() * peer.weight_ / weights_) : 0;
  }
  // Whether the peer may be asked for so many bytes now; then they are on their way.
  BudgetVerdict take(BudgetShare& peer, std::uint64_t bytes) noexcept {
    BX_CHECK(peer.claims_, "claims_counted: bytes were taken for a peer that claims none");
    if (peer.outstanding_ > 0 && peer.outstanding_ + bytes > share(peer)) {
      peer.unlink();  // the share may have shrunk while it waited
      return BudgetVerdict::share_used;
    }
    const BudgetShare* first = line_.front();
    if ((first != nullptr && first != &peer) || !all_.admits(bytes)) {
      if (!peer.linked()) line_.push_back(peer);
      return BudgetVerdict::budget_used;
    }
    peer.unlink();
    all_.on_posted(bytes);
    peer.outstanding_ += bytes;
    largest_ = std::max(largest_, bytes);
    return BudgetVerdict::taken;
  }
  // The peer cannot send now for a reason of its own: nobody is to wait for it in line.
  void step_aside(BudgetShare& peer) noexcept { peer.unlink(); }
  // Where peers are not told apart: whoever comes takes while there is room.
  [[nodiscard]] bool admits(std::uint64_t bytes) const noexcept { return all_.admits(bytes); }
  void take_undivided(BudgetShare& peer, std::uint64_t bytes) noexcept {
    all_.on_posted(bytes);
    peer.outstanding_ += bytes;
    largest_ = std::max(largest_, bytes);
  }
  // What is on its way may stay above a lower budget; then nothing joins it until it is below.
  void set_budget(std::uint64_t budget) noexcept {
    BX_CHECK(share_min_ <= budget && budget <= kBudgetMax, "budget_kept: the budget is out of range");
    largest_ = std::max(largest_, all_.in_flight());
    all_.set_limit(budget);
  }
  // So many bytes of the peer have arrived, or will not come.
  void on_arrived(BudgetShare& peer, std::uint64_t bytes) noexcept {
    BX_CHECK(bytes <= peer.outstanding_, "budget_kept: more arrived than was asked for");
    peer.outstanding_ -= bytes;
    all_.on_retired(bytes);
  }
  // Whose turn it is when bytes have arrived, or null.
  [[nodiscard]] BudgetShare* next_waiting() noexcept { return line_.front(); }

  [[nodiscard]] std::uint64_t outstanding() const noexcept { return all_.in_flight(); }
  [[nodiscard]] std::uint64_t budget() const noexcept { return all_.limit(); }
  [[nodiscard]] std::uint32_t claims() const noexcept { return claims_; }

  void check_invariants() const {
    BX_CHECK(all_.in_flight() <= std::max(all_.limit(), largest_), "budget_kept");
    BX_CHECK((weights_ == 0) == (claims_ == 0) && weights_ >= claims_, "claims_counted");
  }

 private:
  std::uint64_t share_min_;
  SendWindow all_;
  std::uint64_t weights_ = 0;
  std::uint32_t claims_ = 0;
  std::uint64_t largest_ = 0;  // amount ever taken, or on its way when the budget was lowered
  IntrusiveList<BudgetShare, BudgetShare> line_;
};

}  // namespace bx::core
