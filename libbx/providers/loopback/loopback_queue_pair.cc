// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/loopback_queue_pair.h"

#include <algorithm>
#include <cstring>

#include "libbx/base/check.h"
#include "libbx/base/path_mtu.h"
#include "libbx/base/rc_timing.h"
#include "libbx/providers/loopback/loopback_device.h"
#include "libbx/providers/loopback/loopback_fabric.h"

namespace bx::loopback {

using fabric::Opcode;
using fabric::SendFlags;
using fabric::WcOpcode;
using fabric::WcStatus;

namespace {

constexpr std::uint8_t kRnrForEver = 7;

// READs and atomics: their answer carries data, and few may be outstanding.
bool answers_with_data(Opcode opcode) noexcept {
  return opcode == Opcode::rdma_read || opcode == Opcode::fetch_add || opcode == Opcode::cmp_swap;
}

bool valid(const fabric::PathConfig& path, const fabric::DeviceCaps& caps) noexcept {
  return is_path_mtu(path.mtu_bytes) && path.mtu_bytes <= caps.mtu_max && path.ack_timeout <= 31 &&
         path.retry_cnt <= 7 && path.rnr_retry <= 7 && path.min_rnr_timer <= 31 &&
         path.rd_atomic_max <= caps.rd_atomic_max && path.rd_atomic_dest_max <= caps.rd_atomic_max;
}

WcOpcode completion_opcode(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::send:
    case Opcode::send_with_imm:
      return WcOpcode::send;
    case Opcode::rdma_write:
    case Opcode::rdma_write_with_imm:
      return WcOpcode::rdma_write;
    case Opcode::rdma_read:
      return WcOpcode::rdma_read;
    case Opcode::fetch_add:
      return WcOpcode::fetch_add;
    case Opcode::cmp_swap:
      return WcOpcode::cmp_swap;
  }
  return WcOpcode::send;
}

}  // namespace

LoopbackQueuePair::LoopbackQueuePair(LoopbackDevice& device, const fabric::QpConfig& config,
                                     const fabric::QpAddress& address)
    : device_(device),
      config_(config),
      send_cq_(static_cast<LoopbackCq&>(*config.send_cq)),
      recv_cq_(static_cast<LoopbackCq&>(*config.recv_cq)),
      srq_(static_cast<LoopbackSrq&>(*config.srq)),
      address_(address),
      requests_(config.send_depth),
      sges_(std::size_t{config.send_depth} * config.sges_max),
      inlined_(std::size_t{config.send_depth} * config.inline_max),
      arrival_alarm_(device.world().alarms(), &LoopbackQueuePair::on_arrival, this),
      answer_alarm_(device.world().alarms(), &LoopbackQueuePair::on_answer, this),
      retry_alarm_(device.world().alarms(), &LoopbackQueuePair::on_retry, this),
      flush_alarm_(device.world().alarms(), &LoopbackQueuePair::on_flush, this) {
  BX_CHECK(&send_cq_.device() == &device && &recv_cq_.device() == &device && &srq_.device() == &device,
           "a queue pair and its queues must be of one device");
  send_cq_.add_user();
  recv_cq_.add_user();
  srq_.add_user();
  device_.add_qp(address_.qp, *this);
}

LoopbackQueuePair::~LoopbackQueuePair() {
  device_.remove_qp(address_.qp);
  srq_.remove_user();
  recv_cq_.remove_user();
  send_cq_.remove_user();
}

Result<> LoopbackQueuePair::connect(const fabric::QpAddress& peer, const fabric::PathConfig& path) {
  if (state_ == State::error) {
    return bx::fail(ErrorCode::device, ErrorScope::queue_pair, "the queue pair has failed");
  }
  if (state_ == State::ready) {
    return bx::fail(ErrorCode::invalid_argument, ErrorScope::operation, "already connected");
  }
  if (!valid(path, device_.caps())) {
    return bx::fail(ErrorCode::invalid_argument, ErrorScope::operation, "a path attribute is out of range");
  }
  peer_ = peer;
  path_ = path;
  state_ = State::ready;
  return {};
}

std::size_t LoopbackQueuePair::post_send(std::span<const fabric::SendWr> requests) noexcept {
  BX_CHECK(state_ != State::init, "post_send before connect");
  std::size_t count = 0;
  for (; count < requests.size() && posted_ - retired_ < config_.send_depth; ++count) {
    copy_in(requests[count]);
    ++posted_;
  }
  if (count > 0) device_.reactor().ring(*this);
  return count;
}

