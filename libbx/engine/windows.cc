// SPDX-License-Identifier: BSD-3-Clause
// What bounds the bytes on their way: out, the windows of session, peer and NIC; in, the receiver's budget,
// in turn or divided among the peers that have something to send; both static, or adaptive to the delay.
#include <algorithm>

#include "libbx/engine/send_path.h"

namespace bx::engine {

void Worker::derive_windows(const Config& config, Limits& limits) {
  constexpr std::uint64_t kUnbounded = core::SendWindow::kUnbounded;
  const bool bounded = config.window_enabled != 0;
  const auto or_unbounded = [&](std::uint64_t knob) { return bounded && knob != 0 ? knob : kUnbounded; };
  limits.window_per_peer = or_unbounded(config.window_per_peer);
  limits.window_per_session = or_unbounded(config.window_per_session);
  limits.window_nic_low = bounded ? config.window_nic_low : 0;
  limits.window_nic_high = or_unbounded(config.window_nic_high);
  limits.windows_nested = limits.window_per_session != kUnbounded || limits.window_nic_low != 0 ||
                          limits.window_nic_high != kUnbounded;
  limits.window_receiver = bounded ? config.window_receiver : core::ReceiverBudget::kBudgetMax;
  limits.adaptive = bounded && config.window_mode == static_cast<std::uint64_t>(WindowMode::adaptive);
  limits.divided = bounded && config.window_division == static_cast<std::uint64_t>(WindowDivision::peers);
  if (limits.adaptive) {
    const auto adapt = [&](std::uint64_t window) {
      return std::clamp(window, config.window_adaptive_min, config.window_adaptive_max);
    };
    limits.window_per_peer = adapt(limits.window_per_peer);
    limits.window_receiver = adapt(limits.window_receiver);
  }
  const std::uint64_t least = limits.adaptive ? config.window_adaptive_min : limits.window_receiver;
  limits.share_min = std::min(config.window_share_min, least);
  // A message larger than a window goes alone; to cut it as fine as any window would cost more than that.
  constexpr std::uint64_t kChunkMin = 4096;
  if (bounded) {
    const std::uint64_t nested = std::min(limits.window_per_session, limits.window_nic_high);
    limits.chunk =
        std::min({limits.chunk, limits.window_per_peer, limits.window_receiver, std::max(kChunkMin, nested)});
  }
}

core::AdaptiveWindow::Config Worker::adaptive_window(const Config& config, std::uint64_t initial) {
  return {.window_min = config.window_adaptive_min,
          .window_max = config.window_adaptive_max,
          .initial = initial,
          .increase = 16'384,
          .target = Duration(static_cast<std::int64_t>(config.window_target_delay))};
}

// Something waits for room. A window of its own or of its peer opens when something of the peer completes;
// that of the NIC by what any peer does.
void Worker::count_closed(Peer& peer, core::WindowVerdict verdict) noexcept {
  peer.stall.enter(StallReason::window, now_);
  if (verdict == core::WindowVerdict::nic_closed) {
    ++stats_.stall_nic_window;
  } else if (verdict == core::WindowVerdict::session_closed) {
    ++stats_.stall_session_window;
  } else {
    ++peer.stats.stall_window;
  }
  const bool may_borrow = limits_.window_nic_low > 0;
  if ((verdict == core::WindowVerdict::nic_closed || may_borrow) && !peer.NicHook::linked()) {
    awaiting_nic_.push_back(peer);
  }
}

void Worker::wake_for_nic() noexcept {
  while (Peer* peer = awaiting_nic_.pop_front()) mark_dirty(*peer);
}

void Worker::sample_out(Peer& peer, const SendRecord& record) noexcept {
  const Duration delay = now_ - record.posted;
  if (record.window_bytes == 0 || delay <= Duration::zero() || peer.state != PeerState::open) return;
  const bool known = peer.delay_out.knows(record.window_bytes);
  const Duration base = peer.delay_out.on_delay(record.window_bytes, delay);
  if (!known) return;
  peer.control_out.on_delay({.now = now_,
                             .delay = delay,
                             .bytes = record.window_bytes,
                             .in_flight = peer.window_out.in_flight(),
                             .base = base});
  peer.window_out.set_limit(peer.control_out.limit());
}

void Worker::take_inbound(Peer& peer, std::uint64_t bytes) noexcept {
  budget_.take_undivided(peer, bytes);
  peer.window_in.on_posted(bytes);
}

void Worker::on_arrived(Peer& peer, std::uint64_t bytes) noexcept {
  peer.window_in.on_retired(bytes);
  budget_.on_arrived(peer, bytes);
}

// One budget for all peers, so one window that adapts: what queues before this host queues for all of them.
void Worker::sample_in(Peer& peer, std::uint64_t bytes, Instant asked) noexcept {
  const Duration delay = now_ - asked;
  if (delay <= Duration::zero() || peer.state != PeerState::open) return;
  const bool known = peer.delay_in.knows(bytes);
  const Duration base = peer.delay_in.on_delay(bytes, delay);
  if (!known) return;
  control_in_.on_delay(
      {.now = now_, .delay = delay, .bytes = bytes, .in_flight = budget_.outstanding(), .base = base});
  budget_.set_budget(control_in_.limit());
}

// There are chunks of it to be asked for, and memory for them.
void Worker::ask_for_chunks_of(InTransfer& transfer) noexcept {
  if (!limits_.divided) return active_.push_back(transfer);
  Peer& peer = *peers_[transfer.peer];
  peer.asking.push_back(transfer);
  budget_.claim(peer);
  if (!peer.AskedHook::linked()) asked_.push_back(peer);
}

// Goes round the peers that have something to send, each within its share of the budget; one that is short of
// something else loses its turn.
void Worker::pump_shares() noexcept {
  IntrusiveList<Peer, Asked> blocked;
  while (Peer* peer = asked_.front()) {
    if (peer->asking.empty()) {  // all is asked for, or not wanted any more
      peer->AskedHook::unlink();
      budget_.release(*peer);
    } else if (!ask_peer(*peer, blocked)) {
      break;
    }
  }
  asked_.splice_back(blocked);
}

// A chunk of the peer's. False if there is no room in the budget for whoever is first in line.
bool Worker::ask_peer(Peer& peer, IntrusiveList<Peer, Asked>& blocked) noexcept {
  InTransfer& transfer = *peer.asking.front();
  peer.AskedHook::unlink();
  if (!may_ask(peer, transfer)) {
    budget_.step_aside(peer);
    transfer.unlink();  // another of the same peer may lack something else
    peer.asking.push_back(transfer);
    blocked.push_back(peer);
    return true;
  }
  const std::uint64_t bytes = transfer.cursor.next_length();
  switch (budget_.take(peer, bytes)) {
    case core::BudgetVerdict::taken:
      peer.window_in.on_posted(bytes);
      transfer.unlink();
      ask(peer, transfer);
      if (!transfer.cursor.all_issued()) peer.asking.push_back(transfer);
      asked_.push_back(peer);
      return true;
    case core::BudgetVerdict::share_used:
      ++stats_.stall_receiver_share;
      blocked.push_back(peer);
      return true;
    case core::BudgetVerdict::budget_used:
      break;
  }
  asked_.push_back(peer);
  auto& first = static_cast<Peer&>(*budget_.next_waiting());
  if (&first == &peer) {
    ++stats_.stall_receiver_window;
    return false;
  }
  first.AskedHook::unlink();
  asked_.push_front(first);
  return true;
}

// Of a peer that has failed or goes: it waits for nothing. What is on its way still counts.
void Worker::leave_windows(Peer& peer) noexcept {
  peer.NicHook::unlink();
  peer.AskedHook::unlink();
  budget_.release(peer);
}

}  // namespace bx::engine
