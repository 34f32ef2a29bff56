// SPDX-License-Identifier: BSD-3-Clause
// What a worker does about memory: checks it before the start, makes it, and tells of it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "libbx/engine/worker.h"

namespace bx::engine {

Findings Worker::preflight(fabric::Host& host, const Config& config, memory::SystemMemory* system) {
  memory::LinuxMemory linux_memory;
  const fabric::DeviceCaps& caps = host.device().caps();
  const auto limits = derive_limits(config, caps);
  const auto refusal = [](const Error& error) {
    return Findings{{Finding::Severity::error, error, error.detail}};
  };
  if (!limits) return refusal(limits.error());
  const auto plan = memory::plan_memory(config, limits->receive_memory_min, caps);
  if (!plan) return refusal(plan.error());
  return memory::check_limits(*plan, caps, system != nullptr ? *system : linux_memory);
}

Result<> Worker::start_memory() {
  const fabric::DeviceCaps& caps = device_.caps();
  const auto plan = memory::plan_memory(config_, limits_.receive_memory_min, caps);
  if (!plan) return tl::unexpected<Error>(plan.error());
  findings_ = memory::check_limits(*plan, caps, system_memory_);
  if (!findings_.empty() && findings_.front().severity == Finding::Severity::error) {
    return tl::unexpected<Error>(findings_.front().error);
  }
  auto arena = memory::Arena::create(device_, system_memory_, plan->arena);
  if (!arena) return tl::unexpected<Error>(arena.error());
  arena_ = std::move(*arena);
  if (arena_->remedy() != nullptr) findings_.push_back({Finding::Severity::warning, {}, arena_->remedy()});
  // What the limit of locked memory leaves beside the arena.
  const std::uint64_t lockable = caps.pins_memory ? system_memory_.lockable_bytes() : memory::kUnlimited;
  user_memory_ = std::make_unique<memory::RegistrationCache>(
      device_, *this,
      memory::RegistrationCache::Limits{
          .bytes_max = std::min(plan->user_bytes, lockable - arena_->capacity()),
          .regions_max = plan->user_regions,
          .page_bytes = system_memory_.page_bytes()});
  return {};
}

void Worker::report_memory(MetricSink& sink) const {
  const auto bytes = [&](std::string_view name, std::uint64_t value) {
    sink.level(name, static_cast<double>(value), "bytes");
  };
  const auto number = [&](std::string_view name, std::uint64_t value) {
    sink.level(name, static_cast<double>(value), "count");
  };
  const auto count = [&](std::string_view name, std::uint64_t value) {
    sink.metric(name, static_cast<double>(value), "count");
  };
  const memory::SideUsage send = arena_->usage(memory::Side::send);
  const memory::SideUsage receive = arena_->usage(memory::Side::receive);
  const memory::RegistrationCache::Counters& user = user_memory_->counters();
  bytes("memory.arena_in_use", send.bytes + receive.bytes);
  bytes("memory.arena_peak", arena_->bytes_in_use_peak());
  bytes("memory.send_in_use", send.bytes);
  bytes("memory.send_peak", send.bytes_peak);
  bytes("memory.send_quota", send.quota);
  number("memory.send_buffers", send.buffers);
  count("memory.send_failures", send.failures);
  bytes("memory.receive_in_use", receive.bytes);
  bytes("memory.receive_peak", receive.bytes_peak);
  bytes("memory.receive_quota", receive.quota);
  number("memory.receive_buffers", receive.buffers);
  count("memory.receive_failures", receive.failures);
  count("memory.reclaims", arena_->reclaims());
  number("memory.page_kind", static_cast<std::uint64_t>(arena_->page_kind()));
  number("memory.leases", receives_->lent());
  number("memory.leases_peak", lent_peak_);
  bytes("memory.leases_bytes", receives_->lent_bytes());
  bytes("memory.user_in_use", user.bytes);
  bytes("memory.user_peak", user.bytes_peak);
  number("memory.user_regions", user.regions);
  count("memory.user_hits", user.hits);
  count("memory.user_misses", user.misses);
  count("memory.user_evictions", user.evictions);
  count("memory.user_stale", user.stale);
  count("memory.user_failures", user.failures);
}

Result<Buffer> Worker::copy_in(std::span<const std::byte> bytes) noexcept {
  auto buffer = arena_->allocate(bytes.size());
  if (!buffer || bytes.empty()) return buffer;
  std::memcpy(buffer->data(), bytes.data(), bytes.size());
  ++stats_.copied_in;
  work_.bytes_copied += bytes.size();
  return buffer;
}

MemoryPressure Worker::pressure() const noexcept {
  return receives_->at_mark() || !starved_.empty() ? MemoryPressure::high : MemoryPressure::none;
}

void Worker::tell_pressure() noexcept {
  const MemoryPressure now = pressure();
  pressure_watched_ = now == MemoryPressure::high;
  if (now == pressure_told_) return;
  pressure_told_ = now;
  if (pressure_told_ == MemoryPressure::high) ++stats_.pressure;
  if (pressure_listener_ != nullptr) pressure_listener_->on_memory_pressure(pressure_told_);
}

}  // namespace bx::engine
