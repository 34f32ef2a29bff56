// SPDX-License-Identifier: BSD-3-Clause
// Life and turn of a worker.
#include "libbx/engine/worker.h"

#include <algorithm>

#include "libbx/base/prng.h"

namespace bx::engine {
namespace {

constexpr std::atomic<std::uint32_t> kNobodyAsks{0};
constexpr std::uint64_t kRequestBytesMax = std::uint64_t{1} << 30U;  // moved by one work request
constexpr std::uint64_t kMessageBytesLeast = wire::kEnvelopeBytesMax + 256;

const char* fault_in(const Config& config) noexcept {
  for (const KnobSpec& knob : knobs()) {
    const std::uint64_t value = config.*knob.member;
    if (value < knob.minimum || value > knob.maximum) return knob.name.data();  // names are string literals
  }
  if ((config.path_mtu & (config.path_mtu - 1)) != 0) return "path.mtu: not 256, 512, 1024, 2048 or 4096";
  if (config.send_control_reserve + 4 > config.send_depth) {
    return "send.control_reserve: leaves fewer than 4 of send.depth for data";
  }
  if (config.credits_mode == static_cast<std::uint64_t>(CreditMode::shared) &&
      config.credits_floor > config.credits_per_peer) {
    return "credits.floor: more than credits.per_peer";
  }
  if (config.window_nic_high != 0 && config.window_nic_low > config.window_nic_high) {
    return "window.nic_low: more than window.nic_high";
  }
  if (config.window_mode == static_cast<std::uint64_t>(WindowMode::adaptive) &&
      config.window_adaptive_min > config.window_adaptive_max) {
    return "window.adaptive_min: more than window.adaptive_max";
  }
  return nullptr;
}

// Lanes of a peer that the completion queue has room for, the control lane included.
std::uint64_t lanes_that_fit(const Config& config, const fabric::DeviceCaps& caps) noexcept {
  const std::uint64_t receives = config.credits_per_peer + core::kControlSlots;
  const std::uint64_t of_peer = caps.cq_depth_max / config.peers_max;
  return of_peer < receives ? 0 : (of_peer - receives) / config.send_depth;
}

}  // namespace

Result<Worker::Limits> Worker::derive_limits(const Config& config, const fabric::DeviceCaps& caps) {
  if (const char* fault = fault_in(config)) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, fault);
  }
  Limits limits{};
  limits.inline_max = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.inline_max, caps.inline_max));
  limits.slot_bytes = static_cast<std::uint32_t>((wire::kEnvelopeBytesMax + config.eager_max + 63) / 64 * 64);
  derive_shares(config, limits);
  if (limits.pool > 0 && config.peers_max * config.credits_floor > config.credits_pool) {
    return fail(ErrorCode::exhausted, ErrorScope::operation,
                "credits.pool: less than peers.max * credits.floor",
                static_cast<int>(config.peers_max * config.credits_floor));
  }
  const std::uint64_t receives_per_peer =
      (limits.pool > 0 ? 0 : config.credits_per_peer) + core::kControlSlots;
  const std::uint64_t slots = limits.pool + config.peers_max * receives_per_peer + config.receive_spare;
  const std::uint64_t lanes = config.lanes_per_peer + config.lanes_control;
  const std::uint64_t cq_depth =
      limits.pool + config.peers_max * (lanes * config.send_depth + receives_per_peer);
  if (slots > caps.srq_depth_max) {
    return fail(ErrorCode::exhausted, ErrorScope::device,
                "peers.max * (credits.per_peer + 2) + credits.spare_slots exceeds the device's receive queue",
                static_cast<int>(caps.srq_depth_max));
  }
  if (const std::uint64_t fit = lanes_that_fit(config, caps); cq_depth > caps.cq_depth_max && fit > 0) {
    return fail(ErrorCode::exhausted, ErrorScope::device,
                "lanes.per_peer and lanes.control: peers.max * (lanes * send.depth + credits.per_peer + 2) "
                "exceeds the device's completion queue; so many lanes of a peer fit",
                static_cast<int>(fit));
  }
  if (cq_depth > caps.cq_depth_max) {
    return fail(ErrorCode::exhausted, ErrorScope::device,
                "peers.max * (send.depth + credits.per_peer + 2) exceeds the device's completion queue",
                static_cast<int>(caps.cq_depth_max));
  }
  if (config.send_depth > caps.send_depth_max) {
    return fail(ErrorCode::exhausted, ErrorScope::device, "send.depth exceeds what the device offers",
                static_cast<int>(caps.send_depth_max));
  }
  if (caps.sges_max < 2)
    return fail(ErrorCode::unsupported, ErrorScope::device, "the device gathers fewer than 2 elements");
  limits.slots_max = static_cast<std::uint32_t>(slots);
  limits.cq_depth = static_cast<std::uint32_t>(cq_depth);
  limits.reads_max =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(config.rendezvous_reads_max, caps.rd_atomic_max));
  limits.lanes_max = static_cast<std::uint32_t>(lanes);
  limits.mtu = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.path_mtu, caps.mtu_max));
  limits.chunk = std::min({config.rendezvous_chunk, caps.message_bytes_max, kRequestBytesMax});
  limits.message_max = std::min(caps.message_bytes_max, kRequestBytesMax);
  if (limits.message_max < kMessageBytesLeast) {
    return fail(ErrorCode::unsupported, ErrorScope::device,
                "the device's longest message is shorter than a header and 256 bytes",
                static_cast<int>(limits.message_max));
  }
  limits.parts_max =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(config.gather_parts_max, caps.sges_max - 1));
  limits.receive_memory_min =
      ReceivePool::memory_of(limits.pool + receives_per_peer + config.receive_spare, limits.slot_bytes) +
      lanes *
          memory::chunks_for(
              config.send_depth *
              Lane::header_stride(limits.inline_max, static_cast<std::uint32_t>(config.coalesce_max))) *
          memory::kChunkBytes;
  derive_windows(config, limits);
  return limits;
}

