// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/nic.h"

#include <algorithm>
#include <memory>

#include "libbx/base/check.h"
#include "sim/model/port_faults.h"
#include "sim/model/prefetch.h"

namespace bx::sim {
namespace {

// An event carries one word of argument: a number of up to 24 bits and a tag, and the life or ticket for
// which it was scheduled.
struct EventWord {
  std::uint32_t number = 0;
  std::uint8_t tag = 0;
  std::uint32_t life = 0;
};

void* pack(const EventWord& word) noexcept {
  static_assert(sizeof(void*) == 8, "event words need 64 bits");
  const std::uint64_t bits =
      (std::uint64_t{word.life} << 32U) | (std::uint64_t{word.tag} << 24U) | word.number;
  return reinterpret_cast<void*>(bits);
}

EventWord unpack(void* argument) noexcept {
  const auto bits = reinterpret_cast<std::uint64_t>(argument);
  return {static_cast<std::uint32_t>(bits & 0xffffffU), static_cast<std::uint8_t>((bits >> 24U) & 0xffU),
          static_cast<std::uint32_t>(bits >> 32U)};
}

}  // namespace

Nic::Nic(Engine& engine, FramePool& frames, const NicConfig& config)
    : RcEnvironment(frames, config.host, engine.clock()),
      engine_(engine),
      config_(config),
      first_(engine, frames, *this, config.host),
      qps_(kFirstQp) {
  BX_CHECK(config.quantum_packets > 0, "a quantum is at least one packet");
  for (const std::uint16_t host : config.more_hosts) {
    add_port(host);
    more_.push_back(std::make_unique<PortSide>(engine, frames, *this, host));
  }
  set_payload_kept(config.payload_kept);
  if (config.costs.enabled) turn_on_costs();
}

void Nic::turn_on_costs() {
  BX_CHECK(check_costs(config_.costs).has_value(), "the costs were to be checked with check_costs");
  nic_costs_ = std::make_unique<NicCosts>(engine_, frames(), memory(), config_.costs);
  set_costs(nic_costs_.get());
  for (std::uint8_t index = 0; index < port_count(); ++index) {
    PortSide& each = side(index);
    each.pipeline = std::make_unique<NicPipeline>(engine_, frames(), each.schedule, *nic_costs_, each.port,
                                                  static_cast<NicPipelineOwner&>(*this));
  }
}

Nic::PortSide& Nic::side_of(std::uint16_t host) noexcept {
  std::uint8_t index = 0;
  while (index + 1 < port_count() && RcEnvironment::host(index) != host) ++index;
  return side(index);
}

Result<CompletionQueue*> Nic::create_cq(std::uint32_t depth, CompletionListener* listener) {
  if (depth == 0) return fail(ErrorCode::invalid_argument, ErrorScope::operation, "a CQ needs a depth");
  if (cqs_.full()) return fail(ErrorCode::exhausted, ErrorScope::device, "the NIC has no free CQ");
  return &cqs_.emplace([&](std::uint32_t number) {
    return std::make_unique<CompletionQueue>(*this, number, depth, config_.write_back_latency, listener);
  });
}

Result<SharedReceiveQueue*> Nic::create_srq(std::uint32_t depth, std::uint32_t segments_max) {
  if (depth == 0) return fail(ErrorCode::invalid_argument, ErrorScope::operation, "an SRQ needs a depth");
  if (srqs_.full()) return fail(ErrorCode::exhausted, ErrorScope::device, "the NIC has no free SRQ");
  return &srqs_.emplace([&](std::uint32_t number) {
    return std::make_unique<SharedReceiveQueue>(*this, number, depth, segments_max);
  });
}

Result<RcQueuePair*> Nic::create_qp(RcQueuePairConfig config) {
  if (config.send_cq == nullptr || config.receive_cq == nullptr || config.send.depth == 0) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation,
                "a queue pair needs two completion queues and a send depth");
  }
  if (qps_.full()) return fail(ErrorCode::exhausted, ErrorScope::device, "the NIC has no free queue pair");
  config.message_bytes_max = config_.message_bytes_max;
  config.ack_interval = config_.ack_interval;
  config.recovery = config_.recovery;
  config.congestion = &config_.congestion;
  config.line = config_.rate;
  ++config.send_cq->users;
  ++config.receive_cq->users;
  if (config.srq != nullptr) ++config.srq->users;
  return &qps_.emplace(
      [&](std::uint32_t number) { return std::make_unique<RcQueuePair>(*this, number, config); });
}

void Nic::destroy(CompletionQueue& cq) {
  BX_CHECK(cq.users == 0, "a completion queue was destroyed before its queue pairs");
  cqs_.erase(cq.number());
}

void Nic::destroy(SharedReceiveQueue& srq) {
  BX_CHECK(srq.users == 0, "a shared receive queue was destroyed before its queue pairs");
  srqs_.erase(srq.number());
}

