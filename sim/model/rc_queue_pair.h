// SPDX-License-Identifier: GPL-2.0-only
// A reliable connected queue pair: its state (IBA 1.4, 10.3.1), its attributes, its receive queue if it has
// one of its own, and its two halves. The requester sends our requests and takes their answers; the responder
// takes the peer's requests and sends answers. They share nothing but what is here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "libbx/base/result.h"
#include "sim/model/cnp_source.h"
#include "sim/model/completion_queue.h"
#include "sim/model/congestion_control.h"
#include "sim/model/loss_recovery.h"
#include "sim/model/prefetch.h"
#include "sim/model/qp_attributes.h"
#include "sim/model/rc_environment.h"
#include "sim/model/rc_requester.h"
#include "sim/model/rc_responder.h"
#include "sim/model/shared_receive_queue.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

struct ReceiveQueueConfig {
  std::uint32_t depth = 0;
  std::uint32_t segments_max = 1;
};

inline constexpr CongestionConfig kNoCongestionControl{};

struct RcQueuePairConfig {
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;  // null: receives are the queue pair's own
  SendQueueConfig send{};
  ReceiveQueueConfig receive{};  // without effect beside an srq; depth 0: no message that needs a receive
  std::uint64_t message_bytes_max = 1ULL << 30U;
  // Ask for an ACK at least every so many packets of a long message. rxe asks every 64 (rxe_param.h,
  // RXE_MAX_PKT_PER_ACK); fewer ACKs are less work, more are quicker news of progress.
  std::uint32_t ack_interval = 64;
  RecoveryConfig recovery{};
  const CongestionConfig* congestion = &kNoCongestionControl;  // outlives the queue pair
  Rate line{};                                                 // of the NIC
};

enum class RcHalf : std::uint8_t { requester, responder };

class RcQueuePair {
 public:
  RcQueuePair(RcEnvironment& environment, std::uint32_t number, const RcQueuePairConfig& config);
  RcQueuePair(const RcQueuePair&) = delete;
  RcQueuePair& operator=(const RcQueuePair&) = delete;

  // ibv_modify_qp(3): takes the attributes in `given` from `values` and, with QpAttr::state among them, goes
  // to values.state. All or nothing.
  tl::expected<void, QpRefusal> modify(const QpAttributes& values, QpAttr given);
  // ibv_query_qp(3).
  [[nodiscard]] QpAttributes query() const noexcept;

  // The usual transitions in short, over modify(). INIT on port 1 with all access; `path` says everything
  // that RTR and RTS demand. Errors: invalid_argument (not from this state, or an attribute out of its
  // range).
  Result<> to_init();
  Result<> to_ready_to_receive(const RcPath& path);
  Result<> to_ready_to_send();
  void to_error();
  void to_reset();

  // Returns the length of the prefix that fitted. Errors: invalid_argument, sys EINVAL (before RTS). In SQD
  // requests wait; in ERR they complete as flushed.
  Result<std::size_t> post_send(std::span<const SendRequest> requests);
  // The oldest `entries` of what is posted are the NIC's from `visible_at` on.
  void ring(Picoseconds visible_at, std::uint64_t entries = UINT64_MAX);
  // Likewise, for a queue pair without srq; the NIC sees them at once. Errors: invalid_argument, sys EINVAL
  // (in RESET, or with an srq).
  Result<std::size_t> post_receive(std::span<const ReceiveRequest> requests);

  void receive(const Frame& frame);
  void on_timer(RcTimer timer);
  void on_doorbell() { requester_.wake(); }

  [[nodiscard]] QpState state() const noexcept { return state_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint8_t port() const noexcept { return static_cast<std::uint8_t>(attributes_.port - 1); }
  [[nodiscard]] const RcPath& path() const noexcept { return attributes_.path; }
  [[nodiscard]] bool allows(MemoryAccess access) const noexcept {
    const auto wanted = static_cast<unsigned>(access);
    return (static_cast<unsigned>(attributes_.access) & wanted) == wanted;
  }
  // Where its receives come from; null if nowhere.
  [[nodiscard]] SharedReceiveQueue* receive_queue() const noexcept { return receive_queue_; }
  [[nodiscard]] const RcQueuePairConfig& config() const noexcept { return config_; }
  [[nodiscard]] RcRequester& requester() noexcept { return requester_; }
  [[nodiscard]] RcResponder& responder() noexcept { return responder_; }
  // Grows with each reset: events scheduled for an earlier life are void.
  [[nodiscard]] std::uint32_t life() const noexcept { return life_; }

  [[nodiscard]] CongestionControl& congestion() noexcept { return congestion_; }
  [[nodiscard]] const CnpSource& cnp_source() const noexcept { return cnp_source_; }

  // Soon one half will have something to do: what it will touch may be fetched.
  void approach(RcHalf half) const noexcept {
    prefetch(this, kUsual);
    if (half == RcHalf::requester) {
      prefetch(&requester_, sizeof requester_);
    } else {
      prefetch(&responder_, sizeof responder_);
    }
  }

  // For the two halves.
  [[nodiscard]] RcEnvironment& environment() noexcept { return environment_; }
  // Addressed to the peer, without payload.
  Frame* make_frame(BthOpcode opcode, std::uint64_t position);
  // The requester's last message that had begun is acknowledged: SQD is reached for good.
  void on_drained();
  // The responder has found a packet missing, and tells it to its sender.
  void note_loss();

  // Whether data has to wait; if so both halves are woken when they may go on.
  [[nodiscard]] bool holds_data() noexcept { return congestion_.holds(environment_.now()); }
  void resume_later();

 private:
  static constexpr Picoseconds kNoResume = Picoseconds::max();
  static constexpr std::size_t kUsual = 256;  // bytes up to what congestion control alone touches
  [[nodiscard]] bool listens() const noexcept {
    return state_ >= QpState::ready_to_receive && state_ <= QpState::sq_drain;
  }
  void on_marked(const Frame& frame);
  void on_pace();
  [[nodiscard]] std::optional<QpRefusal> refusal_of(const QpAttributes& values, QpAttr given) const noexcept;
  [[nodiscard]] std::uint8_t priority() const noexcept;
  void enter(QpState next, QpAttr given);
  void change_path(QpAttr given);
  void bind_to_port();
  void flush_receives();
  void note_established();

  RcEnvironment& environment_;
  RcQueuePairConfig config_;
  QpAttributes attributes_{};
  std::unique_ptr<SharedReceiveQueue> own_receives_;
  SharedReceiveQueue* receive_queue_;
  std::uint32_t number_;
  std::uint32_t life_ = 0;
  std::uint16_t udp_src_port_ = 0;
  bool established_ = false;  // communication_established was raised
  QpState state_ = QpState::reset;
  Picoseconds resume_at_ = kNoResume;  // of the pending pace timer that counts
  CongestionControl congestion_;
  CnpSource cnp_source_;
  RcRequester requester_;
  RcResponder responder_;
};

}  // namespace bx::sim