void LoopbackQueuePair::copy_in(const fabric::SendWr& wr) noexcept {
  BX_CHECK(wr.sges.size() <= config_.sges_max,
           "a request has more elements than its queue pair was made for");
  Request& request = at(posted_);
  request = {.wr_id = wr.wr_id,
             .remote = wr.remote,
             .compare_add = wr.compare_add,
             .swap = wr.swap,
             .imm = wr.imm,
             .opcode = wr.opcode,
             .flags = wr.flags};
  for (const fabric::Sge& sge : wr.sges) request.length += sge.length;
  if (!has(wr.flags, SendFlags::inlined)) {
    request.sges = static_cast<std::uint32_t>(wr.sges.size());
    std::ranges::copy(wr.sges,
                      sges_.begin() + static_cast<std::ptrdiff_t>(slot_of(request) * config_.sges_max));
    return;
  }
  BX_CHECK(request.length <= config_.inline_max, "more inline bytes than the queue pair was made for");
  BX_CHECK(!answers_with_data(wr.opcode), "an inlined request must carry data towards the peer");
  std::byte* out = inlined_.data() + slot_of(request) * config_.inline_max;
  for (const fabric::Sge& sge : wr.sges) {
    if (sge.length > 0) std::memcpy(out, reinterpret_cast<const std::byte*>(sge.addr), sge.length);
    out += sge.length;
  }
}

void LoopbackQueuePair::fail() noexcept {
  enter_error();
}

void LoopbackQueuePair::on_doorbell() noexcept {
  visible_ = posted_;
  if (state_ == State::error) {
    flush_alarm_.arm(now());
  } else {
    start_requests();
  }
}

bool LoopbackQueuePair::may_start(const Request& request) const noexcept {
  if (has(request.flags, SendFlags::fenced) && atomics_started_ > 0) return false;
  // A limit of zero lets it start, and then fail: it could never be carried out.
  return !answers_with_data(request.opcode) ||
         atomics_started_ < std::max<std::uint32_t>(path_.rd_atomic_max, 1);
}

void LoopbackQueuePair::start_requests() noexcept {
  if (state_ != State::ready || halt_ != Halt::none) return;
  const bool idle = started_ == delivered_;
  while (started_ < visible_ && may_start(at(started_))) {
    Request& request = at(started_);
    ++started_;
    const bool read = answers_with_data(request.opcode);
    if (read) ++atomics_started_;
    request.departure = device_.transmitter().occupy(now(), read ? 0 : request.length);
  }
  if (idle) arm_next_arrival();
}

void LoopbackQueuePair::arm_next_arrival() {
  if (delivered_ < started_ && halt_ == Halt::none) {
    arrival_alarm_.arm(at(delivered_).departure + device_.world().config().latency);
  }
}

void LoopbackQueuePair::on_arrival(void* qp) {
  static_cast<LoopbackQueuePair*>(qp)->deliver_next();
}

void LoopbackQueuePair::deliver_next() noexcept {
  Request& request = at(delivered_);
  const Duration latency = device_.world().config().latency;
  if (const WcStatus local = check_local(request); local != WcStatus::success) {
    answered(request, local, now());
    return;
  }
  LoopbackDevice* device = device_.port_up() ? device_.world().find_device(peer_.gid) : nullptr;
  LoopbackQueuePair* peer = device != nullptr && device->port_up() ? device->find_qp(peer_.qp) : nullptr;
  const Outcome outcome = peer != nullptr ? peer->respond(*this, request) : Outcome{Verdict::silent};
  switch (outcome.verdict) {
    case Verdict::silent:
      return no_answer(request);
    case Verdict::not_ready:
      return not_ready(request, outcome.rnr_code);
    case Verdict::refused:
      return answered(request, outcome.status, now() + latency);
    case Verdict::done:
      break;
  }
  Instant leaves = now();
  if (request.opcode == Opcode::rdma_read) leaves = device->transmitter().occupy(leaves, request.length);
  answered(request, WcStatus::success, leaves + latency);
}

// What the device finds out about a request before it leaves.
WcStatus LoopbackQueuePair::check_local(const Request& request) const noexcept {
  if (request.length > device_.caps().message_bytes_max) return WcStatus::local_length;
  const bool atomic = request.opcode == Opcode::fetch_add || request.opcode == Opcode::cmp_swap;
  if (atomic && !device_.caps().atomics) return WcStatus::local_qp_operation;
  if (atomic && request.length != sizeof(std::uint64_t)) return WcStatus::local_length;
  if (answers_with_data(request.opcode) && path_.rd_atomic_max == 0) return WcStatus::local_qp_operation;
  for (const fabric::Sge& sge : sges_of(request)) {
    if (sge.length > 0 && device_.memory().local(sge) == nullptr) return WcStatus::local_protection;
  }
  return WcStatus::success;
}

