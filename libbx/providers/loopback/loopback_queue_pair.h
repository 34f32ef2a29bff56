// SPDX-License-Identifier: BSD-3-Clause
// A reliable connected queue pair of the loopback device: whole messages, no packets. Requests move through
// the send queue in order; four counters divide it:
//
//   retired_ <= completed_ <= delivered_ <= started_ <= visible_ <= posted_
//      |           |             |            |           |          +- post_send took it
//      |           |             |            |           +- the doorbell rang
//      |           |             |            +- its bytes go to the wire
//      |           |             +- the responder has carried it out (its answer is on the way)
//      |           +- answered; a completion was given if it asked for one
//      +- that completion was polled, the slot is free
//
// Payload is read from the sender's memory when it is delivered, as late as a real NIC may, so that a buffer
// reused too early shows. A message that gets no answer or an RNR NAK is sent again with all behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libbx/fabric/device.h"
#include "libbx/providers/loopback/loopback_queues.h"
#include "libbx/providers/virtual/alarm.h"
#include "libbx/providers/virtual/virtual_reactor.h"

namespace bx::loopback {

class LoopbackQueuePair final : public fabric::QueuePair, private virtual_time::Doorbell {
 public:
  // Events that one queue pair can have pending at once, as the loop is to reserve them.
  static constexpr std::size_t kEventsMax = 16;

  LoopbackQueuePair(LoopbackDevice& device, const fabric::QpConfig& config, const fabric::QpAddress& address);
  ~LoopbackQueuePair() override;
  [[nodiscard]] fabric::QpAddress address() const noexcept override { return address_; }
  Result<> connect(const fabric::QpAddress& peer, const fabric::PathConfig& path) override;
  std::size_t post_send(std::span<const fabric::SendWr> requests) noexcept override;
  void fail() noexcept override;

  // For the completion queue: `slots` more slots are free.
  void retire(std::uint32_t slots) noexcept { retired_ += slots; }
  [[nodiscard]] bool uses(const LoopbackCq& cq) const noexcept {
    return &send_cq_ == &cq || &recv_cq_ == &cq;
  }

 private:
  enum class State : std::uint8_t { init, ready, error };
  // Why nothing is started or delivered.
  enum class Halt : std::uint8_t {
    none,
    not_ready,  // an RNR NAK: until its timer has run
    silent,     // no answer: until the ACK timeout
    broken,     // a request has failed: for ever, but answers under way still arrive
  };
  struct Request {
    fabric::WrId wr_id{};
    fabric::RemoteSpan remote{};
    std::uint64_t compare_add = 0;
    std::uint64_t swap = 0;
    std::uint64_t length = 0;
    Instant departure{};  // last byte on the wire
    Instant answer{};     // when the answer arrives back here; set by delivery
    std::uint32_t imm = 0;
    std::uint32_t sges = 0;  // 0 for inlined
    fabric::Opcode opcode{};
    fabric::SendFlags flags{};
    fabric::WcStatus status = fabric::WcStatus::success;
  };
  // What became of a message at the responder.
  enum class Verdict : std::uint8_t { done, refused, not_ready, silent };
  struct Outcome {
    Verdict verdict = Verdict::done;
    fabric::WcStatus status = fabric::WcStatus::success;
    std::uint8_t rnr_code = 0;
  };

  // Requester.
  void on_doorbell() noexcept override;
  void copy_in(const fabric::SendWr& wr) noexcept;
  void start_requests() noexcept;
  [[nodiscard]] bool may_start(const Request& request) const noexcept;
  static void on_arrival(void* qp);
  void deliver_next() noexcept;
  [[nodiscard]] fabric::WcStatus check_local(const Request& request) const noexcept;
  void no_answer(const Request& request) noexcept;
  void not_ready(Request& request, std::uint8_t rnr_code) noexcept;
  void answered(Request& request, fabric::WcStatus status, Instant answer) noexcept;
  static void on_retry(void* qp);
  static void on_answer(void* qp);
  void complete_next() noexcept;
  void complete(const Request& request, fabric::WcStatus status) noexcept;
  void arm_next_arrival();
  void enter_error() noexcept;
  static void on_flush(void* qp);

  // Responder: `request` of `requester` has arrived here.
  Outcome respond(LoopbackQueuePair& requester, Request& request) noexcept;
  Outcome respond_send(LoopbackQueuePair& requester, const Request& request) noexcept;
  Outcome respond_write(LoopbackQueuePair& requester, const Request& request) noexcept;
  Outcome respond_read(LoopbackQueuePair& requester, const Request& request) noexcept;
  Outcome respond_atomic(LoopbackQueuePair& requester, const Request& request) noexcept;
  Outcome refuse(fabric::WcStatus status) noexcept;
  void complete_receive(fabric::WrId wr_id, const Request& request, fabric::WcStatus status) noexcept;

  [[nodiscard]] Request& at(std::uint64_t position) noexcept {
    return requests_[position % config_.send_depth];
  }
  [[nodiscard]] std::span<const fabric::Sge> sges_of(const Request& request) const noexcept;
  [[nodiscard]] const std::byte* inline_of(const Request& request) const noexcept;
  [[nodiscard]] std::size_t slot_of(const Request& request) const noexcept;
  [[nodiscard]] Instant now() const noexcept;

  LoopbackDevice& device_;
  fabric::QpConfig config_;
  LoopbackCq& send_cq_;
  LoopbackCq& recv_cq_;
  LoopbackSrq& srq_;
  fabric::QpAddress address_;
  fabric::QpAddress peer_{};
  fabric::PathConfig path_{};
  State state_ = State::init;

  std::vector<Request> requests_;   // send_depth
  std::vector<fabric::Sge> sges_;   // sges_max for each
  std::vector<std::byte> inlined_;  // inline_max for each
  std::uint64_t retired_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t visible_ = 0;
  std::uint64_t posted_ = 0;
  std::uint32_t unsignaled_ = 0;       // completed since the last completion that was given
  std::uint32_t atomics_started_ = 0;  // READs and atomics started and not answered
  std::uint32_t retries_ = 0;          // since the last answer
  std::uint32_t rnr_retries_ = 0;
  Halt halt_ = Halt::none;
  Instant last_answer_{};

  virtual_time::Alarm arrival_alarm_;
  virtual_time::Alarm answer_alarm_;
  virtual_time::Alarm retry_alarm_;
  virtual_time::Alarm flush_alarm_;
};

}  // namespace bx::loopback
