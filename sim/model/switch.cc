// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch.h"

#include <algorithm>

#include "libbx/base/check.h"
#include "sim/model/prefetch.h"
#include "sim/model/switch_side.h"

namespace bx::sim {
namespace {

constexpr unsigned kProbabilityBits = 32;

}  // namespace

SwitchTotals& SwitchTotals::operator+=(const SwitchTotals& other) noexcept {
  pause_frames += other.pause_frames;
  resume_frames += other.resume_frames;
  ecn_marks += other.ecn_marks;
  drops += other.drops;
  lossless_drops += other.lossless_drops;
  unroutable_drops += other.unroutable_drops;
  watchdog_drops += other.watchdog_drops;
  storms += other.storms;
  link_losses += other.link_losses;
  queue_bytes_max = std::max(queue_bytes_max, other.queue_bytes_max);
  buffer_bytes_max = std::max(buffer_bytes_max, other.buffer_bytes_max);
  return *this;
}

void report(const SwitchTotals& totals, MetricSink& sink) {
  sink.metric("pfc.pause_frames", static_cast<double>(totals.pause_frames), "count");
  sink.metric("pfc.resume_frames", static_cast<double>(totals.resume_frames), "count");
  sink.metric("ecn.marks", static_cast<double>(totals.ecn_marks), "count");
  sink.metric("switch.drops", static_cast<double>(totals.drops), "count");
  sink.metric("switch.lossless_drops", static_cast<double>(totals.lossless_drops), "count");
  sink.metric("switch.unroutable_drops", static_cast<double>(totals.unroutable_drops), "count");
  sink.metric("switch.watchdog_drops", static_cast<double>(totals.watchdog_drops), "count");
  sink.metric("pfc.storms", static_cast<double>(totals.storms), "count");
  sink.metric("link.losses", static_cast<double>(totals.link_losses), "count");
  sink.metric("switch.queue_bytes_max", static_cast<double>(totals.queue_bytes_max), "bytes");
  sink.metric("switch.buffer_bytes_max", static_cast<double>(totals.buffer_bytes_max), "bytes");
}

namespace {

Rate rate_of(const SwitchConfig& config, std::size_t port) noexcept {
  return config.port_rates.empty() ? config.rate : config.port_rates[port];
}

const char* fault_of(const SwitchConfig& config) noexcept {
  if (!config.port_rates.empty() && config.port_rates.size() != config.buffer.ports) {
    return "give the rates of all ports or of none";
  }
  for (std::size_t port = 0; port < config.buffer.ports; ++port) {
    if (rate_of(config, port).bits_per_second == 0) return "each port of a switch needs a rate";
  }
  if (config.pause_quanta == 0) return "a switch needs pauses of a length";
  for (const EcnConfig& ecn : config.ecn) {
    if (ecn.kmax_bytes != 0 && (ecn.kmin_bytes >= ecn.kmax_bytes || !(ecn.pmax >= 0 && ecn.pmax <= 1))) {
      return "ECN marking needs kmin < kmax and pmax in [0, 1]";
    }
  }
  const auto too_high = [](std::uint8_t priority) { return priority >= kPriorities; };
  if (std::any_of(config.priorities.dscp.begin(), config.priorities.dscp.end(), too_high) ||
      std::any_of(config.priorities.pcp.begin(), config.priorities.pcp.end(), too_high)) {
    return "priorities are 0 to 7";
  }
  const WatchdogConfig& watchdog = config.watchdog;
  if (watchdog.detect.count() <= 0 || watchdog.restore.count() <= 0 || watchdog.poll.count() <= 0) {
    return "the times of a PFC watchdog are more than zero";
  }
  return nullptr;
}

}  // namespace

Result<BufferPlan> check_switch(const SwitchConfig& config) {
  if (const char* fault = fault_of(config); fault != nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, fault);
  }
  return plan_buffer(config.buffer);
}

