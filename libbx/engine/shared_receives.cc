// SPDX-License-Identifier: BSD-3-Clause
// Receives that all peers share (credits.mode = shared): credits.pool are posted at the start, each peer has
// its floor, asks for more when it runs out of credits with more to send (core/credits.h), and is granted its
// part and what the others do not use (core/receive_shares.h). That is renewed until somebody else wants its
// own part; then what is beyond the first one's comes back by being used.
#include <algorithm>

#include "libbx/engine/receive_path.h"

namespace bx::engine {

void Worker::derive_shares(const Config& config, Limits& limits) {
  if (config.credits_mode != static_cast<std::uint64_t>(CreditMode::shared)) return;
  limits.pool = static_cast<std::uint32_t>(config.credits_pool);
  limits.floor = static_cast<std::uint32_t>(config.credits_floor);
  limits.entitled = static_cast<std::uint32_t>(
      std::clamp(config.credits_pool / config.peers_max, config.credits_floor, config.credits_per_peer));
}

Result<> Worker::start_shares() {
  if (limits_.pool == 0) return {};
  if (auto reserved = receives_->reserve(limits_.pool, limits_.pool); !reserved) return reserved;
  for (std::uint32_t i = 0; i < limits_.pool; ++i) {
    BX_CHECK(receives_->post(), "reserve() promised a slot for every receive");
  }
  (void)receives_->flush();
  const auto peers_max = static_cast<std::uint32_t>(config_.peers_max);
  shares_ = std::make_unique<core::ReceiveShares>(
      core::ReceiveShares::Limits{.receives = limits_.pool, .peers_max = peers_max, .floor = limits_.floor});
  receive_share_ = std::make_unique<core::ReceiveShare[]>(peers_max);
  leavers_.reserve(peers_max);
  return {};
}

// peers.max if there is none: a peer that is gone keeps its place while messages of it are held.
std::uint32_t Worker::place_for_peer() const noexcept {
  std::uint32_t place = 0;
  for (; place < peers_.size(); ++place) {
    const bool held =
        shares_ != nullptr && receive_share_[place].state() != core::ReceiveShare::State::closed;
    if (peers_[place] == nullptr && !held) break;
  }
  return place;
}

void Worker::open_share(Peer& peer) noexcept {
  core::ReceiveShare& share = share_of(peer);
  const auto most = static_cast<std::uint32_t>(config_.credits_per_peer);
  const bool fits = shares_->open(share, limits_.entitled, most);
  BX_CHECK(fits, "guarantees_fit: there are peers.max entitlements in the pool");
  const std::uint32_t promised = shares_->promise(share, limits_.floor);
  BX_CHECK(promised == limits_.floor, "floor_kept: a peer did not find its floor");
}

void Worker::close_share(Peer& peer) noexcept {
  core::ReceiveShare& share = share_of(peer);
  shares_->close(share);
  if (share.state() == core::ReceiveShare::State::closing) leavers_.push_back(peer.index);
}

// A receive that a message of the peer consumed is posted again, and the pool's; but the peer's, if all
// others that it has hold messages which wait for what it may have to say.
void Worker::on_share_returned(Peer& peer) noexcept {
  core::ReceiveShare& share = share_of(peer);
  if (share.promised() < core::kCreditsReserved) {
    shares_->on_renewed(share);
    peer.issuer.on_reposted();
  } else {
    shares_->on_returned(share);
  }
  const std::uint32_t wanted = std::max(limits_.floor, peer.receives_wanted);
  if (share.used() < wanted) promise(peer, wanted - share.used());
  serve_wanting();
}

void Worker::promise(Peer& peer, std::uint32_t wanted) noexcept {
  core::ReceiveShare& share = share_of(peer);
  const std::uint32_t borrowed = share.borrowed();
  const std::uint32_t promised = shares_->promise(share, wanted);
  for (std::uint32_t i = 0; i < promised; ++i) peer.issuer.on_reposted();
  stats_.credits_lent += share.borrowed() - borrowed;
}

// Whoever asked for its part and did not get all of it, the longest waiting first.
void Worker::serve_wanting() noexcept {
  while (core::ReceiveShare* share = shares_->first_wanting()) {
    Peer& peer = *peers_[static_cast<std::size_t>(share - receive_share_.get())];
    const std::uint32_t used = share->used();
    promise(peer, share->guaranteed() - std::min(used, share->guaranteed()));
    if (share->used() == used) return;
    mark_dirty(peer);
  }
}

// For a soft request the peer's own part, for a hard one as much as may be lent to it.
void Worker::on_credit_request(Peer& peer, wire::MessageFlags flags) noexcept {
  const bool hard = has(flags, wire::MessageFlags::asks_now);
  ++stats_.credit_requests_received;
  peer.issuer.on_request(hard ? core::CreditRequest::hard : core::CreditRequest::soft);
  if (shares_ == nullptr) return;
  const core::ReceiveShare& share = share_of(peer);
  const std::uint32_t target =
      hard ? peer.issuer.window() : std::min(share.guaranteed(), peer.issuer.window());
  peer.receives_wanted = std::max(peer.receives_wanted, target);
  if (share.used() < target) promise(peer, target - share.used());
}

void Worker::ask_for_credits(Peer& peer, wire::MessageHeader& header) noexcept {
  const core::CreditRequest request = peer.credits.ask(peer.credit_window);
  if (request == core::CreditRequest::none) return;
  ++stats_.credit_requests_sent;
  header.flags = header.flags | (request == core::CreditRequest::hard ? wire::MessageFlags::asks_now
                                                                      : wire::MessageFlags::asks_soon);
}

// A receive consumed by a peer that has failed: the pool's again, as long as that was promised any of it.
void Worker::put_away_of_failed(Peer& peer, std::uint32_t slot) noexcept {
  if (shares_ == nullptr || share_of(peer).promised() == 0) return put_away(slot);
  shares_->on_received(share_of(peer));
  settle_of_failed(peer, slot, SlotUse::done);
}

// The slot of a message during which its peer failed.
void Worker::settle_of_failed(Peer& peer, std::uint32_t slot, SlotUse use) noexcept {
  if (shares_ == nullptr) {
    if (use == SlotUse::done) put_away(slot);
  } else if (use == SlotUse::done) {
    receives_->post_again(slot);
    shares_->on_returned(share_of(peer));
  } else {
    ++receives_owed_;
    receives_->set_listener(this);
  }
}

// A receive to the pool, for a message of a peer that is gone. False if no slot has come back.
bool Worker::feed_leaver() noexcept {
  if (!may_replace(receives_owed_ - 1)) return false;
  core::ReceiveShare& share = receive_share_[leavers_.back()];
  if (surplus_ > 0) {
    --surplus_;
  } else {
    BX_CHECK(receives_->post(), "a receive was given that no slot is left for");
  }
  wake();
  --receives_owed_;
  shares_->on_returned(share);
  if (share.state() == core::ReceiveShare::State::closed) leavers_.pop_back();
  serve_wanting();
  return true;
}

}  // namespace bx::engine
