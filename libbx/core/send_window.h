// SPDX-License-Identifier: BSD-3-Clause
// A bound on the bytes in flight. One SendWindow bounds what goes to (or is pulled from) one peer; another,
// at the receiver, bounds what all peers together are sending to it, which is what keeps an incast out of the
// switch's buffers: N peers share one budget, however large N is.
//
// Where sessions share a NIC there are three bounds: the budget of the session, that of its peer, and the
// NicWindow with two marks (WindowPath). Within both budgets a session sends. Beyond one it may still send
// while that leaves the NIC at or under the low mark: a lone talker need not stop at its budget. At the high
// mark nobody sends.
//
// Invariants (check_invariants): window_kept: in flight <= high, or it is one message larger than that;
// a budget is exceeded only while the NIC was under the low mark, or by one message larger than it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "libbx/base/check.h"

namespace bx::core {

class SendWindow {
 public:
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  explicit SendWindow(std::uint64_t limit = kUnbounded) noexcept : limit_(limit) {}

  // An amount larger than the window may go when nothing else is in flight: every message must be able to
  // move.
  [[nodiscard]] bool admits(std::uint64_t bytes) const noexcept {
    return in_flight_ == 0 || bytes <= limit_ - std::min(limit_, in_flight_);
  }
  void on_posted(std::uint64_t bytes) noexcept {
    BX_CHECK(admits(bytes), "window_kept: bytes were posted beyond the window");
    in_flight_ += bytes;
  }
  // The same beyond the limit, where a NicWindow lends the room.
  void on_borrowed(std::uint64_t bytes) noexcept { in_flight_ += bytes; }
  void on_retired(std::uint64_t bytes) noexcept {
    BX_CHECK(bytes <= in_flight_, "more bytes were retired than are in flight");
    in_flight_ -= bytes;
  }
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  // What is in flight already may stay above a lower limit; nothing joins it until it is below.
  void set_limit(std::uint64_t limit) noexcept { limit_ = limit; }

 private:
  std::uint64_t limit_;
  std::uint64_t in_flight_ = 0;
};

// All that one NIC has in flight. With a low mark of 0, as by default, it lends nothing.
class NicWindow {
 public:
  explicit NicWindow(std::uint64_t low = 0, std::uint64_t high = SendWindow::kUnbounded) noexcept
      : low_(low), all_(high) {
    BX_CHECK(low <= high, "the low mark is above the high mark");
  }
  [[nodiscard]] bool admits(std::uint64_t bytes) const noexcept { return all_.admits(bytes); }
  // There is room for what exceeds a budget.
  [[nodiscard]] bool lends(std::uint64_t bytes) const noexcept {
    return bytes <= low_ - std::min(low_, all_.in_flight());
  }
  void on_posted(std::uint64_t bytes) noexcept {
    BX_CHECK(admits(bytes), "window_kept: bytes were posted beyond the high mark");
    all_.on_posted(bytes);
    largest_ = std::max(largest_, bytes);
  }
  void on_retired(std::uint64_t bytes) noexcept { all_.on_retired(bytes); }
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return all_.in_flight(); }

  void check_invariants() const {
    BX_CHECK(all_.in_flight() <= std::max(all_.limit(), largest_), "window_kept");
  }

 private:
  std::uint64_t low_;
  SendWindow all_;
  std::uint64_t largest_ = 0;  // message ever posted
};

enum class WindowVerdict : std::uint8_t {
  open,
  lent,  // beyond a budget, while the NIC is under its low mark
  session_closed,
  peer_closed,
  nic_closed,
};

// The three bounds that a message of a session passes. Made where it is used: three references.
struct WindowPath {
  SendWindow& session;
  SendWindow& peer;
  NicWindow& nic;

  [[nodiscard]] WindowVerdict verdict(std::uint64_t bytes) const noexcept {
    if (!nic.admits(bytes)) return WindowVerdict::nic_closed;
    const bool session_open = session.admits(bytes);
    if (session_open && peer.admits(bytes)) return WindowVerdict::open;
    if (nic.lends(bytes)) return WindowVerdict::lent;
    return session_open ? WindowVerdict::peer_closed : WindowVerdict::session_closed;
  }
  void on_posted(std::uint64_t bytes) const noexcept {
    BX_CHECK(verdict(bytes) <= WindowVerdict::lent, "window_kept: bytes were posted through a closed window");
    session.on_borrowed(bytes);
    peer.on_borrowed(bytes);
    nic.on_posted(bytes);
  }
  void on_retired(std::uint64_t bytes) const noexcept {
    session.on_retired(bytes);
    peer.on_retired(bytes);
    nic.on_retired(bytes);
  }
};

}  // namespace bx::core
