// SPDX-License-Identifier: BSD-3-Clause
// Credits of several kinds at once: receives, and bytes of bounce memory behind them. credits.h is the same
// for receives alone and costs a message a few instructions; this is for a peer whose messages also need
// memory that the receiver has to promise. A message reserves all that it needs or nothing.
//
//   sender:   GrantLedger   granted >= consumed, of each kind
//   receiver: GrantIssuer   promised >= used, of each kind
//
// A Grant carries the epoch of the connection, a sequence number, and totals (modulo 2^32) since the epoch
// began. Another epoch's grant is void. Of one epoch's grants only the latest counts: a repeated or overtaken
// one changes nothing, and a gap in the numbers is safe, because the totals say it all. What no honest peer
// could send is refused as a whole: nothing of it is taken.
//
// The two ends may have windows of different sizes: a window is always that of the receiver's hello.
//
// Invariants (check_invariants): grant_within_window, credits_conserved, rollback_bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "libbx/base/check.h"

namespace bx::core {

enum class Resource : std::uint8_t { receives, bounce_bytes };
inline constexpr std::size_t kResources = 2;
// A window may be this large, so that "newer" and "older" can be told from totals that wrap.
inline constexpr std::uint32_t kResourceWindowMax = 0x7fffffff;

struct Amounts {
  std::array<std::uint32_t, kResources> of{};

  [[nodiscard]] std::uint32_t operator[](Resource kind) const noexcept {
    return of[static_cast<std::size_t>(kind)];
  }
  friend bool operator==(const Amounts&, const Amounts&) = default;
};

struct Grant {
  std::uint16_t epoch = 0;
  std::uint32_t sequence = 0;  // of the epoch's grants, from 1
  Amounts total;
};

enum class GrantOutcome : std::uint8_t {
  applied,
  applied_after_gap,  // grants before it are missing; nothing is lost by that
  old,                // repeated or overtaken
  other_epoch,
  refused,  // more than the window, or less than was granted before: the peer broke the protocol
};

class GrantLedger {
 public:
  GrantLedger(std::uint16_t epoch, const Amounts& initial, const Amounts& window) noexcept {
    restart(epoch, initial, window);
  }
  // A new connection: whatever the old one granted or used is void.
  void restart(std::uint16_t epoch, const Amounts& initial, const Amounts& window) noexcept {
    epoch_ = epoch;
    sequence_ = 0;
    window_ = window;
    granted_ = initial;
    consumed_ = unsent_ = {};
    for (std::size_t i = 0; i < kResources; ++i) {
      BX_CHECK(initial.of[i] <= window.of[i] && window.of[i] <= kResourceWindowMax,
               "grant_within_window: the window is too large, or less than what it begins with");
    }
  }

  [[nodiscard]] std::uint32_t available(Resource kind) const noexcept {
    return granted_[kind] - consumed_[kind];
  }
  // Takes all of `need`, or nothing and returns false.
  [[nodiscard]] bool reserve(const Amounts& need) noexcept {
    for (std::size_t i = 0; i < kResources; ++i) {
      if (need.of[i] > granted_.of[i] - consumed_.of[i]) return false;
    }
    for (std::size_t i = 0; i < kResources; ++i) {
      consumed_.of[i] += need.of[i];
      unsent_.of[i] += need.of[i];
    }
    return true;
  }
  // What was reserved has left.
  void on_sent(const Amounts& reserved) noexcept { settle(reserved); }
  // What was reserved will not leave after all.
  void roll_back(const Amounts& reserved) noexcept {
    settle(reserved);
    for (std::size_t i = 0; i < kResources; ++i) consumed_.of[i] -= reserved.of[i];
  }
  GrantOutcome on_grant(const Grant& grant) noexcept {
    if (grant.epoch != epoch_) return GrantOutcome::other_epoch;
    const auto ahead = static_cast<std::int32_t>(grant.sequence - sequence_);
    if (ahead <= 0) return GrantOutcome::old;
    for (std::size_t i = 0; i < kResources; ++i) {
      const std::uint32_t advance = grant.total.of[i] - granted_.of[i];
      if (advance > window_.of[i] - (granted_.of[i] - consumed_.of[i])) return GrantOutcome::refused;
    }
    granted_ = grant.total;
    sequence_ = grant.sequence;
    return ahead == 1 ? GrantOutcome::applied : GrantOutcome::applied_after_gap;
  }
  [[nodiscard]] std::uint16_t epoch() const noexcept { return epoch_; }