// Nobody answers: the request and all behind it go again when the timeout has passed since it left.
void LoopbackQueuePair::no_answer(const Request& request) noexcept {
  halt_ = Halt::silent;
  if (path_.ack_timeout == 0) return;
  retry_alarm_.arm(request.departure + ack_wait(path_.ack_timeout));
}

void LoopbackQueuePair::not_ready(Request& request, std::uint8_t rnr_code) noexcept {
  const Instant nak = now() + device_.world().config().latency;
  if (path_.rnr_retry != kRnrForEver && rnr_retries_ == path_.rnr_retry) {
    return answered(request, WcStatus::rnr_retry_exceeded, nak);
  }
  ++rnr_retries_;
  halt_ = Halt::not_ready;
  retry_alarm_.arm(nak + rnr_wait(rnr_code));
}

void LoopbackQueuePair::on_retry(void* opaque) {
  auto& qp = *static_cast<LoopbackQueuePair*>(opaque);
  if (qp.halt_ == Halt::silent && qp.retries_++ == qp.path_.retry_cnt) {
    return qp.answered(qp.at(qp.delivered_), WcStatus::retry_exceeded, qp.now());
  }
  // Go back: what was started behind the failed request is started again with it.
  for (; qp.started_ > qp.delivered_; --qp.started_) {
    if (answers_with_data(qp.at(qp.started_ - 1).opcode)) --qp.atomics_started_;
  }
  qp.halt_ = Halt::none;
  qp.start_requests();
}

// The fate of the oldest undelivered request is known; `answer` is when its sender learns it. Answers arrive
// in order.
void LoopbackQueuePair::answered(Request& request, WcStatus status, Instant answer) noexcept {
  request.status = status;
  request.answer = last_answer_ = std::max(last_answer_, answer);
  if (status == WcStatus::success) {
    retries_ = rnr_retries_ = 0;
  } else {
    halt_ = Halt::broken;
  }
  if (delivered_++ == completed_) answer_alarm_.arm(request.answer);
  arm_next_arrival();
}

void LoopbackQueuePair::on_answer(void* qp) {
  static_cast<LoopbackQueuePair*>(qp)->complete_next();
}

void LoopbackQueuePair::complete_next() noexcept {
  while (completed_ < delivered_ && at(completed_).answer <= now()) {
    const Request& request = at(completed_);
    ++completed_;
    if (answers_with_data(request.opcode)) --atomics_started_;
    if (request.status != WcStatus::success) {
      complete(request, request.status);
      return enter_error();
    }
    if (has(request.flags, SendFlags::signaled)) {
      complete(request, WcStatus::success);
    } else {
      ++unsignaled_;
    }
    if (state_ == State::error) return;  // its completion overran the queue
  }
  if (completed_ < delivered_) answer_alarm_.arm(at(completed_).answer);
  start_requests();
}

void LoopbackQueuePair::complete(const Request& request, WcStatus status) noexcept {
  fabric::Completion completion{.wr_id = request.wr_id, .qp = address_.qp, .status = status};
  completion.opcode = completion_opcode(request.opcode);
  if (status == WcStatus::success && answers_with_data(request.opcode)) {
    completion.byte_len = static_cast<std::uint32_t>(request.length);
  }
  send_cq_.push(completion, unsignaled_ + 1);
  unsignaled_ = 0;
}

// The flush is an event of its own, for a completion may call a waker and this may be a call of the user's.
void LoopbackQueuePair::enter_error() noexcept {
  if (state_ == State::error) return;
  state_ = State::error;
  arrival_alarm_.cancel();
  answer_alarm_.cancel();
  retry_alarm_.cancel();
  flush_alarm_.arm(now());
}

void LoopbackQueuePair::on_flush(void* opaque) {
  auto& qp = *static_cast<LoopbackQueuePair*>(opaque);
  while (qp.completed_ < qp.visible_) {
    const Request& request = qp.at(qp.completed_);
    ++qp.completed_;
    qp.complete(request, WcStatus::flushed);
  }
  qp.delivered_ = qp.started_ = qp.completed_;
}

std::span<const fabric::Sge> LoopbackQueuePair::sges_of(const Request& request) const noexcept {
  return std::span(sges_).subspan(slot_of(request) * config_.sges_max, request.sges);
}

const std::byte* LoopbackQueuePair::inline_of(const Request& request) const noexcept {
  return inlined_.data() + slot_of(request) * config_.inline_max;
}

std::size_t LoopbackQueuePair::slot_of(const Request& request) const noexcept {
  return static_cast<std::size_t>(&request - requests_.data());
}

Instant LoopbackQueuePair::now() const noexcept {
  return device_.reactor().now();
}

}  // namespace bx::loopback
