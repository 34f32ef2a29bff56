// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch.h"

#include <algorithm>
#include <bit>

#include "libbx/base/check.h"
#include "libbx/base/digest.h"

namespace bx::sim {
namespace {

// Frame::ingress_port of the switch's own PFC frames, which take no buffer.
constexpr std::uint16_t kOwnFrame = UINT16_MAX;
constexpr unsigned kProbabilityBits = 32;

std::uint8_t bit(std::uint8_t priority) {
  return static_cast<std::uint8_t>(1U << priority);
}

}  // namespace

struct Switch::Side {
  Side(Switch& owner_switch, Engine& engine, FramePool& pool, std::uint16_t index, Rate rate)
      : owner(owner_switch), port(engine, pool, owner_switch, index, rate) {}

  Switch& owner;
  Port port;
  // Egress.
  std::uint8_t waiting = 0;      // bit p: queues[p] is not empty
  std::uint8_t pfc_pending = 0;  // bit p: the peer is to hear whether p is paused
  std::array<Queue, kPriorities> queues{};
  // Ingress.
  std::uint8_t refresh_scheduled = 0;  // bit p: on_refresh will come
  std::array<Picoseconds, kPriorities> pause_sent{};
  std::array<IngressCounters, kPriorities> ingress{};
};

SwitchTotals& SwitchTotals::operator+=(const SwitchTotals& other) noexcept {
  pause_frames += other.pause_frames;
  resume_frames += other.resume_frames;
  ecn_marks += other.ecn_marks;
  drops += other.drops;
  lossless_drops += other.lossless_drops;
  unroutable_drops += other.unroutable_drops;
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
  sink.metric("switch.queue_bytes_max", static_cast<double>(totals.queue_bytes_max), "bytes");
  sink.metric("switch.buffer_bytes_max", static_cast<double>(totals.buffer_bytes_max), "bytes");
}

Result<BufferPlan> check_switch(const SwitchConfig& config) {
  if (config.rate.bits_per_second == 0 || config.pause_quanta == 0) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device,
                "a switch needs a rate and pauses of a length");
  }
  for (const EcnConfig& ecn : config.ecn) {
    if (ecn.kmax_bytes != 0 && (ecn.kmin_bytes >= ecn.kmax_bytes || !(ecn.pmax >= 0 && ecn.pmax <= 1))) {
      return fail(ErrorCode::invalid_argument, ErrorScope::device,
                  "ECN marking needs kmin < kmax and pmax in [0, 1]");
    }
  }
  return plan_buffer(config.buffer);
}

std::uint64_t headroom_shortfall_bytes(const SwitchConfig& config, Picoseconds delay,
                                       std::uint32_t frame_bytes) noexcept {
  const std::uint64_t needed = headroom_needed_bytes(
      {.rate = config.rate, .delay = delay, .own_frame_bytes = frame_bytes, .peer_frame_bytes = frame_bytes});
  std::uint64_t shortfall = 0;
  for (const ClassBufferConfig& c : config.buffer.classes) {
    if (c.lossless && c.headroom_bytes < needed) shortfall = std::max(shortfall, needed - c.headroom_bytes);
  }
  return shortfall;
}

Switch::Switch(Engine& engine, FramePool& pool, const SwitchConfig& config, Prng random)
    : engine_(engine),
      pool_(pool),
      config_(config),
      buffer_(config.buffer),
      random_(random.fork("ecn")),
      ecmp_seed_(random.fork("ecmp").next()),
      refresh_interval_(pfc_quanta_time(config.pause_quanta, config.rate) / 2) {
  BX_CHECK(check_switch(config).has_value(), "the configuration was to be checked with check_switch");
  for (std::size_t p = 0; p < kPriorities; ++p) {
    const EcnConfig& ecn = config.ecn[p];
    ramps_[p] = {
        ecn.kmin_bytes, ecn.kmax_bytes,
        static_cast<std::uint64_t>(ecn.pmax * static_cast<double>(std::uint64_t{1} << kProbabilityBits))};
  }
  for (std::uint16_t i = 0; i < config.buffer.ports; ++i) {
    sides_.push_back(std::make_unique<Side>(*this, engine, pool, i, config.rate));
  }
}

