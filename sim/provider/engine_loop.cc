// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/engine_loop.h"

#include <algorithm>

namespace bx::sim {
namespace {

constexpr std::int64_t kPsPerNs = 1000;

// Instants past what picoseconds can say (106 days) are never reached.
Picoseconds picoseconds(Instant instant) noexcept {
  const std::int64_t ns = instant.time_since_epoch().count();
  return ns > Picoseconds::max().count() / kPsPerNs ? Picoseconds::max() : Picoseconds{ns * kPsPerNs};
}

}  // namespace

Instant EngineLoop::now() const noexcept {
  return Instant{Duration{engine_.now().count() / kPsPerNs}};
}

void EngineLoop::post(Duration delay, EventFn fn, void* object, void* argument) {
  const Picoseconds due = picoseconds(now() + delay);
  engine_.post(std::max(due - engine_.now(), Picoseconds{0}), fn, object, argument);
}

fabric::RunEnd EngineLoop::run(Instant limit) {
  running_ = true;
  stopped_ = false;
  const bool idle = engine_.run(picoseconds(limit));
  running_ = false;
  if (stopped_) return fabric::RunEnd::stopped;
  return idle ? fabric::RunEnd::idle : fabric::RunEnd::limit;
}

void EngineLoop::stop() noexcept {
  if (!running_) return;
  stopped_ = true;
  engine_.stop();
}

}  // namespace bx::sim
