// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/rc_queue_pair.h"

#include <cerrno>

#include "libbx/base/digest.h"
#include "sim/model/wire_size.h"

namespace bx::sim {
namespace {

constexpr QpAttr kToInit = QpAttr::state | QpAttr::pkey_index | QpAttr::port | QpAttr::access_flags;
constexpr QpAttr kToReceive = QpAttr::state | QpAttr::av | QpAttr::path_mtu | QpAttr::dest_qpn |
                              QpAttr::rq_psn | QpAttr::max_dest_rd_atomic | QpAttr::min_rnr_timer;
constexpr QpAttr kToSend = QpAttr::state | QpAttr::timeout | QpAttr::retry_cnt | QpAttr::rnr_retry |
                           QpAttr::sq_psn | QpAttr::max_qp_rd_atomic;

// For those who report in static text; modify() says more.
const char* detail_of(const QpRefusal& refusal) noexcept {
  if (refusal.fault != QpFault::out_of_range) return "the queue pair's state does not lead there";
  switch (refusal.attribute) {
    case QpAttr::path_mtu:
      return "the path MTU must be 256, 512, 1024, 2048 or 4096";
    case QpAttr::timeout:
      return "ack_timeout is 0 to 31";
    case QpAttr::retry_cnt:
      return "retry_cnt is 0 to 7";
    case QpAttr::rnr_retry:
      return "rnr_retry is 0 to 7";
    case QpAttr::min_rnr_timer:
      return "min_rnr_timer is 0 to 31";
    case QpAttr::max_qp_rd_atomic:
    case QpAttr::max_dest_rd_atomic:
      return "rd_atomic_max and rd_atomic_dest_max are 0 to 128";
    default:
      return "PSNs and queue pair numbers have 24 bits";
  }
}

Result<> result_of(const tl::expected<void, QpRefusal>& modified) {
  if (modified) return {};
  return fail(ErrorCode::invalid_argument, ErrorScope::queue_pair, detail_of(modified.error()), EINVAL);
}

// The entropy of annex A17: routers spread queue pairs over paths by the UDP source port (49152..65535).
std::uint16_t source_port(std::uint32_t a, std::uint32_t b) noexcept {
  Digest digest;
  digest.add(a);
  digest.add(b);
  return static_cast<std::uint16_t>(0xc000U | (digest.value() & 0x3fffU));
}

}  // namespace

RcQueuePair::RcQueuePair(RcEnvironment& environment, std::uint32_t number, const RcQueuePairConfig& config)
    : environment_(environment),
      config_(config),
      own_receives_(config.srq != nullptr || config.receive.depth == 0
                        ? nullptr
                        : std::make_unique<SharedReceiveQueue>(environment, 0, config.receive.depth,
                                                               config.receive.segments_max)),
      receive_queue_(config.srq != nullptr ? config.srq : own_receives_.get()),
      number_(number),
      congestion_(*config.congestion, config.line),
      cnp_source_(*this),
      requester_(*this, config.send),
      responder_(*this, receive_queue_ == nullptr ? 0 : receive_queue_->segments_max()) {}

// --- States.

tl::expected<void, QpRefusal> RcQueuePair::modify(const QpAttributes& values, QpAttr given) {
  if (const auto refusal = refusal_of(values, given); refusal) return tl::unexpected<QpRefusal>(*refusal);
  apply(given, values, attributes_);
  enter(any(given & QpAttr::state) ? values.state : state_, given);
  return {};
}

std::optional<QpRefusal> RcQueuePair::refusal_of(const QpAttributes& values, QpAttr given) const noexcept {
  const QpState next = any(given & QpAttr::state) ? values.state : state_;
  if (const auto refusal = check_mask(state_, next, given); refusal) return refusal;
  if (any(given & QpAttr::cur_state) && values.cur_state != state_) {
    return QpRefusal{QpFault::wrong_state, QpAttr::cur_state, state_, next};
  }
  const bool must_be_drained = next == QpState::ready_to_send || next == QpState::sq_drain;
  if (state_ == QpState::sq_drain && must_be_drained && !requester_.drained()) {
    return QpRefusal{QpFault::draining, QpAttr::none, state_, next};
  }
  return check_values(state_, next, given, values, environment_.port_count());
}

QpAttributes RcQueuePair::query() const noexcept {
  QpAttributes attributes = attributes_;
  attributes.state = attributes.cur_state = state_;
  attributes.sq_draining = state_ == QpState::sq_drain && !requester_.drained();
  return attributes;
}

// Priority code point by the usual map: the top three bits of the DSCP.
std::uint8_t RcQueuePair::priority() const noexcept {
  return static_cast<std::uint8_t>(path().traffic_class >> 5U);
}

void RcQueuePair::enter(QpState next, QpAttr given) {
  const QpState from = state_;
  if (next == QpState::reset) return to_reset();
  if (next == QpState::error) return to_error();
  state_ = next;
  if (any(given & QpAttr::port)) bind_to_port();
  if (next == QpState::ready_to_receive) {
    udp_src_port_ = source_port(number_, path().peer_qp);
    responder_.start(priority());
    congestion_.start(wire_bytes(BthOpcode::send_middle, path().mtu));
    cnp_source_.start(config_.congestion->cnp);
  } else if (next == QpState::ready_to_send && from == QpState::ready_to_receive) {
    requester_.start(priority());
  } else if (next == QpState::ready_to_send && from == QpState::sq_drain) {
    requester_.resume();
  } else if (next == QpState::sq_drain && from == QpState::ready_to_send) {
    if (!any(given & QpAttr::en_sqd_async_notify)) attributes_.en_sqd_async_notify = false;
    requester_.drain();
  } else if (next == QpState::sq_drain) {
    change_path(given);
  }
}

void RcQueuePair::bind_to_port() {
  requester_.move_to_port(port());
  responder_.move_to_port(port());
  cnp_source_.move_to_port(port());
  requester_.wake();
  responder_.wake();
}

void RcQueuePair::change_path(QpAttr given) {
  if (any(given & QpAttr::av)) {
    requester_.set_priority(priority());
    responder_.set_priority(priority());
    cnp_source_.start(config_.congestion->cnp);
  }
  if (any(given & QpAttr::max_dest_rd_atomic)) responder_.hold_answers(path().rd_atomic_dest_max);
}

void RcQueuePair::on_drained() {
  if (attributes_.en_sqd_async_notify) environment_.raise(NicEventKind::sq_drained, number_);
}

Result<> RcQueuePair::to_init() {
  constexpr MemoryAccess kAll = MemoryAccess::local_write | MemoryAccess::remote_read |
                                MemoryAccess::remote_write | MemoryAccess::remote_atomic;
  return result_of(modify({.state = QpState::init, .access = kAll}, kToInit));
}

Result<> RcQueuePair::to_ready_to_receive(const RcPath& path) {
  const QpAttributes values{.state = QpState::ready_to_receive, .path = path};
  // What RTS will ask for is refused now, when its values are given.
  const auto refusal = check_values(QpState::ready_to_receive, QpState::ready_to_send, kToSend, values, 1);
  if (refusal) return result_of(tl::unexpected<QpRefusal>(*refusal));
  const Result<> result = result_of(modify(values, kToReceive));
  if (result) attributes_.path = path;
  return result;
}

Result<> RcQueuePair::to_ready_to_send() {
  return result_of(modify({.state = QpState::ready_to_send, .path = path()}, kToSend));
}

void RcQueuePair::to_error() {
  if (state_ == QpState::error) return;
  state_ = QpState::error;
  ++environment_.counters().queue_pairs_failed;
  cnp_source_.stop();
  requester_.flush();
  responder_.flush();
  flush_receives();
  if (config_.srq != nullptr) environment_.raise(NicEventKind::last_wqe_reached, number_);
}

void RcQueuePair::to_reset() {
  state_ = QpState::reset;
  ++life_;
  resume_at_ = kNoResume;
  cnp_source_.stop();
  requester_.clear();
  responder_.clear();
  if (own_receives_ != nullptr) own_receives_->clear();
  established_ = false;
  attributes_ = {};
}

// --- Work.

Result<std::size_t> RcQueuePair::post_send(std::span<const SendRequest> requests) {
  if (state_ < QpState::ready_to_send) {
    return fail(ErrorCode::invalid_argument, ErrorScope::queue_pair,
                "sends may be posted from RTS on: connect the queue pair first", EINVAL);
  }
  return requester_.post(requests);
}

void RcQueuePair::ring(Picoseconds visible_at, std::uint64_t entries) {
  const bool sends = state_ == QpState::ready_to_send || state_ == QpState::sq_drain;
  if (!sends || requester_.outstanding() == 0) return;
  requester_.ring(visible_at, entries);
  environment_.schedule_doorbell(*this, visible_at);
}

Result<std::size_t> RcQueuePair::post_receive(std::span<const ReceiveRequest> requests) {
  if (own_receives_ == nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::queue_pair,
                "the queue pair has no receive queue of its own: post to its shared receive queue", EINVAL);
  }
  if (state_ == QpState::reset) {
    return fail(ErrorCode::invalid_argument, ErrorScope::queue_pair, "receives may be posted from INIT on",
                EINVAL);
  }
  const std::size_t accepted = own_receives_->post(requests);
  own_receives_->ring();
  if (state_ == QpState::error) flush_receives();
  return accepted;
}