Switch::~Switch() = default;

Port& Switch::port(std::uint16_t index) noexcept {
  BX_CHECK(index < sides_.size(), "a port that the switch does not have");
  return sides_[index]->port;
}

void Switch::set_route(std::uint16_t host, std::span<const std::uint16_t> ports) {
  if (routes_.size() <= host) routes_.resize(std::size_t{host} + 1);
  routes_[host] = {static_cast<std::uint32_t>(route_ports_.size()), static_cast<std::uint32_t>(ports.size())};
  for (const std::uint16_t port : ports) {
    BX_CHECK(port < sides_.size(), "a route leads to a port that the switch does not have");
    route_ports_.push_back(port);
  }
}

const QueueCounters& Switch::queue(std::uint16_t port, std::uint8_t priority) const noexcept {
  return sides_[port]->queues[priority].counters;
}

const IngressCounters& Switch::ingress(std::uint16_t port, std::uint8_t priority) const noexcept {
  return sides_[port]->ingress[priority];
}

SwitchTotals Switch::totals() const noexcept {
  SwitchTotals totals;
  totals.unroutable_drops = unroutable_drops_;
  totals.buffer_bytes_max = buffer_.used_bytes_max();
  for (const auto& side : sides_) {
    for (std::size_t p = 0; p < kPriorities; ++p) {
      const QueueCounters& out = side->queues[p].counters;
      const IngressCounters& in = side->ingress[p];
      totals.pause_frames += in.pause_frames;
      totals.resume_frames += in.resume_frames;
      totals.lossless_drops += in.lossless_drops;
      totals.ecn_marks += out.ecn_marks;
      totals.drops += out.drops;
      totals.queue_bytes_max = std::max(totals.queue_bytes_max, out.bytes_max);
    }
  }
  return totals;
}

Frame* Switch::next_frame(Port& port) {
  Side& side = *sides_[port.index()];
  if (side.pfc_pending != 0) return make_pfc(side);
  const auto ready = static_cast<std::uint8_t>(side.waiting & ~port.paused_mask());
  if (ready == 0) return nullptr;
  const auto priority = static_cast<std::uint8_t>(std::bit_width(ready) - 1);
  Queue& queue = side.queues[priority];
  Frame* frame = queue.frames.pop();
  if (queue.frames.empty()) side.waiting = static_cast<std::uint8_t>(side.waiting & ~bit(priority));
  queue.counters.bytes -= frame->wire_bytes;
  ++queue.counters.frames;
  return frame;
}

void Switch::receive(Port& port, Frame* frame) {
  Side* out = route(*frame);
  if (out == nullptr) return drop(frame, unroutable_drops_);
  const std::uint8_t priority = frame->priority;
  Side& in = *sides_[port.index()];
  Queue& queue = out->queues[priority];
  const Admission admission = buffer_.admit(port.index(), priority, frame->wire_bytes, queue.counters.bytes);
  if (admission == Admission::dropped) {
    return drop(frame,
                buffer_.lossless(priority) ? in.ingress[priority].lossless_drops : queue.counters.drops);
  }
  if (frame->ecn == Ecn::capable && marks(ramps_[priority], queue.counters.bytes)) {
    frame->ecn = Ecn::congestion_experienced;
    ++queue.counters.ecn_marks;
  }
  frame->ingress_port = port.index();
  queue.frames.push(frame);
  queue.counters.bytes += frame->wire_bytes;
  queue.counters.bytes_max = std::max(queue.counters.bytes_max, queue.counters.bytes);
  out->waiting = static_cast<std::uint8_t>(out->waiting | bit(priority));
  if (admission == Admission::kept_send_xoff) send_xoff(in, priority);
  out->port.kick();
}

