// SPDX-License-Identifier: BSD-3-Clause
// How a request or a response leaves: at once, from the call that makes it (calls.cc), or from the peer's
// queue at the end of a turn (sending.cc). Members of Worker, here so that they are inline in both.
#pragma once

#include <utility>

#include "libbx/core/transfer_choice.h"
#include "libbx/engine/worker.h"

namespace bx::engine {

// What every message says beside its own matter.
inline void Worker::stamp(Peer& peer, core::CreditIssuer::Notice notice,
                          wire::MessageHeader& header) noexcept {
  header.epoch = peer.epoch;
  header.credit_grant = notice.credit_grant;
  header.control_ack = notice.control_ack;
  if (peer.asks && peer.queued > 1) [[unlikely]]  // the message itself is one of them
    ask_for_credits(peer, header);
  ++peer.stats.messages_sent;
}

// A request may have to wait at its receiver, so it does not take the last credit (core/credits.h).
inline std::uint32_t Worker::credits_for(wire::MessageKind kind) noexcept {
  return kind == wire::MessageKind::request ? 1 + core::kCreditsReserved : 1;
}

// Whether a small message may go in the SEND that was staged last, for no credit and no slot of its own. A
// batch that holds a request may have to wait at its receiver, so it does not take the last credit either.
inline bool Worker::may_follow(const Peer& peer, const Lane& lane, wire::MessageKind kind,
                               std::size_t bytes) noexcept {
  return lane.may_follow(bytes) && peer.credits.available() + 1 >= credits_for(kind);
}

// What a message of so many bytes finds: the window of its peer, and those of its session and of the NIC if
// there are any.
inline core::WindowVerdict Worker::window_verdict(Peer& peer, std::uint32_t session,
                                                  std::uint64_t bytes) noexcept {
  if (limits_.windows_nested) [[unlikely]]
    return window_path(peer, session).verdict(bytes);
  return peer.window_out.admits(bytes) ? core::WindowVerdict::open : core::WindowVerdict::peer_closed;
}

inline void Worker::take_window(Peer& peer, std::uint32_t session, std::uint64_t bytes) noexcept {
  if (limits_.windows_nested) [[unlikely]] {
    const core::WindowPath path = window_path(peer, session);
    if (path.verdict(bytes) == core::WindowVerdict::lent) ++stats_.window_lent;
    path.on_posted(bytes);
  } else {
    peer.window_out.on_posted(bytes);
  }
}

inline void Worker::give_window(Peer& peer, const SendRecord& record) noexcept {
  if (limits_.adaptive) [[unlikely]]
    sample_out(peer, record);
  if (limits_.windows_nested) [[unlikely]] {
    window_path(peer, record.session).on_retired(record.window_bytes);
    if (!awaiting_nic_.empty()) wake_for_nic();
  } else {
    peer.window_out.on_retired(record.window_bytes);
  }
}

inline void Worker::follow(Peer& peer, Lane& lane, const wire::MessageHeader& header,
                           std::span<const std::byte> body) noexcept {
  ++peer.stats.messages_sent;
  ++stats_.messages_coalesced;
  work_.bytes_copied += body.size();
  lane.follow({.kind = header.kind,
               .status = header.status,
               .body_bytes = static_cast<std::uint16_t>(body.size()),
               .session = header.session,
               .call = header.call},
              body.data());
}

inline void Worker::follow_payload(Peer& peer, Lane& lane, const wire::MessageHeader& header,
                                   Buffer& payload) noexcept {
  peer.stats.bytes_sent += payload.size();
  follow(peer, lane, header, std::as_const(payload).bytes());
  payload.reset();
}

// Sends a message with its payload. The credit, the slot and the room in the window are there.
inline void Worker::send_payload(Peer& peer, Lane& lane, wire::MessageHeader& header, Buffer& payload,
                                 bool inlined) noexcept {
  const std::size_t bytes = payload.size();
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  stamp(peer, peer.issuer.notice_ahead(), header);
  wire::store_header(header, lane.next_envelope());
  peer.stats.bytes_sent += bytes;
  peer.credits.consume();
  if (inlined) {
    ++stats_.messages_inlined;
    work_.bytes_copied += bytes;
    lane.stage_inlined(wire::kHeaderBytes, std::as_const(payload).bytes());
    payload.reset();
  } else {
    ++stats_.messages_eager;
    take_window(peer, header.session, bytes);
    lane.stage_message(wire::kHeaderBytes, {.session = header.session,
                                            .window_bytes = bytes,
                                            .buffer = std::move(payload),
                                            .posted = posting_time()});
  }
}

// Whether the message may go at once: nothing is to go before it and nothing is missing. If so it is sent.
inline bool Worker::send_now(Peer& peer, wire::MessageHeader& header, Buffer& payload) noexcept {
  const core::Transfer choice = core::choose_transfer(payload.size(), peer.transfer_limits);
  const bool inlined = choice == core::Transfer::inlined;
  if (peer.queued > 0 || !peer.done.empty() || peer.grants_waiting > 0) return false;
  Lane& lane = *peer.lane_of(header.session).lane;
  if (inlined && may_follow(peer, lane, header.kind, payload.size())) {
    follow_payload(peer, lane, header, payload);
    return true;
  }
  if (peer.credits.available() < credits_for(header.kind) || lane.data_slots() == 0 ||
      !(inlined || (choice == core::Transfer::eager &&
                    window_verdict(peer, header.session, payload.size()) <= core::WindowVerdict::lent))) {
    return false;
  }
  send_payload(peer, lane, header, payload, inlined);
  return true;
}

}  // namespace bx::engine