Result<std::unique_ptr<Worker>> Worker::create(fabric::Host& host, const Config& config,
                                               memory::SystemMemory* system) {
  auto limits = derive_limits(config, host.device().caps());
  if (!limits) return tl::unexpected<Error>(limits.error());
  std::unique_ptr<Worker> worker(new Worker(host, config, *limits, system));
  if (auto started = worker->start_memory(); !started) return tl::unexpected<Error>(started.error());
  if (auto started = worker->start_queues(); !started) return tl::unexpected<Error>(started.error());
  return worker;
}

Worker::Worker(fabric::Host& host, const Config& config, const Limits& limits, memory::SystemMemory* system)
    : host_(host),
      reactor_(host.reactor()),
      device_(host.device()),
      config_(config),
      limits_(limits),
      device_waker_(reactor_),
      dump_requests_(&kNobodyAsks),
      system_memory_(system != nullptr ? *system : linux_memory_),
      gathers_(static_cast<std::uint32_t>(config.calls_max + config.requests_max)),
      deadlines_(reactor_, Duration(static_cast<std::int64_t>(config.call_deadline))),
      calls_(static_cast<std::uint32_t>(config.calls_max)),
      answers_(static_cast<std::uint32_t>(config.requests_max)),
      in_transfers_(static_cast<std::uint32_t>(config.transfers_max)),
      out_transfers_(2 * static_cast<std::uint32_t>(config.transfers_max)),
      in_streams_(static_cast<std::uint32_t>(config.streams_max)),
      out_streams_(static_cast<std::uint32_t>(config.streams_max)),
      nic_window_(limits.window_nic_low, limits.window_nic_high),
      budget_({.budget = limits.window_receiver, .share_min = limits.share_min}),
      control_in_(limits.adaptive ? core::WindowControl(adaptive_window(config, limits.window_receiver))
                                  : core::WindowControl(limits.window_receiver)),
      deferred_requests_(limits.slots_max),
      deferred_responses_(limits.slots_max),
      peer_of_qp_(static_cast<std::uint32_t>(config.peers_max) * limits.lanes_max),
      slot_owners_(limits.slots_max) {
  starved_peers_.reserve(config.peers_max);
}