void RcQueuePair::flush_receives() {
  if (own_receives_ == nullptr) return;
  while (!own_receives_->empty()) {
    config_.receive_cq->push_receive({.id = own_receives_->take().id,
                                      .qp = number_,
                                      .status = CompletionStatus::flushed,
                                      .opcode = CompletionOpcode::recv});
  }
}

void RcQueuePair::receive(const Frame& frame) {
  if (!listens() || frame.src_host != path().peer_host) {
    ++environment_.counters().packets_discarded;
    return;
  }
  if (state_ == QpState::ready_to_receive) note_established();
  if (frame.ecn == Ecn::congestion_experienced) on_marked(frame);
  if (frame.opcode == BthOpcode::cnp) return congestion_.on_cnp(environment_.now());
  const bool response =
      frame.opcode >= BthOpcode::read_response_first && frame.opcode <= BthOpcode::atomic_acknowledge;
  if (response) {
    requester_.on_response(frame);
  } else {
    responder_.on_request(frame);
  }
}

void RcQueuePair::note_established() {
  if (established_) return;
  established_ = true;
  environment_.raise(NicEventKind::communication_established, number_);
}

void RcQueuePair::on_marked(const Frame& frame) {
  const CongestionConfig& congestion = *config_.congestion;
  const bool data = frame.opcode != BthOpcode::acknowledge && frame.opcode != BthOpcode::atomic_acknowledge;
  if (congestion.algorithm == CongestionAlgorithm::dcqcn && data) cnp_source_.on_marked(congestion.cnp);
}

