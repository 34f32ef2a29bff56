// SPDX-License-Identifier: GPL-2.0-only
// A reliable connected queue pair: its state (IBA 1.4, 10.3.1), the path it runs on, and its two halves. The
// requester sends our requests and takes their answers; the responder takes the peer's requests and sends
// answers. They share nothing but what is here.
#pragma once

#include <cstdint>

#include "libbx/base/result.h"
#include "sim/model/completion_queue.h"
#include "sim/model/rc_environment.h"
#include "sim/model/rc_requester.h"
#include "sim/model/rc_responder.h"
#include "sim/model/shared_receive_queue.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

struct RcQueuePairConfig {
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;  // null: the queue pair can take no message that needs a receive
  SendQueueConfig send{};
  std::uint64_t message_bytes_max = 1ULL << 30U;
  // Ask for an ACK at least every so many packets of a long message. rxe asks every 64 (rxe_param.h,
  // RXE_MAX_PKT_PER_ACK); fewer ACKs are less work, more are quicker news of progress.
  std::uint32_t ack_interval = 64;
};

class RcQueuePair {
 public:
  RcQueuePair(RcEnvironment& environment, std::uint32_t number, const RcQueuePairConfig& config);
  RcQueuePair(const RcQueuePair&) = delete;
  RcQueuePair& operator=(const RcQueuePair&) = delete;

  // The transitions of IBA 1.4, 10.3.1: RESET -> INIT -> RTR -> RTS, anything -> ERR, anything -> RESET.
  // Errors: invalid_argument (not from this state, or an attribute out of its range).
  Result<> to_init();
  Result<> to_ready_to_receive(const RcPath& path);
  Result<> to_ready_to_send();
  void to_error();
  void to_reset();

  std::size_t post_send(std::span<const SendRequest> requests);
  void ring(Picoseconds visible_at);

  void receive(const Frame& frame);
  void on_timer(RcTimer timer) { requester_.on_timer(timer); }
  void on_doorbell() { requester_.wake(); }

  [[nodiscard]] QpState state() const noexcept { return state_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] const RcPath& path() const noexcept { return path_; }
  [[nodiscard]] const RcQueuePairConfig& config() const noexcept { return config_; }
  [[nodiscard]] RcRequester& requester() noexcept { return requester_; }
  [[nodiscard]] RcResponder& responder() noexcept { return responder_; }
  // Grows with each reset: events scheduled for an earlier life are void.
  [[nodiscard]] std::uint32_t life() const noexcept { return life_; }

  // For the two halves.
  [[nodiscard]] RcEnvironment& environment() noexcept { return environment_; }
  // Addressed to the peer, without payload.
  Frame* make_frame(BthOpcode opcode, std::uint64_t position);

 private:
  RcEnvironment& environment_;
  RcQueuePairConfig config_;
  RcPath path_{};
  std::uint32_t number_;
  std::uint32_t life_ = 0;
  std::uint16_t udp_src_port_ = 0;
  QpState state_ = QpState::reset;
  RcRequester requester_;
  RcResponder responder_;
};

}  // namespace bx::sim
