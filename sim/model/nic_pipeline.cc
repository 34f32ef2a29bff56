// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/nic_pipeline.h"

#include <algorithm>

#include "libbx/base/check.h"
#include "sim/model/port_faults.h"

namespace bx::sim {
namespace {

constexpr std::uint16_t kPauseQuanta = 65535;
// DMA writes that a NIC holds while the bus is busy. Assumed: some dozen frames.
constexpr std::uint64_t kWriteBufferBytes = 64U << 10U;

constexpr std::uint8_t bit(std::size_t priority) noexcept {
  return static_cast<std::uint8_t>(1U << priority);
}

Picoseconds packet_time(const NicCostConfig& config) noexcept {
  if (config.packets_per_second == 0) return Picoseconds{0};
  return Picoseconds{
      static_cast<std::int64_t>(config.units * 1'000'000'000'000ULL / config.packets_per_second)};
}

}  // namespace

NicPipeline::NicPipeline(Engine& engine, FramePool& frames, TxSchedule& schedule, NicCosts& costs, Port& port,
                         NicPipelineOwner& owner)
    : engine_(engine),
      frames_(frames),
      schedule_(schedule),
      costs_(costs),
      port_(port),
      owner_(owner),
      packet_time_(packet_time(costs.config())),
      write_slack_(costs.config().pcie.rate.bits_per_second == 0
                       ? kNever
                       : Serialiser(costs.config().pcie.rate).time_for(kWriteBufferBytes)),
      in_service_(costs.config().units) {
  for (auto& ring : staging_) ring = Ring<Staged>(costs.config().staged_max);
}

std::uint32_t NicPipeline::earliest(const Units& units) const noexcept {
  const auto end = units.begin() + costs_.config().units;
  return static_cast<std::uint32_t>(std::min_element(units.begin(), end) - units.begin());
}

void NicPipeline::wake_at(Wake& wake, Picoseconds at, EventFn fn) {
  if (at == kNever || wake.at <= at) return;
  wake.at = at;
  engine_.post(at - engine_.now(), fn, this);
}

// --- Transmitting.

void NicPipeline::kick() {
  stage();
  if (waiting()) port_.kick();
}

void NicPipeline::on_transmit(void* pipeline, void* /*unused*/) {
  auto& self = *static_cast<NicPipeline*>(pipeline);
  // An event that was overtaken by an earlier one finds that nothing is due, and does no harm.
  if (self.transmit_wake_.at <= self.engine_.now()) self.transmit_wake_.at = kNever;
  self.kick();
}

// Priorities whose staging is full. A paused priority is staged all the same: its packets wait there.
std::uint8_t NicPipeline::unstageable() const noexcept {
  std::uint8_t mask = 0;
  for (std::size_t p = 0; p < kPriorities; ++p) {
    if (staging_[p].full()) mask = static_cast<std::uint8_t>(mask | bit(p));
  }
  return mask;
}

void NicPipeline::stage() {
  while (!schedule_.empty()) {
    const std::uint32_t unit = earliest(transmit_units_);
    if (transmit_units_[unit] > engine_.now()) {
      wake_at(transmit_wake_, transmit_units_[unit], &on_transmit);
      return;
    }
    Frame* frame = schedule_.next(unstageable());
    if (frame == nullptr) return;
    stage_frame(frame, unit);
  }
}

void NicPipeline::stage_frame(Frame* frame, std::uint32_t unit) {
  Staged staged{.frame = frame, .ready = engine_.now(), .order = order_++};
  if (frame->kind == FrameKind::roce) {
    const NicCosts::Made made = costs_.end_packet(costs_.begin_packet(frame->src_qp));
    transmit_units_[unit] = engine_.now() + packet_time_ + made.held;
    staged.ready = std::max(transmit_units_[unit], made.bytes_at);
  }
  staging_[frame->priority].push(staged);
  ++staged_;
}

Frame* NicPipeline::next_frame() {
  if (pfc_pending_ != 0) return make_pfc();
  stage();
  const Picoseconds now = engine_.now();
  Ring<Staged>* chosen = nullptr;
  Picoseconds ready = kNever;
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    Ring<Staged>& ring = staging_[p];
    if (ring.empty() || port_.paused(p)) continue;
    const Staged& head = ring.front();
    if (head.ready > now) {
      ready = std::min(ready, head.ready);
    } else if (chosen == nullptr || head.order < chosen->front().order) {
      chosen = &ring;
    }
  }
  if (chosen == nullptr) {
    wake_at(transmit_wake_, ready, &on_transmit);
    return nullptr;
  }
  --staged_;
  Frame* frame = chosen->pop().frame;
  stage();
  return frame;
}

bool NicPipeline::busy() const noexcept {
  const auto holds = [](std::uint64_t bytes) { return bytes != 0; };
  return staged_ > 0 || !received_.empty() || !in_service_.empty() || received_bytes_ != 0 ||
         std::any_of(backlog_.begin(), backlog_.end(), holds) || xoff_ != 0 || pfc_pending_ != 0;
}