void RcQueuePair::note_loss() {
  const CongestionConfig& congestion = *config_.congestion;
  if (congestion.algorithm != CongestionAlgorithm::dcqcn || !congestion.cnp.with_naks) return;
  cnp_source_.on_marked(congestion.cnp);
}

void RcQueuePair::on_timer(RcTimer timer) {
  switch (timer) {
    case RcTimer::ack:
    case RcTimer::rnr:
      return requester_.on_timer(timer);
    case RcTimer::pace:
      return on_pace();
    case RcTimer::delayed_ack:
      return responder_.on_ack_timer();
    case RcTimer::notify:
      if (listens()) cnp_source_.request();
      return;
  }
}

// --- Pacing. Events cannot be taken back: one that is pending for later than needed is void, as its time is
// not resume_at_.

void RcQueuePair::resume_later() {
  const Picoseconds at = congestion_.resume_at();
  if (at >= resume_at_) return;
  resume_at_ = at;
  environment_.schedule_timer(*this, RcTimer::pace, at);
}

void RcQueuePair::on_pace() {
  if (environment_.now() != resume_at_) return;
  resume_at_ = kNoResume;
  requester_.wake();
  responder_.wake();
}

Frame* RcQueuePair::make_frame(BthOpcode opcode, std::uint64_t position) {
  Frame* frame = environment_.frames().make();
  frame->wire_bytes = wire_bytes(opcode, 0);
  frame->src_host = environment_.host(port());
  frame->dst_host = attributes_.path.peer_host;
  frame->udp_src_port = udp_src_port_;
  frame->priority = priority();
  frame->dscp = static_cast<std::uint8_t>(attributes_.path.traffic_class >> 2U);
  frame->ecn = Ecn::capable;
  frame->opcode = opcode;
  frame->dst_qp = attributes_.path.peer_qp;
  frame->psn = psn_of(position);
  frame->src_qp = number_;
  return frame;
}

}  // namespace bx::sim