void Nic::destroy(RcQueuePair& qp) {
  // What it had under way is as lost as that of a failed one.
  if (qp.state() != QpState::error && qp.requester().outstanding() > 0) ++counters().queue_pairs_failed;
  --qp.config().send_cq->users;
  --qp.config().receive_cq->users;
  if (qp.config().srq != nullptr) --qp.config().srq->users;
  if (costs() != nullptr) costs()->forget_queue_pair(qp.number());
  qps_.erase(qp.number());
}

// --- Frames.

NextFrame Nic::next_frame(Port& port) {
  PortSide& from = side(index_of(port));
  Frame* frame =
      from.pipeline == nullptr ? from.schedule.next(port.paused_mask()) : from.pipeline->next_frame();
  if (frame != nullptr) ++counters().packets_tx;
  const bool more = from.pipeline == nullptr ? !from.schedule.empty() : from.pipeline->waiting();
  return {frame, more ? Notice::at_end : Notice::later};
}

std::uint8_t Nic::index_of(const Port& port) const noexcept {
  std::uint8_t index = 0;
  if (&port == &first_.port) return index;
  while (&more_[index]->port != &port) ++index;
  return static_cast<std::uint8_t>(index + 1);
}

void Nic::approach(Port& port, Frame* frame, Approach approach) {
  if (frame == nullptr) return approach_sent(port, approach);
  if (approach == Approach::first) {
    qps_.prefetch(frame->dst_qp);
    prefetch(&last_arrival_);
    prefetch(&counters(), sizeof(NicCounters));
  } else if (approach == Approach::near) {
    return;
  } else if (RcQueuePair* qp = qps_.find(frame->dst_qp); qp != nullptr) {
    qp->approach(frame->opcode == BthOpcode::acknowledge ? RcHalf::requester : RcHalf::responder);
  }
}

// What is sent next is made then, by whoever's turn it is.
void Nic::approach_sent(const Port& port, Approach approach) {
  if (&port != &first_.port) return;
  if (approach == Approach::first) return prefetch(&first_.schedule, sizeof first_.schedule);
  if (const TxSource* next = first_.schedule.peek(); next != nullptr) next->approach(approach);
}

void Nic::receive(Port& /*port*/, Frame* frame) {
  last_arrival_ = now();
  if (filter_ != nullptr) {
    filter_->filter(*this, frame);
  } else {
    accept(frame);
  }
}

void Nic::accept(Frame* frame) {
  ++counters().packets_rx;
  if (costs() != nullptr) return side_of(frame->dst_host).pipeline->arrive(frame);
  process(frame);
  kick();
}

void Nic::process(Frame* frame) {
  if (frame->opcode == BthOpcode::cnp) note_cnp(*frame);
  if (RcQueuePair* qp = qps_.find(frame->dst_qp); qp != nullptr) {
    qp->receive(*frame);
  } else if (frame->kind == FrameKind::ip && frame->dst_qp == 0 && ip_sink_ != nullptr) {
    ip_sink_->take(*frame);  // 0 finds no queue pair, and says that nothing was corrupted
  } else {
    discard(*frame);
  }
  frames().free(frame);
}

void Nic::note_cnp(const Frame& frame) {
  ++counters().cnps_rx;
  if (observer_ != nullptr) observer_->on_cnp(frame);
}

// One inline entry goes with its doorbell; others are fetched, several at a time.
void Nic::ring_at_cost(RcQueuePair& qp) {
  std::uint64_t left = qp.requester().unrung();
  const NicCostConfig& config = costs()->config();
  if (left == 1) {
    const SendEntry& entry = qp.requester().first_unrung();
    if (entry.inlined && entry.length <= config.blueflame_bytes) return qp.ring(costs()->blueflame_at(now()));
  }
  while (left > 0) {
    const std::uint64_t count = std::min<std::uint64_t>(left, config.wqes_per_fetch);
    qp.ring(costs()->fetch_at(now(), static_cast<std::uint32_t>(count)), count);
    left -= count;
  }
}

void Nic::discard(const Frame& frame) {
  ++(frame.dst_qp == kCorruptedQp ? counters().icrc_errors : counters().packets_discarded);
  if (observer_ != nullptr) observer_->on_discard(frame);
}

void Nic::pause_began(Port& /*port*/, std::uint8_t priorities) {
  if (observer_ != nullptr) observer_->on_pause(priorities);
}

void Nic::kick() {
  kick(first_);
  if (more_.empty()) return;
  for (const auto& more : more_) kick(*more);
}

void Nic::kick(PortSide& side) {
  if (side.pipeline != nullptr) return side.pipeline->kick();
  if (!side.schedule.empty()) side.port.kick();
}

// --- Events.

void Nic::schedule_timer(RcQueuePair& qp, RcTimer timer, Picoseconds when) {
  engine_.post(when - now(), &on_timer, this,
               pack({qp.number(), static_cast<std::uint8_t>(timer), qp.life()}));
}

