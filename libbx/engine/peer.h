// SPDX-License-Identifier: BSD-3-Clause
// What a worker knows of another worker it shares a lane with.
#pragma once

#include <bx/worker.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libbx/base/ring.h"
#include "libbx/core/credits.h"
#include "libbx/core/send_window.h"
#include "libbx/core/transfer_choice.h"
#include "libbx/engine/call.h"
#include "libbx/engine/connection.h"
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

// Tags of the worker's lists of peers: that may have something to send, and that wait for an outgoing
// transfer.
struct Dirty;
struct AwaitsTransfer;

struct Peer : ListHook<Dirty>, ListHook<AwaitsTransfer> {
  using DirtyHook = ListHook<Dirty>;
  using TransferHook = ListHook<AwaitsTransfer>;

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

  std::unique_ptr<Connection> connection;
  std::unique_ptr<Lane> lane;
  core::CreditLedger credits;
  std::uint32_t credit_window = 0;  // receives the peer keeps for us
  core::CreditIssuer issuer;
  core::SendWindow window_out;
  core::SendWindow window_in;
  core::TransferLimits transfer_limits{};
  std::uint32_t reads_max = 0;
  std::uint32_t reads_outstanding = 0;
  std::uint32_t sessions = 0;
  std::uint32_t receives = 0;      // of one that has failed: those it may still consume
  std::uint32_t reposts_owed = 0;  // receives consumed and not posted again for want of a slot
  std::uint32_t queued = 0;        // messages on `requests` and `responses`
  std::uint64_t failed_in = 0;     // the turn in which it failed
  fabric::QpAddress remote{};      // the other end of the lane
  PeerStats stats;
  StallClock stall;
  std::vector<std::unique_ptr<SessionStats>> session_stats;  // of the first sessions, in order

  // Two queues, because a response must not wait behind a request: the request may be waiting for what only
  // the response can bring about.
  IntrusiveList<Outgoing, Waiting> urgent;  // requests of high priority
  std::uint32_t urgent_in_a_row = 0;        // that have gone while one of `requests` waited
  IntrusiveList<Outgoing, Waiting> requests;
  IntrusiveList<Outgoing, Waiting> responses;
  IntrusiveList<InTransfer> done;  // transfers whose end the peer has to be told
  Ring<GrantedChunk> granted;      // by us, oldest first
  Ring<wire::WriteGrant> grants;   // to us, oldest first
  std::uint16_t grant_number = 0;
  IntrusiveList<ConnectAwaiter> waiters;
  IntrusiveList<Waiter> ready_waiters;  // for room for a call
  bool takes_streams = false;
  bool fenced = false;  // the worker drains, and the last request of the lane has been staged
  bool left = false;    // closed in good order by the other side; it fails once all it sent is read
};

}  // namespace bx::engine
