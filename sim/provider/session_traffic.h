// SPDX-License-Identifier: GPL-2.0-only
// Many sessions over few queue pairs of one NIC, without the library: what a NIC of the model carries when a
// host talks to a whole cluster. Host 0 is the hub; every other host is a peer of it.
//
//   session s --> queue pair s mod Q of the hub --> peer (s mod Q) mod P
//                                         request -->
//                                         <-- answer, over the same queue pair
//
// A session is a logical connection with a sequence of messages of its own: each is a SEND of the hub with a
// header (session, sequence, length), and is over when its answer, another SEND, has come. Lengths follow
// from session and sequence. Both ends check every message: from the right queue pair, in its turn and so
// exactly once, as long as it must be. It works with bytes and with lengths only (the header is at the
// begin).
//
// Invariants: at most `window` messages are under way to a peer, and a receive is posted for each at either
// end, so that nothing waits for a receiver; a session has no memory but its record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/result.h"
#include "sim/provider/sim_config.h"
#include "sim/provider/sim_network.h"

namespace bx::sim {

struct SessionTrafficConfig {
  SimConfig network{};
  std::uint32_t queue_pairs = 0;  // of the hub, spread evenly over the peers
  std::uint32_t sessions = 0;
  std::uint16_t messages = 1;  // of each session
  std::uint32_t window = 16;   // messages under way to a peer
  std::uint32_t bytes_max = 1536;
};

// What the ends have seen. The faults are zero, and the rest as many as were asked for, if the network has
// done its work.
struct SessionTotals {
  std::uint64_t requests = 0;         // that came to a peer as they should
  std::uint64_t answers = 0;          // that came to the hub as they should
  std::uint64_t sends_completed = 0;  // of both ends, with success
  std::uint64_t bytes = 0;            // of requests and answers that came
  std::uint64_t packets = 0;          // of these
  std::uint64_t sessions_complete = 0;
  // Faults.
  std::uint64_t failed = 0;        // completions without success
  std::uint64_t refused = 0;       // requests that a send queue did not take
  std::uint64_t wrong_length = 0;  // messages
  std::uint64_t out_of_turn = 0;   // messages that came twice, too early, or for no session
  std::uint64_t wrong_place = 0;   // messages over another queue pair than their session's
  [[nodiscard]] std::uint64_t faults() const noexcept {
    return failed + refused + wrong_length + out_of_turn + wrong_place;
  }
};

class SessionTraffic {
 public:
  // Errors: those of plan_network; invalid_argument (no peer, nothing to do, fewer queue pairs than
  // peers x window, messages shorter than their header or longer than 1 MiB).
  static Result<std::unique_ptr<SessionTraffic>> create(const SessionTrafficConfig& config);
  ~SessionTraffic();
  SessionTraffic(const SessionTraffic&) = delete;
  SessionTraffic& operator=(const SessionTraffic&) = delete;

  // In this order, once each; apart, so that what each takes can be measured.
  void open_queue_pairs();
  void open_sessions();
  // Until nothing is left. True: every message of every session, and all that it brought about, was seen
  // exactly once and as it should be.
  [[nodiscard]] bool run();

  [[nodiscard]] const SessionTotals& totals() const noexcept { return totals_; }
  [[nodiscard]] SimNetwork& network() noexcept { return *network_; }

 private:
  class End;
  struct Header;
  // How far the messages of one session have come.
  struct Session {
    std::uint16_t sent = 0;
    std::uint16_t served = 0;
    std::uint16_t answered = 0;
  };
  // Which message to a peer is next: of all its sessions the first, then of all the second, ..
  struct Cursor {
    std::uint16_t message = 0;
    std::uint32_t round = 0;  // of sessions over the queue pairs
    std::uint32_t place = 0;  // of the queue pair among those to the peer
  };

  explicit SessionTraffic(const SessionTrafficConfig& config, std::unique_ptr<SimNetwork> network);
  [[nodiscard]] std::uint32_t peers() const noexcept { return static_cast<std::uint32_t>(ends_.size()) - 1; }
  [[nodiscard]] std::uint32_t length_of(const Header& header, bool answer) const noexcept;
  void connect(std::uint32_t queue_pair);
  void send_next(std::uint32_t peer, std::uint32_t slot);
  [[nodiscard]] bool next_session(std::uint32_t peer, std::uint32_t& session);
  void on_request(End& end, const WorkCompletion& completion);
  void on_answer(End& end, const WorkCompletion& completion);
  [[nodiscard]] bool is_right(const Header& header, const WorkCompletion& completion, bool answer);

  SessionTrafficConfig config_;
  std::unique_ptr<SimNetwork> network_;
  std::vector<std::unique_ptr<End>> ends_;  // by host
  std::vector<RcQueuePair*> queue_pairs_;   // of the hub
  std::vector<Session> sessions_;
  std::vector<Cursor> cursors_;  // by peer
  SessionTotals totals_;
};

}  // namespace bx::sim