  void check_invariants() const {
    for (std::size_t i = 0; i < kResources; ++i) {
      BX_CHECK(granted_.of[i] - consumed_.of[i] <= window_.of[i], "grant_within_window");
      BX_CHECK(unsent_.of[i] <= window_.of[i], "rollback_bounded");
    }
  }

 private:
  void settle(const Amounts& reserved) noexcept {
    for (std::size_t i = 0; i < kResources; ++i) {
      BX_CHECK(reserved.of[i] <= unsent_.of[i], "rollback_bounded: more was settled than is reserved");
      unsent_.of[i] -= reserved.of[i];
    }
  }

  std::uint16_t epoch_ = 0;
  std::uint32_t sequence_ = 0;  // of the latest grant taken
  Amounts window_;
  Amounts granted_;   // cumulative, modulo 2^32
  Amounts consumed_;  // cumulative
  Amounts unsent_;    // of what is consumed: reserved, and neither sent nor given back
};

class GrantIssuer {
 public:
  GrantIssuer(std::uint16_t epoch, const Amounts& initial, const Amounts& window) noexcept {
    restart(epoch, initial, window);
  }
  void restart(std::uint16_t epoch, const Amounts& initial, const Amounts& window) noexcept {
    epoch_ = epoch;
    sequence_ = 0;
    window_ = window;
    promised_ = told_ = initial;
    used_ = {};
    for (std::size_t i = 0; i < kResources; ++i) {
      BX_CHECK(initial.of[i] <= window.of[i] && window.of[i] <= kResourceWindowMax,
               "grant_within_window: the window is too large, or less than what it begins with");
    }
  }

  // A message arrived that used so much. Returns false, and counts nothing, if the peer had not been told of
  // so much.
  [[nodiscard]] bool on_used(const Amounts& amounts) noexcept {
    for (std::size_t i = 0; i < kResources; ++i) {
      if (amounts.of[i] > told_.of[i] - used_.of[i]) return false;
    }
    for (std::size_t i = 0; i < kResources; ++i) used_.of[i] += amounts.of[i];
    return true;
  }
  // So much is there for the peer, again or for the first time.
  void promise(const Amounts& amounts) noexcept {
    for (std::size_t i = 0; i < kResources; ++i) {
      BX_CHECK(amounts.of[i] <= window_.of[i] - (promised_.of[i] - used_.of[i]),
               "credits_conserved: more was promised than the window");
      promised_.of[i] += amounts.of[i];
    }
  }
  // The grant to send now; calling this counts as telling.
  Grant next() noexcept {
    told_ = promised_;
    return {epoch_, ++sequence_, promised_};
  }
  // Of some kind, half the window is promised and not told, or something is and what the peer has of that
  // kind has come down to a quarter of its window.
  [[nodiscard]] bool due() const noexcept {
    for (std::size_t i = 0; i < kResources; ++i) {
      const std::uint64_t owed = promised_.of[i] - told_.of[i];
      const std::uint64_t peer_has = told_.of[i] - used_.of[i];
      if (owed > 0 && (2 * owed >= window_.of[i] || 4 * peer_has <= window_.of[i])) return true;
    }
    return false;
  }
  // Promised and not used.
  [[nodiscard]] std::uint32_t promised(Resource kind) const noexcept { return promised_[kind] - used_[kind]; }

  void check_invariants() const {
    for (std::size_t i = 0; i < kResources; ++i) {
      BX_CHECK(promised_.of[i] - used_.of[i] <= window_.of[i], "credits_conserved");
      BX_CHECK(told_.of[i] - used_.of[i] <= promised_.of[i] - used_.of[i], "grant_within_window");
    }
  }

 private:
  std::uint16_t epoch_ = 0;
  std::uint32_t sequence_ = 0;
  Amounts window_;
  Amounts promised_;  // cumulative, modulo 2^32
  Amounts told_;      // promised_ when the last grant was made
  Amounts used_;      // cumulative
};

}  // namespace bx::core
