// SPDX-License-Identifier: BSD-3-Clause
// Receive credits between two workers. A credit is the permission to consume one receive that the peer has
// posted for us; nobody sends without one, so a receiver-not-ready NAK cannot happen.
//
//   sender:   CreditLedger   granted  >=  consumed          available = granted - consumed
//   receiver: CreditIssuer   posted   >=  received          posted - received receives are out there for the
//   peer
//
// Grants are cumulative counts modulo 2^32, so a grant that is repeated, delayed or lost neither mints nor
// loses credit: the next one says it all. Every message carries the latest.
//
// A grant with no message to ride on travels alone, as a "pure grant", into one of kControlSlots receives
// that the peer posts beyond the credits. It costs no credit; instead at most kControlSlots of them are
// unacknowledged at a time, and everything that costs a credit acknowledges those received (control_ack). Why
// this cannot deadlock: suppose both sides have data and no credits. Each side's last grants are either on
// their way, or were received, and then the other side had credits to send with, and its next message
// acknowledges them. A pure grant never causes another one, so two starved sides do not chatter.
//
// That rests on order: who uses a credit that was granted after a pure grant has received the pure grant, and
// so acknowledges it. Over several lanes a message could overtake the pure grants sent before it; the peer
// would spend the credits that it tells of and acknowledge nothing, and we could send no pure grant any more,
// for ever if we have nothing else to send. So there (set_unordered) messages tell of no more credits while
// pure grants are unacknowledged, and only pure grants do.
//
// The last credit (kCreditsReserved) is kept for messages that their receiver takes at once whatever its
// state: eager answers, ends of transfers, grants of WRITEs and their announcements. A request, or an answer
// that has to be fetched, may have to wait in its receive for a place to be served in, and that place may
// depend on one of those messages; if it could take the last credit, two sides would wait for each other.
//
// A sender that has more to send may say so on a message: a soft request when half its window is used up, a
// hard one at a quarter. The receiver answers a hard one at once, if it owes credits, and else as soon as it
// does; for a soft one a quarter of the window is enough. Without requests the receiver goes by what it can
// see itself, which is not whether the peer has anything more to send.
//
// Invariants (check_invariants; models/ and docs/credits.md use the same names): credits_conserved,
// grant_within_window, control_bounded.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libbx/base/check.h"

namespace bx::core {

inline constexpr std::uint16_t kControlSlots = 2;
inline constexpr std::uint32_t kCreditsReserved = 1;

enum class CreditRequest : std::uint8_t { none, soft, hard };

// The sender's side: what the peer has granted us.
class CreditLedger {
 public:
  CreditLedger() = default;
  // `counted`: where both ends begin to count; 0 but in tests that want to see the counters wrap.
  explicit CreditLedger(std::uint32_t initial, std::uint32_t counted = 0) noexcept
      : granted_(counted + initial), consumed_(counted) {}

  [[nodiscard]] std::uint32_t available() const noexcept { return granted_ - consumed_; }
  void consume() noexcept {
    BX_CHECK(available() > 0, "a message was sent without a credit");
    ++consumed_;
  }
  // Takes a cumulative grant. Returns false if it is one that no honest peer could send: more credit
  // outstanding than `window`, the number of receives the peer said it keeps for us. Older grants than the
  // latest change nothing.
  [[nodiscard]] bool on_grant(std::uint32_t cumulative, std::uint32_t window) noexcept {
    const auto advance = static_cast<std::int32_t>(cumulative - granted_);
    if (advance <= 0) return true;
    if (cumulative - consumed_ > window) return false;
    granted_ = cumulative;
    return true;
  }
  // What the next message is to ask for, if more is waiting behind it; calling this counts as asking. Each is
  // asked for once after a grant.
  CreditRequest ask(std::uint32_t window) noexcept {
    const CreditRequest request = wanted(window);
    if (asked_at_ == granted_ && request <= asked_) return CreditRequest::none;
    asked_at_ = granted_;
    return asked_ = request;
  }
  void check_invariants(std::uint32_t window) const {
    BX_CHECK(available() <= window, "grant_within_window");
  }

 private:
  [[nodiscard]] CreditRequest wanted(std::uint32_t window) const noexcept {
    if (4 * available() <= window || available() <= kCreditsReserved) return CreditRequest::hard;
    return 2 * available() <= window ? CreditRequest::soft : CreditRequest::none;
  }

  std::uint32_t granted_ = 0;
  std::uint32_t consumed_ = 0;
  std::uint32_t asked_at_ = 0;  // granted_ when asked_ was asked; with another grant it has been answered
  CreditRequest asked_ = CreditRequest::none;
};

// The receiver's side: what we have posted for the peer, what arrived, and when a pure grant is due.
class CreditIssuer {
 public:
  CreditIssuer() = default;
  explicit CreditIssuer(std::uint32_t window, std::uint32_t counted = 0) noexcept
      : CreditIssuer(window, counted, window) {}
  // `initial`: how many of the window the peer has from the start; the rest may be posted for it later
  // (receive_shares.h).
  CreditIssuer(std::uint32_t window, std::uint32_t counted, std::uint32_t initial) noexcept
      : window_(window),
        posted_(counted + initial),
        received_(counted),
        told_(counted + initial),
        told_in_order_(counted + initial),
        usable_(counted + initial),
        control_sent_(static_cast<std::uint16_t>(counted)),
        control_confirmed_(control_sent_),
        control_received_(control_sent_),
        control_acked_(control_sent_),
        on_demand_(initial < window) {}

