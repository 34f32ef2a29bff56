// SPDX-License-Identifier: BSD-3-Clause
// What a worker knows of another worker it shares lanes with.
//
// A session stays on one data lane, so what it sends keeps its order: a put and the message after it, a
// granted WRITE and its announcement. Credits, receives and windows are the peer's, whichever lane is used.
#pragma once

#include <bx/worker.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libbx/base/ring.h"
#include "libbx/core/adaptive_window.h"
#include "libbx/core/credits.h"
#include "libbx/core/delay_base.h"
#include "libbx/core/receiver_budget.h"
#include "libbx/core/send_window.h"
#include "libbx/core/transfer_choice.h"
#include "libbx/engine/call.h"
#include "libbx/engine/connection.h"
#include "libbx/engine/fair_queue.h"
#include "libbx/engine/lane.h"
#include "libbx/engine/parts_stats.h"
#include "libbx/engine/transfer.h"

namespace bx::engine {

enum class PeerState : std::uint8_t {
  connecting,
  open,
  failed,  // nothing more is sent; waits for its lane to drain, then goes
};

// What ends a peer that does not keep the rules.
inline Error protocol_error(const char* detail) noexcept {
  return {ErrorCode::protocol, ErrorScope::session, 0, detail};
}

// A service at its port.
struct ServicePlace {
  Service& handler;
  std::uint32_t index;
  std::uint32_t serving_max;  // 0 once the worker drains
  std::uint32_t serving = 0;  // requests handed to it, or refused for it, whose answers it has not given
};

// Tags of the worker's lists of peers: that may have something to send, that wait for an outgoing transfer,
// that wait for room in the NIC's window, and that are asked for chunks of what they offered.
struct Dirty;
struct AwaitsTransfer;
struct AwaitsNic;
struct Asked;

inline constexpr std::uint32_t kLanesMax = wire::kLanesMax + 1;  // of a peer: data, and control

// A lane of a peer, and what is counted and kept in order by lane.
struct PeerLane {
  std::unique_ptr<Lane> lane;
  fabric::QpAddress remote{};  // its other end
  std::uint32_t reads_outstanding = 0;
  std::uint16_t grant_number = 0;
  Ring<GrantedChunk> granted;     // by us, to be written over this lane; oldest first
  Ring<wire::WriteGrant> grants;  // to us, likewise
  bool fenced = false;            // the worker drains, and its last request has been staged
};

struct Peer : ListHook<Dirty>,
              ListHook<AwaitsTransfer>,
              ListHook<AwaitsNic>,
              ListHook<Asked>,
              core::BudgetShare {
  using DirtyHook = ListHook<Dirty>;
  using TransferHook = ListHook<AwaitsTransfer>;
  using NicHook = ListHook<AwaitsNic>;
  using AskedHook = ListHook<Asked>;

  std::uint32_t index = 0;
  std::uint32_t incarnation = 0;  // tells it from those that had this index before; never sent
  PeerState state = PeerState::connecting;
  std::string host;  // of a peer that we opened; empty for one that came to us
  std::uint16_t port = 0;
  std::uint16_t epoch = 0;
  std::uint32_t instance = 0;            // of its worker; 0 if it does not say
  ServicePlace* service = nullptr;       // for requests of a peer that came to us
  Error error{};                         // why it failed
  const char* failed_request = nullptr;  // which request did, if one did
  std::uint32_t failed_lane = 0;         // and on which lane

  std::unique_ptr<Connection> connection;
  std::array<PeerLane, kLanesMax> lanes;  // those for data, then the control lane if there is one
  std::uint32_t data_lanes = 1;
  std::uint32_t lane_count = 1;  // both
  core::CreditLedger credits;
  std::uint32_t credit_window = 0;  // receives the peer keeps for us, or may
  bool asks = false;                // we tell it when we run out of credits
  core::CreditIssuer issuer;
  std::uint32_t receives_wanted = 0;  // of a shared pool: what it asked for, floor aside
  core::SendWindow window_out;
  core::SendWindow window_in;
  std::vector<core::SendWindow> session_windows;  // of sessions whose number is the same modulo their count
  core::WindowControl control_out{core::SendWindow::kUnbounded};  // of window_out
  core::DelayBase delay_out;
  core::DelayBase delay_in;
  core::TransferLimits transfer_limits{};
  std::uint32_t reads_max = 0;       // on one lane
  std::uint32_t grants_waiting = 0;  // of all lanes
  std::uint32_t sessions = 0;
  std::uint32_t receives = 0;      // of one that has failed: those it may still consume
  std::uint32_t reposts_owed = 0;  // receives consumed and not posted again for want of a slot
  std::uint32_t queued = 0;        // messages in `requests` and `responses`
  std::uint64_t failed_in = 0;     // the turn in which it failed
  std::uint64_t activity_seen = ~std::uint64_t{0};  // when peers.idle_close last looked
  std::uint32_t mtu_bytes = 0;                      // agreed upon
  PeerStats stats;
  StallClock stall;
  std::vector<std::unique_ptr<SessionStats>> session_stats;  // of the first sessions, in order

  // Two queues, because a response must not wait behind a request: the request may be waiting for what only
  // the response can bring about.
  FairQueue urgent;                   // requests of high priority
  std::uint32_t urgent_in_a_row = 0;  // that have gone while one of `requests` waited
  FairQueue requests;
  FairQueue responses;
  IntrusiveList<InTransfer> asking;  // chunks left to ask for, in turn, if the window is divided by peers
  IntrusiveList<InTransfer> done;    // transfers whose end the peer has to be told
  IntrusiveList<ConnectAwaiter> waiters;
  IntrusiveList<Waiter> ready_waiters;  // for room for a call
  bool takes_streams = false;
  bool takes_offer_batches = false;
  bool left = false;  // closed in good order by the other side; it fails once all it sent is read

  // Queues of so many places, with turns of so many bytes.
  explicit Peer(std::uint32_t places = 1, std::uint32_t quantum = 1)
      : urgent(places, quantum), requests(places, quantum), responses(places, quantum) {}

  [[nodiscard]] std::uint32_t lane_index_of(std::uint32_t session) const noexcept {
    return data_lanes == 1 ? 0 : share_of_session(session, data_lanes);
  }
  // The lane of what a session sends.
  [[nodiscard]] PeerLane& lane_of(std::uint32_t session) noexcept { return lanes[lane_index_of(session)]; }
  [[nodiscard]] bool has_control_lane() const noexcept { return lane_count > data_lanes; }
  // The lane of what ends or grants a transfer of a session: all of one transfer go on the same.
  [[nodiscard]] PeerLane& control_lane_of(std::uint32_t session) noexcept {
    return has_control_lane() ? lanes[data_lanes] : lane_of(session);
  }
  // The lane of pure grants.
  [[nodiscard]] PeerLane& control_lane() noexcept { return lanes[has_control_lane() ? data_lanes : 0]; }
  [[nodiscard]] std::span<PeerLane> all_lanes() noexcept { return std::span(lanes).first(lane_count); }
  [[nodiscard]] std::span<const PeerLane> all_lanes() const noexcept {
    return std::span(lanes).first(lane_count);
  }
  // Nothing posted that still holds something, and nothing staged.
  [[nodiscard]] bool quiet() const noexcept {
    return std::all_of(lanes.begin(), lanes.begin() + lane_count,
                       [](const PeerLane& each) { return each.lane->quiet(); });
  }
  // Requests staged or posted and not retired, of all lanes.
  [[nodiscard]] std::uint32_t outstanding() const noexcept {
    std::uint32_t sum = 0;
    for (const PeerLane& each : all_lanes()) sum += each.lane->outstanding();
    return sum;
  }
};

}  // namespace bx::engine