void Nic::on_timer(void* nic, void* argument) {
  auto& self = *static_cast<Nic*>(nic);
  const EventWord word = unpack(argument);
  RcQueuePair* qp = self.qps_.find(word.number);
  if (qp == nullptr || qp->life() != word.life) return;
  qp->on_timer(static_cast<RcTimer>(word.tag));
  self.kick();
}

void Nic::schedule_doorbell(RcQueuePair& qp, Picoseconds when) {
  engine_.post(when - now(), &on_doorbell, this, pack({qp.number(), 0, qp.life()}));
}

void Nic::on_doorbell(void* nic, void* argument) {
  auto& self = *static_cast<Nic*>(nic);
  const EventWord word = unpack(argument);
  RcQueuePair* qp = self.qps_.find(word.number);
  if (qp == nullptr || qp->life() != word.life) return;
  qp->on_doorbell();
  self.kick();
}

void Nic::schedule_wake(CompletionQueue& cq, std::uint32_t ticket, Picoseconds when) {
  engine_.post(when - now(), &on_wake, this, pack({cq.number(), 0, ticket}));
}

void Nic::on_wake(void* nic, void* argument) {
  auto& self = *static_cast<Nic*>(nic);
  const EventWord word = unpack(argument);
  CompletionQueue* cq = self.cqs_.find(word.number);
  if (cq != nullptr) cq->on_wake(word.life);
}

void Nic::retire(std::uint32_t qp_number, std::uint64_t index) {
  RcQueuePair* qp = qps_.find(qp_number);
  if (qp != nullptr) qp->requester().retire(index);
}

void Nic::raise(NicEventKind kind, std::uint32_t id) {
  engine_.post(Picoseconds{0}, &on_raise, this, pack({id, static_cast<std::uint8_t>(kind), 0}));
}

void Nic::on_raise(void* nic, void* argument) {
  auto& self = *static_cast<Nic*>(nic);
  const EventWord word = unpack(argument);
  const auto kind = static_cast<NicEventKind>(word.tag);
  if (kind == NicEventKind::cq_overrun) self.fail_users_of(word.number);
  if (self.listener_ != nullptr) self.listener_->on_nic_event(kind, word.number);
  self.kick();
}

void Nic::link_changed(Port& port, LinkState state) {
  raise(state == LinkState::up ? NicEventKind::port_active : NicEventKind::port_error, index_of(port) + 1U);
}

void Nic::reset_device() {
  raise(NicEventKind::device_fatal, 0);
  qps_.for_each([](RcQueuePair& qp) {
    if (qp.state() == QpState::reset) return;
    qp.to_error();
    qp.responder().silence();
  });
}

// The queue pairs of an overrun completion queue cannot tell their completions any more (IBA 1.4, 11.6.3.1).
void Nic::fail_users_of(std::uint32_t cq_number) {
  const CompletionQueue* cq = cqs_.find(cq_number);
  if (cq == nullptr) return;
  qps_.for_each([&](RcQueuePair& qp) {
    if (qp.config().send_cq == cq || qp.config().receive_cq == cq) fail_qp(qp);
  });
}

void Nic::fail_qp(RcQueuePair& qp) {
  if (qp.state() == QpState::error || qp.state() == QpState::reset) return;
  raise(NicEventKind::qp_fatal, qp.number());
  qp.to_error();
}

void Nic::fail_all_qps() {
  qps_.for_each([&](RcQueuePair& qp) { fail_qp(qp); });
}

namespace {

bool unacknowledged(RcQueuePair& qp) {
  const bool sends = qp.state() == QpState::ready_to_send || qp.state() == QpState::sq_drain;
  return (sends && qp.requester().outstanding() == 0 && !qp.requester().drained()) ||
         qp.responder().keeps_early_packets();
}

}  // namespace

NicAudit Nic::audit() const {
  NicAudit audit;
  qps_.for_each([&](RcQueuePair& qp) {
    audit.sends_outstanding += qp.requester().outstanding();
    audit.responders_busy += qp.responder().busy() ? 1 : 0;
    audit.timers_armed += qp.requester().timer_armed() ? 1 : 0;
    audit.unacknowledged += unacknowledged(qp) ? 1 : 0;
    audit.sources_scheduled += (qp.requester().linked() ? 1U : 0U) + (qp.responder().linked() ? 1U : 0U) +
                               (qp.cnp_source().linked() ? 1U : 0U);
  });
  audit.pipelines_busy += first_.busy() ? 1 : 0;
  for (const auto& more : more_) audit.pipelines_busy += more->busy() ? 1 : 0;
  cqs_.for_each([&](const CompletionQueue& cq) { audit.completions_unpolled += cq.size(); });
  return audit;
}

}  // namespace bx::sim