std::uint64_t headroom_shortfall_bytes(const SwitchConfig& config, Picoseconds delay,
                                       std::uint32_t frame_bytes) noexcept {
  const std::vector<std::uint32_t>& of_port = config.buffer.port_headroom_bytes;
  std::uint64_t shortfall = 0;
  for (std::size_t port = 0; port < config.buffer.ports; ++port) {
    const std::uint64_t needed = headroom_needed_bytes({.rate = rate_of(config, port),
                                                        .delay = delay,
                                                        .own_frame_bytes = frame_bytes,
                                                        .peer_frame_bytes = frame_bytes});
    for (const ClassBufferConfig& c : config.buffer.classes) {
      const std::uint64_t has = of_port.empty() ? c.headroom_bytes : of_port[port];
      if (c.lossless && has < needed) shortfall = std::max(shortfall, needed - has);
    }
  }
  return shortfall;
}

Switch::Switch(Engine& engine, FramePool& pool, const SwitchConfig& config, Prng random)
    : engine_(engine),
      pool_(pool),
      routes_(random.fork("ecmp").next()),
      unsettled_(config.buffer.ports),
      maps_priorities_(!(config.priorities == PriorityMap{})),
      marks_leaving_(config.ecn_point == EcnPoint::dequeue),
      buffer_(config.buffer),
      scheduler_plan_(plan_scheduler(config.weights, config.buffer.frame_bytes_max)),
      random_(random.fork("ecn")),
      config_(config) {
  BX_CHECK(check_switch(config).has_value(), "the configuration was to be checked with check_switch");
  for (std::size_t p = 0; p < kPriorities; ++p) {
    const EcnConfig& ecn = config.ecn[p];
    (marks_leaving_ ? leaving_ramps_ : ramps_)[p] = {
        ecn.kmin_bytes, ecn.kmax_bytes,
        static_cast<std::uint64_t>(ecn.pmax * static_cast<double>(std::uint64_t{1} << kProbabilityBits))};
  }
  sides_.reserve(pool.arena(), config.buffer.ports);
  for (std::uint16_t i = 0; i < config.buffer.ports; ++i) {
    sides_.emplace_back(*this, engine, pool, i, rate_of(config, i));
  }
}

Switch::~Switch() = default;

Port& Switch::port(std::uint16_t index) noexcept {
  BX_CHECK(index < sides_.size(), "a port that the switch does not have");
  return sides_[index].port;
}

void Switch::set_route(std::uint16_t host, std::span<const std::uint16_t> ports) {
  for (const std::uint16_t port : ports) {
    BX_CHECK(port < sides_.size(), "a route leads to a port that the switch does not have");
  }
  routes_.set(host, routes_.code_of(ports));
}

const QueueCounters& Switch::queue(std::uint16_t port, std::uint8_t priority) const noexcept {
  return sides_[port].queues[priority].counters;
}

const IngressCounters& Switch::ingress(std::uint16_t port, std::uint8_t priority) const noexcept {
  return sides_[port].ingress[priority];
}

bool Switch::holds(std::uint16_t port, std::uint8_t priority, std::uint16_t in_port) const noexcept {
  const Frame* frame = sides_[port].queues[priority].frames.front();
  while (frame != nullptr && frame->ingress_port != in_port) frame = frame->next;
  return frame != nullptr;
}

SwitchTotals Switch::totals() const noexcept {
  SwitchTotals totals;
  totals.unroutable_drops = unroutable_drops_;
  totals.buffer_bytes_max = buffer_.used_bytes_max();
  for (const Side& side : sides_) {
    totals.link_losses += side.port.counters().link_losses;
    for (std::size_t p = 0; p < kPriorities; ++p) {
      const QueueCounters& out = side.queues[p].counters;
      const IngressCounters& in = side.ingress[p];
      totals.pause_frames += in.pause_frames;
      totals.resume_frames += in.resume_frames;
      totals.lossless_drops += in.lossless_drops;
      totals.link_losses += in.link_drops;
      totals.ecn_marks += out.ecn_marks;
      totals.drops += out.drops;
      totals.watchdog_drops += out.watchdog_drops;
      totals.storms += out.storms;
      totals.link_losses += out.link_drops;
      totals.queue_bytes_max = std::max(totals.queue_bytes_max, out.bytes_max);
    }
  }
  return totals;
}