  // Messages to the peer go by several lanes, and so overtake each other; see the head of this file.
  void set_unordered() noexcept { unordered_ = true; }

  // A message arrived that cost a credit. Returns false if the peer had been told of none: it broke the
  // protocol.
  [[nodiscard]] bool on_received() noexcept {
    if (received_ == usable_) return false;
    ++received_;
    return true;
  }
  // A receive was posted again in its place, or another within the window.
  void on_reposted() noexcept {
    BX_CHECK(posted_ - received_ < window_, "more receives were posted for a peer than its window");
    ++posted_;
  }
  // A pure grant arrived. Returns false if the peer had more of them unacknowledged than it may.
  [[nodiscard]] bool on_pure_grant() noexcept {
    ++control_received_;
    return static_cast<std::uint16_t>(control_received_ - control_acked_) <= kControlSlots;
  }
  // The peer acknowledges pure grants of ours. Returns false if it acknowledges what was never sent.
  [[nodiscard]] bool on_control_ack(std::uint16_t cumulative) noexcept {
    if (cumulative == control_confirmed_) return true;
    const auto outstanding = static_cast<std::uint16_t>(control_sent_ - control_confirmed_);
    const auto advance = static_cast<std::uint16_t>(cumulative - control_confirmed_);
    if (advance > outstanding) {
      // Either older than the latest (lanes may reorder), or from nowhere.
      return static_cast<std::uint16_t>(control_confirmed_ - cumulative) < kReorderMax;
    }
    control_confirmed_ = cumulative;
    return true;
  }

  // The values for the header of the next message to the peer; calling this counts as telling.
  struct Notice {
    std::uint32_t credit_grant;
    std::uint16_t control_ack;
  };
  Notice notice() noexcept {
    const Notice now = notice_ahead();
    on_left();
    return now;
  }
  // The same for a message that leaves later. Until on_left() the peer cannot have heard, so a message that
  // arrives before is not paid for by it.
  Notice notice_ahead() noexcept {
    if (unordered_ && control_sent_ != control_confirmed_) [[unlikely]]
      return {told_in_order_, control_ack()};
    told_ = told_in_order_ = posted_;
    return {posted_, control_ack()};
  }
  void on_left() noexcept { usable_ = told_; }
  // The same for what has no room for the grant.
  std::uint16_t control_ack() noexcept {
    control_acked_ = control_received_;
    return control_received_;
  }
  // The peer takes no more than it has from the start: it does not know of a larger window.
  void keep_to_initial() noexcept {
    window_ = posted_ - received_;
    on_demand_ = false;
  }
  // A message of the peer asks for credits. It stays asked for until the peer is told of some.
  void on_request(CreditRequest request) noexcept {
    asked_ = asked_at_ == told_ ? std::max(asked_, request) : request;
    asked_at_ = told_;
  }
  // A pure grant is worth sending: credits are owed, and either half the window is, or the peer has run low,
  // or it asked. Of a peer that has only a part of its window, that part is what counts.
  [[nodiscard]] bool pure_grant_due() const noexcept {
    const std::uint32_t owed = posted_ - told_;
    const std::uint32_t peer_has = told_ - received_;
    const std::uint32_t window = on_demand_ ? posted_ - received_ : window_;
    return owed > 0 &&
           (2 * owed >= window || 4 * peer_has <= window || peer_has <= kCreditsReserved ||
            asked_for(owed)) &&
           static_cast<std::uint16_t>(control_sent_ - control_confirmed_) < kControlSlots;
  }
  Notice pure_grant() noexcept {
    ++control_sent_;
    told_ = posted_;
    on_left();
    return {posted_, control_ack()};
  }

  [[nodiscard]] std::uint32_t window() const noexcept { return window_; }
  // Receives posted that the peer has not consumed.
  [[nodiscard]] std::uint32_t posted() const noexcept { return posted_ - received_; }
  // Receives consumed by the peer and not yet posted again.
  [[nodiscard]] std::uint32_t unposted() const noexcept { return window_ - (posted_ - received_); }
  void check_invariants() const {
    BX_CHECK(posted_ - received_ <= window_, "credits_conserved");
    BX_CHECK(posted_ - told_ <= window_ && told_ - usable_ <= window_ && usable_ - received_ <= window_,
             "grant_within_window");
    BX_CHECK(static_cast<std::uint16_t>(control_sent_ - control_confirmed_) <= kControlSlots,
             "control_bounded");
  }

 private:
  static constexpr std::uint16_t kReorderMax = 1024;
  [[nodiscard]] bool asked_for(std::uint32_t owed) const noexcept {
    if (asked_at_ != told_) return false;
    return asked_ == CreditRequest::hard || (asked_ == CreditRequest::soft && 4 * owed >= window_);
  }

  std::uint32_t window_ = 0;
  std::uint32_t posted_ = 0;         // cumulative, modulo 2^32
  std::uint32_t received_ = 0;       // cumulative
  std::uint32_t told_ = 0;           // posted_ when we last told the peer
  std::uint32_t told_in_order_ = 0;  // the same by other than pure grants
  std::uint32_t usable_ = 0;         // told_ when the last message that tells left
  std::uint16_t control_sent_ = 0;
  std::uint16_t control_confirmed_ = 0;
  std::uint16_t control_received_ = 0;
  std::uint16_t control_acked_ = 0;  // control_received_ when we last told the peer
  bool unordered_ = false;
  std::uint32_t asked_at_ = 0;  // told_ when the peer asked; once it was told more that is answered
  CreditRequest asked_ = CreditRequest::none;
  bool on_demand_ = false;  // receives come and go within the window
};

}  // namespace bx::core