void Switch::transmitted(Port& /*port*/, std::uint32_t wire_bytes, std::uint8_t priority,
                         std::uint16_t ingress_port) {
  if (ingress_port == kOwnFrame) return;
  if (buffer_.release(ingress_port, priority, wire_bytes)) request_pfc(*sides_[ingress_port], priority);
}

Switch::Side* Switch::route(const Frame& frame) noexcept {
  if (frame.dst_host >= routes_.size()) return nullptr;
  const Route& route = routes_[frame.dst_host];
  if (route.count <= 1) return route.count == 0 ? nullptr : sides_[route_ports_[route.first]].get();
  Digest digest;
  digest.add(ecmp_seed_);
  digest.add(std::uint64_t{frame.src_host} << 32U | std::uint64_t{frame.dst_host} << 16U |
             frame.udp_src_port);
  const std::uint64_t choice = ((digest.value() >> 32U) * route.count) >> 32U;
  return sides_[route_ports_[route.first + choice]].get();
}

bool Switch::marks(const Ramp& ramp, std::uint64_t queue_bytes) noexcept {
  if (ramp.kmax == 0 || queue_bytes <= ramp.kmin) return false;
  if (queue_bytes >= ramp.kmax) return true;
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t draw = random_.next() >> (64U - kProbabilityBits);
  return static_cast<Wide>(draw) * (ramp.kmax - ramp.kmin) <
         static_cast<Wide>(ramp.pmax) * (queue_bytes - ramp.kmin);
}

void Switch::drop(Frame* frame, std::uint64_t& counter) noexcept {
  ++counter;
  pool_.free(frame);
}

void Switch::send_xoff(Side& side, std::uint8_t priority) {
  ++side.ingress[priority].xoffs;
  request_pfc(side, priority);
  if ((side.refresh_scheduled & bit(priority)) == 0) schedule_refresh(side, priority, refresh_interval_);
}

// What the peer is told is what holds when the frame can leave: an XOFF and an XON that follow each other
// while the port is busy become one frame.
void Switch::request_pfc(Side& side, std::uint8_t priority) {
  side.pfc_pending = static_cast<std::uint8_t>(side.pfc_pending | bit(priority));
  side.pause_sent[priority] = engine_.now();
  side.port.kick();
}

Frame* Switch::make_pfc(Side& side) {
  Frame* frame = pool_.make();
  frame->kind = FrameKind::pfc;
  frame->wire_bytes = kMinimumWireBytes;
  frame->priority = kPriorities - 1;
  frame->ingress_port = kOwnFrame;
  frame->pfc_enable = side.pfc_pending;
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    if ((side.pfc_pending & bit(p)) == 0) continue;
    const bool xoff = buffer_.xoff(side.port.index(), p);
    frame->pfc_quanta[p] = xoff ? config_.pause_quanta : std::uint16_t{0};
    ++(xoff ? side.ingress[p].pause_frames : side.ingress[p].resume_frames);
  }
  side.pfc_pending = 0;
  return frame;
}

void Switch::schedule_refresh(Side& side, std::uint8_t priority, Picoseconds delay) {
  side.refresh_scheduled = static_cast<std::uint8_t>(side.refresh_scheduled | bit(priority));
  engine_.post(delay, &on_refresh, &side, reinterpret_cast<void*>(std::uintptr_t{priority}));
}

void Switch::on_refresh(void* side_argument, void* priority_argument) {
  auto& side = *static_cast<Side*>(side_argument);
  const auto priority = static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(priority_argument));
  Switch& self = side.owner;
  side.refresh_scheduled = static_cast<std::uint8_t>(side.refresh_scheduled & ~bit(priority));
  if (!self.buffer_.xoff(side.port.index(), priority)) return;
  // One event follows many pauses: this one may have begun since.
  const Picoseconds due = side.pause_sent[priority] + self.refresh_interval_;
  if (due <= self.engine_.now()) {
    self.request_pfc(side, priority);
    self.schedule_refresh(side, priority, self.refresh_interval_);
  } else {
    self.schedule_refresh(side, priority, due - self.engine_.now());
  }
}

}  // namespace bx::sim