NextFrame Switch::next_frame(Port& port) {
  Side& side = sides_[port.index()];
  if (side.pfc_pending != 0) return make_pfc(side);
  const auto ready = static_cast<std::uint8_t>(side.waiting & (~port.paused_mask() | side.ignore_pause));
  if (ready == 0) return nullptr;
  const std::uint8_t priority = side.scheduler.pick(
      scheduler_plan_, ready, [&](std::uint8_t p) { return side.queues[p].frames.front()->wire_bytes; });
  Queue& queue = side.queues[priority];
  Frame* frame = queue.frames.pop();
  if (queue.frames.empty()) {
    side.waiting = static_cast<std::uint8_t>(side.waiting & ~priority_bit(priority));
    side.scheduler.emptied(priority);
  }
  queue.counters.bytes -= frame->wire_bytes;
  queue.counters.tx_bytes += frame->wire_bytes;
  ++queue.counters.frames;
  if (marks_leaving_ && frame->ecn == Ecn::capable && marks(leaving_ramps_[priority], queue.counters.bytes)) {
    mark(*frame, queue, port.index());
  }
  // The end of this frame matters at its instant if another waits, or if it may end a pause.
  if (side.waiting != 0 || buffer_.xoff(frame->ingress_port, priority)) return frame;
  unsettled_.insert(port.index());
  return {frame, Notice::later};
}

// A frame's way out is looked for once, and kept where the frame keeps its way in once it is here.
void Switch::approach(Port& port, Frame* frame, Approach approach) {
  if (frame == nullptr) return approach_sent(port, approach);
  if (approach == Approach::first) {
    routes_.prefetch(frame->dst_host);
    buffer_.prefetch(port.index(), frame->priority);
    return;
  }
  if (approach == Approach::far) {
    frame->ingress_port = routes_.port_for(*frame);
    if (frame->ingress_port == SwitchRoutes::kNone) return;
    const Side& out = sides_[frame->ingress_port];
    prefetch(&out.queues[frame->priority]);
    prefetch(&out.waiting);
    prefetch(&out.port, Port::kUsualBytes);
    return;
  }
  if (frame->ingress_port >= sides_.size()) return;
  prefetch(sides_[frame->ingress_port].queues[frame->priority].frames.back());
}

void Switch::approach_sent(const Port& port, Approach approach) const {
  const Side& side = sides_[port.index()];
  const Queue& queue = side.queues[port.tx_priority()];
  if (approach == Approach::first) {
    prefetch(&queue);
    prefetch(&side.waiting);
    prefetch(&port, Port::kUsualBytes);
  } else if (approach == Approach::far) {
    prefetch(queue.frames.front());
    if (port.tx_ingress_port() != kOwnFrame) buffer_.prefetch(port.tx_ingress_port(), port.tx_priority());
  }
}

std::uint8_t Switch::priority_of(const Frame& frame) const noexcept {
  const PriorityMap& map = config_.priorities;
  return map.trust == PriorityTrust::dscp ? map.dscp[frame.dscp % kDscps] : map.pcp[frame.priority];
}