// --- Receiving.

void NicPipeline::arrive(Frame* frame) {
  if (frame->kind != FrameKind::roce) {
    owner_.process(frame);
    return kick();
  }
  if (received_bytes_ + frame->wire_bytes > costs_.config().receive_buffer_bytes) {
    ++costs_.counters.receive_drops;
    frames_.free(frame);
    return;
  }
  received_bytes_ += frame->wire_bytes;
  backlog_[frame->priority] += frame->wire_bytes;
  received_.push(frame);
  advance_receive();
  note_backlog(frame->priority);
}

void NicPipeline::on_receive(void* pipeline, void* /*unused*/) {
  auto& self = *static_cast<NicPipeline*>(pipeline);
  if (self.receive_wake_.at <= self.engine_.now()) self.receive_wake_.at = kNever;
  self.advance_receive();
}

void NicPipeline::advance_receive() {
  const Picoseconds now = engine_.now();
  for (;;) {
    if (!in_service_.empty() && in_service_.front().finish <= now) {
      finish_service();
      continue;
    }
    if (received_.empty() || in_service_.full()) break;
    const std::uint32_t unit = earliest(receive_units_);
    if (receive_units_[unit] > now) break;
    begin_service(unit);
  }
  Picoseconds next = in_service_.empty() ? kNever : in_service_.front().finish;
  if (!received_.empty()) next = std::min(next, receive_units_[earliest(receive_units_)]);
  wake_at(receive_wake_, next, &on_receive);
  kick();
}

void NicPipeline::begin_service(std::uint32_t unit) {
  Frame* frame = received_.pop();
  received_bytes_ -= frame->wire_bytes;
  backlog_[frame->priority] -= frame->wire_bytes;
  note_backlog(frame->priority);
  // A wrong ICRC is seen before any context is looked for.
  const bool whole = frame->dst_qp != kCorruptedQp;
  const Picoseconds context = whole ? costs_.begin_packet(frame->dst_qp) : Picoseconds{0};
  last_finish_ = std::max(last_finish_, engine_.now() + packet_time_ + context);
  receive_units_[unit] = kNever;  // until it has finished
  in_service_.push({.frame = frame, .finish = last_finish_, .unit = unit});
}

// The bus holds up the unit when it lags too far behind.
void NicPipeline::finish_service() {
  const InService done = in_service_.pop();
  owner_.process(done.frame);
  const Picoseconds held = costs_.end_packet(Picoseconds{0}).held;
  receive_units_[done.unit] = engine_.now() + held;
  if (write_slack_ != kNever) {
    receive_units_[done.unit] =
        std::max(receive_units_[done.unit], costs_.bus().writes_until() - write_slack_);
  }
}

// --- Pauses of our own.

void NicPipeline::note_backlog(std::uint8_t priority) {
  const std::uint64_t xoff = costs_.config().receive_xoff_bytes;
  const bool paused = (xoff_ & bit(priority)) != 0;
  if (!paused && backlog_[priority] >= xoff) {
    xoff_ = static_cast<std::uint8_t>(xoff_ | bit(priority));
    if ((refreshing_ & bit(priority)) == 0) on_refresh(this, reinterpret_cast<void*>(std::size_t{priority}));
  } else if (paused && backlog_[priority] < xoff / 2) {
    xoff_ = static_cast<std::uint8_t>(xoff_ & ~bit(priority));
  } else {
    return;
  }
  pfc_pending_ = static_cast<std::uint8_t>(pfc_pending_ | bit(priority));
  port_.kick();
}

// Tells again at half the pause's time, for as long as it must last.
void NicPipeline::on_refresh(void* pipeline, void* priority) {
  auto& self = *static_cast<NicPipeline*>(pipeline);
  const std::uint8_t which = bit(reinterpret_cast<std::size_t>(priority));
  self.refreshing_ = static_cast<std::uint8_t>(self.refreshing_ & ~which);
  if ((self.xoff_ & which) == 0) return;
  self.refreshing_ = static_cast<std::uint8_t>(self.refreshing_ | which);
  self.pfc_pending_ = static_cast<std::uint8_t>(self.pfc_pending_ | which);
  self.engine_.post(pfc_quanta_time(kPauseQuanta, self.port_.rate()) / 2, &on_refresh, pipeline, priority);
  self.port_.kick();
}

Frame* NicPipeline::make_pfc() {
  Frame* frame = frames_.make();
  frame->kind = FrameKind::pfc;
  frame->wire_bytes = kMinimumWireBytes;
  frame->pfc_enable = pfc_pending_;
  for (std::size_t p = 0; p < kPriorities; ++p) {
    if ((pfc_pending_ & xoff_ & bit(p)) != 0) frame->pfc_quanta[p] = kPauseQuanta;
  }
  if ((pfc_pending_ & xoff_) != 0) ++costs_.counters.pause_frames;
  pfc_pending_ = 0;
  return frame;
}

}  // namespace bx::sim
