// SPDX-License-Identifier: BSD-3-Clause
// Peers that nobody uses are closed (peers.idle_close): their queue pairs, receives and memory are another's.
// A session of theirs ends, and its next call fails with `closed`; who wants to go on connects again, which
// costs a handshake and finds the peer as any first connect does. The library does not do that by itself: it
// could not say whether the worker it finds is the one that the session was with.
#include <utility>

#include "libbx/engine/worker.h"

namespace bx::engine {

void Worker::watch_idle_peers() noexcept {
  if (config_.peers_idle_close == 0 || idle_watch_.armed()) return;
  reactor_.arm(idle_watch_, reactor_.now() + Duration(static_cast<std::int64_t>(config_.peers_idle_close)));
}

// Only those that this worker opened: it alone starts calls, puts and gets over them, so it knows that
// nothing is on its way, while at the other end a request may be. Nothing is noted of a message for this: a
// peer is idle if its counters have not moved since the last look and nothing of it is in progress.
void Worker::close_idle_peers() noexcept {
  bool watch = false;
  for (auto& peer : peers_) {
    if (peer == nullptr || peer->service != nullptr || peer->state == PeerState::failed) continue;
    std::uint64_t activity = peer->stats.messages_sent + peer->stats.messages_received + peer->sessions;
    for (const auto& session : peer->session_stats) activity += session->calls_started;
    if (std::exchange(peer->activity_seen, activity) != activity || in_use(*peer)) {
      watch = true;
      continue;
    }
    ++stats_.peers_idle_closed;
    end_peer(*peer,
             {ErrorCode::closed, ErrorScope::session, 0, "the peer was not used for peers.idle_close"});
  }
  if (watch) watch_idle_peers();
  wake();
}

bool Worker::in_use(Peer& peer) noexcept {
  bool used = peer.state == PeerState::connecting || peer.queued > 0 || !peer.quiet() || !peer.done.empty();
  deadlines_.for_each([&](const Call& call) { used = used || call.peer == peer.index; });
  in_transfers_.for_each(
      [&](core::SlotHandle, const InTransfer& transfer) { used = used || transfer.peer == peer.index; });
  out_transfers_.for_each(
      [&](core::SlotHandle, const OutTransfer& transfer) { used = used || transfer.peer == peer.index; });
  in_streams_.for_each([&](core::SlotHandle, const InStream& stream) {
    used = used || (stream.session.peer_ == peer.index && stream.session.incarnation_ == peer.incarnation);
  });
  return used;
}

}  // namespace bx::engine