Result<> Worker::start_queues() {
  auto cq = device_.create_cq({.depth = limits_.cq_depth, .waker = &reactor_.waker()});
  if (!cq) return tl::unexpected<Error>(cq.error());
  cq_ = std::move(*cq);
  auto receives = ReceivePool::create(device_, *arena_,
                                      {.slots_max = limits_.slots_max,
                                       .slot_bytes = limits_.slot_bytes,
                                       .spare = static_cast<std::uint32_t>(config_.receive_spare),
                                       .lend_percent = static_cast<std::uint32_t>(config_.lend_percent)});
  if (!receives) return tl::unexpected<Error>(receives.error());
  receives_ = std::move(*receives);
  if (auto shared = start_shares(); !shared) return shared;
  // Another for each name, and for each start at a name.
  Prng instance =
      Prng(static_cast<std::uint64_t>(reactor_.now().time_since_epoch().count())).fork(host_.name());
  instance_ = static_cast<std::uint32_t>(instance.below(0xffff'ffff)) + 1;
  device_.set_event_waker(&device_waker_);
  reactor_.attach(this);
  return {};
}

Worker::~Worker() {
  close();
  if (arena_ != nullptr) arena_->set_listener(nullptr);
  tasks_.destroy_all();
  while (CallOp* op = completed_.pop_front()) {  // nobody will tell it, and its answer's memory goes
    op->result_ = fail(ErrorCode::closed, ErrorScope::session, "the worker is gone");
  }
  connected_.clear();
  resumed_.clear();
  short_of_calls_.clear();
  draining_waiters_.clear();
  services_.clear();
  handshakes_.clear();
  reactor_.attach(nullptr);
  device_.set_event_waker(nullptr);
  active_.clear();
  puts_.clear();
  starved_.clear();
  if (receives_ != nullptr) receives_->set_listener(nullptr);
  for (auto& peer : peers_) {
    if (peer == nullptr) continue;
    peer->done.clear();
    peer->asking.clear();
    peer->DirtyHook::unlink();
    peer->TransferHook::unlink();
    leave_windows(*peer);
    if (shares_ != nullptr) close_share(*peer);
    for (PeerLane& each : peer->lanes)
      each.lane.reset();  // the device touches nothing of it any more, so what it held may be freed
  }
  in_transfers_.for_each([&](core::SlotHandle handle, InTransfer&) { in_transfers_.erase(handle); });
  out_transfers_.for_each([&](core::SlotHandle handle, OutTransfer&) { out_transfers_.erase(handle); });
  peers_.clear();
}

fabric::TurnResult Worker::turn(Instant now) noexcept {
  in_turn_ = true;
  now_ = now;
  work_ = {};
  ++stats_.turns;
  if (dump_requests_->load(std::memory_order_relaxed) != dumps_seen_) [[unlikely]]
    dump_as_asked();
  bool more = poll();
  const bool drained = !more;
  if (device_waker_.rung) poll_device_events();
  const bool waiting = !deferred_requests_.empty() || !deferred_responses_.empty();
  if (waiting) {
    retry_deferred(wire::MessageKind::response, deferred_responses_);
    retry_deferred(wire::MessageKind::request, deferred_requests_);
  }
  resume_application();
  if (memory_freed_) retry_starved();
  if (!active_.empty()) pump_transfers();
  if (!asked_.empty()) pump_shares();
  if (!puts_.empty()) pump_puts();
  flush_dirty();
  if (awaiting_ready_) [[unlikely]]
    tell_ready();
  if (!short_of_calls_.empty()) [[unlikely]]
    ask_again();
  if (draining_) [[unlikely]]
    step_drain();
  if (untidy_ && reap(drained)) more = true;
  // Sending may have made room for what waits, and nothing else may ever come to say so.
  more = more || memory_freed_ || (waiting && deferred_ready());
  more = more || !completed_.empty() || !connected_.empty() || !resumed_.empty() || tasks_.ready() ||
         !dirty_.empty();
  deadlines_.rest();
  lent_peak_ = std::max(lent_peak_, receives_->lent());
  if (pressure_watched_) [[unlikely]]
    tell_pressure();
  if (!more) more = cq_->arm() == fabric::ArmResult::pending;
  in_turn_ = false;
  return {more, work_};
}

void Worker::poll_device_events() noexcept {
  device_waker_.rung = false;
  for (std::size_t count; (count = device_.poll_events(events_)) > 0;) {
    for (std::size_t i = 0; i < count; ++i) {
      const fabric::DeviceEvent event = events_[i];
      if (event.kind == fabric::DeviceEventKind::qp_fatal) {
        if (Peer* peer = peer_of_qp_.find(fabric::QpNum{event.id})) {
          fail_peer(*peer, {ErrorCode::device, ErrorScope::session, 0, "the lane's queue pair failed"});
        }
      } else if (event.kind == fabric::DeviceEventKind::cq_overrun ||
                 event.kind == fabric::DeviceEventKind::device_fatal) {
        for (auto& peer : peers_) {
          if (peer != nullptr)
            fail_peer(*peer, {ErrorCode::device, ErrorScope::device, 0, "the device failed"});
        }
      }
      // A port that went down or came back is not a failure: a path that recovers within the retries is never
      // given up.
    }
  }
}

void Worker::resume_application() noexcept {
  if (tasks_.ready()) work_.handlers += tasks_.resume_ready();
  // What these complete in turn is left for the next turn, so that one turn ends.
  if (!completed_.empty()) complete_ops();
  if (!resumed_.empty()) [[unlikely]]
    resume_waiters();
  if (connected_.empty()) return;
  IntrusiveList<ConnectAwaiter> sessions;
  sessions.splice_back(connected_);
  while (ConnectAwaiter* awaiter = sessions.pop_front()) {
    ++work_.handlers;
    awaiter->awaiting_.resume();
  }
}

void Worker::complete_ops() noexcept {
  IntrusiveList<CallOp> batch;
  batch.splice_back(completed_);
  while (CallOp* op = batch.pop_front()) {
    ++work_.handlers;
    op->on_complete();
  }
}

void Worker::spawn(Task<> task) {
  tasks_.spawn(frames_, std::move(task));
  wake();
}

void Worker::start(std::coroutine_handle<> task) {
  tasks_.start(task);
  wake();
}

WorkerGauges Worker::gauges() const noexcept {
  WorkerGauges gauges;
  gauges.bytes_in_flight_in = budget_.outstanding();
  gauges.bytes_received = departed_.stats.bytes_received;
  gauges.calls_outstanding = calls_.size();
  gauges.leases = receives_->lent();
  gauges.memory_pressure = pressure();
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    gauges.bytes_in_flight_out += peer->window_out.in_flight();
    gauges.credits_available += peer->credits.available();
    gauges.messages_queued += peer->queued;
    gauges.bytes_received += peer->stats.bytes_received;
  }
  return gauges;
}

bool Worker::idle() const noexcept {
  if (!calls_.empty() || serving_ > 0 || !in_transfers_.empty() || !out_transfers_.empty() ||
      !deferred_requests_.empty() || !deferred_responses_.empty() || !out_streams_.empty()) {
    return false;
  }
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& peer) { return peer == nullptr || peer->quiet(); });
}