void Switch::receive(Port& port, Frame* frame) {
  const std::uint16_t out_port = routes_.port_for(*frame);
  if (out_port == SwitchRoutes::kNone) return drop(frame, unroutable_drops_);
  if (maps_priorities_) frame->priority = priority_of(*frame);
  const std::uint8_t priority = frame->priority;
  Side& in = sides_[port.index()];
  Side& out = sides_[out_port];
  Queue& queue = out.queues[priority];
  if ((out.discarding & priority_bit(priority)) != 0) return drop(frame, queue.counters.watchdog_drops);
  const Admission admission = admit(*frame, port.index(), queue.counters.bytes);
  if (admission == Admission::dropped) {
    return drop(frame, drop_counter(in, queue, priority));
  }
  if (frame->ecn == Ecn::capable && marks(ramps_[priority], queue.counters.bytes)) {
    mark(*frame, queue, out_port);
  }
  frame->ingress_port = port.index();
  queue.frames.push(frame);
  queue.counters.bytes += frame->wire_bytes;
  queue.counters.bytes_max = std::max(queue.counters.bytes_max, queue.counters.bytes);
  out.waiting = static_cast<std::uint8_t>(out.waiting | priority_bit(priority));
  if (admission == Admission::kept_send_xoff) send_xoff(in, priority);
  out.port.kick();
}

// What the buffer looks like before all is given back is fuller than it is: good enough for a frame that is
// kept all the same.
Admission Switch::admit(const Frame& frame, std::uint16_t ingress_port, std::uint64_t egress_bytes) {
  const auto view = unsettled_.empty() ? BufferView::exact : BufferView::not_emptier;
  Admission admission = buffer_.admit(ingress_port, frame.priority, frame.wire_bytes, egress_bytes, view);
  if (admission == Admission::look_again) {
    settle();
    admission =
        buffer_.admit(ingress_port, frame.priority, frame.wire_bytes, egress_bytes, BufferView::exact);
  }
  if (admission == Admission::kept_send_xoff) notice_all_ends();
  return admission;
}

// Gives back the buffer of all frames that have left.
void Switch::settle() {
  if (unsettled_.empty()) return;
  unsettled_.for_each([&](std::uint16_t port) { sides_[port].port.settle(); });
}

// From now on a frame's end may end a pause.
void Switch::notice_all_ends() {
  unsettled_.for_each([&](std::uint16_t port) { sides_[port].port.notice_at_end(); });
}

void Switch::transmitted(Port& port, std::uint32_t wire_bytes, std::uint8_t priority,
                         std::uint16_t ingress_port) {
  unsettled_.erase(port.index());
  if (ingress_port == kOwnFrame) return;
  // Whether this ends a pause depends on the whole buffer.
  if (buffer_.xoff(ingress_port, priority)) settle();
  if (buffer_.release(ingress_port, priority, wire_bytes)) request_pfc(sides_[ingress_port], priority);
}

bool Switch::marks(const Ramp& ramp, std::uint64_t queue_bytes) noexcept {
  if (ramp.kmax == 0 || queue_bytes <= ramp.kmin) return false;
  if (queue_bytes >= ramp.kmax) return true;
  const std::uint64_t draw = random_.next() >> (64U - kProbabilityBits);
  return static_cast<Wide>(draw) * (ramp.kmax - ramp.kmin) <
         static_cast<Wide>(ramp.pmax) * (queue_bytes - ramp.kmin);
}

void Switch::mark(Frame& frame, Queue& queue, std::uint16_t out_port) {
  frame.ecn = Ecn::congestion_experienced;
  ++queue.counters.ecn_marks;
  if (observer_ != nullptr) observer_->on_mark(frame, out_port);
}

std::uint64_t& Switch::drop_counter(Side& in, Queue& queue, std::uint8_t priority) noexcept {
  if (!buffer_.lossless(priority)) return queue.counters.drops;
  const bool unheard = (in.unheard & priority_bit(priority)) != 0 || in.port.loses_pauses();
  return unheard ? in.ingress[priority].link_drops : in.ingress[priority].lossless_drops;
}

void Switch::drop(Frame* frame, std::uint64_t& counter) noexcept {
  ++counter;
  if (observer_ != nullptr) observer_->on_drop(*frame);
  pool_.free(frame);
}

}  // namespace bx::sim
