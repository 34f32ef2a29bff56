// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/rc_queue_pair.h"

#include <bit>

#include "libbx/base/check.h"
#include "libbx/base/digest.h"
#include "sim/model/wire_size.h"

namespace bx::sim {
namespace {

const char* fault_of(const RcPath& path) noexcept {
  if (!std::has_single_bit(path.mtu) || path.mtu < 256 || path.mtu > kPayloadMax) {
    return "the path MTU must be 256, 512, 1024, 2048 or 4096";
  }
  if (path.ack_timeout > 31) return "ack_timeout is 0 to 31";
  if (path.retry_cnt > 7) return "retry_cnt is 0 to 7";
  if (path.rnr_retry > 7) return "rnr_retry is 0 to 7";
  if (path.min_rnr_timer > 31) return "min_rnr_timer is 0 to 31";
  if (path.rd_atomic_max > RcResponder::kReadsMax || path.rd_atomic_dest_max > RcResponder::kReadsMax) {
    return "rd_atomic_max and rd_atomic_dest_max are 0 to 128";
  }
  if (path.send_psn > kPsnMask || path.receive_psn > kPsnMask || path.peer_qp > kPsnMask) {
    return "PSNs and queue pair numbers have 24 bits";
  }
  return nullptr;
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
      number_(number),
      requester_(*this, config.send),
      responder_(*this, config.srq == nullptr ? 0 : config.srq->segments_max()) {}

Result<> RcQueuePair::to_init() {
  if (state_ != QpState::reset) {
    return fail(ErrorCode::invalid_argument, ErrorScope::queue_pair, "only RESET leads to INIT");
  }
  state_ = QpState::init;
  return {};
}

Result<> RcQueuePair::to_ready_to_receive(const RcPath& path) {
  if (state_ != QpState::init) {
    return fail(ErrorCode::invalid_argument, ErrorScope::queue_pair, "only INIT leads to RTR");
  }
  if (const char* fault = fault_of(path); fault != nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::queue_pair, fault);
  }
  path_ = path;
  udp_src_port_ = source_port(number_, path.peer_qp);
  // Priority code point by the usual map: the top three bits of the DSCP.
  responder_.start(static_cast<std::uint8_t>(path.traffic_class >> 5U));
  state_ = QpState::ready_to_receive;
  return {};
}

Result<> RcQueuePair::to_ready_to_send() {
  if (state_ != QpState::ready_to_receive) {
    return fail(ErrorCode::invalid_argument, ErrorScope::queue_pair, "only RTR leads to RTS");
  }
  requester_.start(static_cast<std::uint8_t>(path_.traffic_class >> 5U));
  state_ = QpState::ready_to_send;
  return {};
}

void RcQueuePair::to_error() {
  if (state_ == QpState::error) return;
  state_ = QpState::error;
  ++environment_.counters().queue_pairs_failed;
  requester_.flush();
  responder_.flush();
}

void RcQueuePair::to_reset() {
  state_ = QpState::reset;
  ++life_;
  requester_.clear();
  responder_.clear();
}

std::size_t RcQueuePair::post_send(std::span<const SendRequest> requests) {
  BX_CHECK(state_ == QpState::ready_to_send || state_ == QpState::error,
           "a send was posted to a queue pair that is not in RTS or ERR");
  return requester_.post(requests);
}

void RcQueuePair::ring(Picoseconds visible_at) {
  if (state_ != QpState::ready_to_send || requester_.outstanding() == 0) return;
  requester_.ring(visible_at);
  environment_.schedule_doorbell(*this, visible_at);
}

void RcQueuePair::receive(const Frame& frame) {
  const bool listens = state_ == QpState::ready_to_receive || state_ == QpState::ready_to_send;
  if (!listens || frame.src_host != path_.peer_host) {
    ++environment_.counters().packets_discarded;
    return;
  }
  const bool response =
      frame.opcode >= BthOpcode::read_response_first && frame.opcode <= BthOpcode::atomic_acknowledge;
  if (response) {
    requester_.on_response(frame);
  } else {
    responder_.on_request(frame);
  }
}

Frame* RcQueuePair::make_frame(BthOpcode opcode, std::uint64_t position) {
  Frame* frame = environment_.frames().make();
  frame->wire_bytes = wire_bytes(opcode, 0);
  frame->src_host = environment_.host();
  frame->dst_host = path_.peer_host;
  frame->udp_src_port = udp_src_port_;
  frame->priority = static_cast<std::uint8_t>(path_.traffic_class >> 5U);
  frame->dscp = static_cast<std::uint8_t>(path_.traffic_class >> 2U);
  frame->ecn = Ecn::capable;
  frame->opcode = opcode;
  frame->dst_qp = path_.peer_qp;
  frame->psn = psn_of(position);
  return frame;
}

}  // namespace bx::sim