void Worker::check_invariants() const {
  std::uint32_t promised = 0;
  std::uint32_t owed = 0;
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    // What all share is counted below.
    const std::uint32_t shared = shares_ != nullptr ? receive_share_[peer->index].promised() : 0;
    if (peer->state == PeerState::failed) {
      promised += peer->receives - shared;
      continue;
    }
    promised += peer->issuer.posted() - shared + core::kControlSlots;
    owed += peer->reposts_owed;
    BX_CHECK(peer->reposts_owed ==
                 (shares_ != nullptr ? receive_share_[peer->index].held() : peer->issuer.unposted()),
             "receives_owed");
    peer->issuer.check_invariants();
  }
  if (shares_ != nullptr) {
    shares_->check_invariants();
    promised += shares_->promised() + shares_->free();
    owed = limits_.pool - shares_->promised() - shares_->free();  // to those that are gone too
  }
  BX_CHECK(surplus_ >= 0 && promised + static_cast<std::uint32_t>(surplus_) == receives_->posted(),
           "receives_promised");
  BX_CHECK(owed == receives_owed_, "receives_owed");
  BX_CHECK(out_requests_ + out_responses_ == out_transfers_.size() &&
               std::max(out_requests_, out_responses_) <= config_.transfers_max,
           "transfers_counted");
  budget_.check_invariants();
  nic_window_.check_invariants();
  arena_->check_invariants();
  user_memory_->check_invariants();
}

}  // namespace bx::engine
