// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/engine.h"

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "sim/model/engine_stock.h"
#include "sim/model/fast_simulator.h"

namespace bx::sim {
namespace {

// ns-3 converts every Time that exists when the resolution is set and crashes later if it is set again.
void set_resolution_once() {
  static const bool done = [] {
    ns3::Time::SetResolution(ns3::Time::PS);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

Engine::Engine(EngineKind kind) : kind_(kind) {
  set_resolution_once();
  if (kind == EngineKind::stock) {
    stock_ = std::make_unique<Stock>();
    return;
  }
  const auto impl = ns3::CreateObject<FastSimulatorImpl>();
  loop_ = &impl->loop();
  ns3::Simulator::SetImplementation(impl);
}

Engine::Engine(Beside /*beside*/)
    : kind_(EngineKind::fast), loop_(nullptr), own_(std::make_unique<EventLoop>()) {
  loop_ = own_.get();
}

Engine::~Engine() {
  if (own_ != nullptr) return;
  if (stock_ != nullptr) stock_->lift_limit();
  ns3::Simulator::Destroy();
}

bool Engine::run(Picoseconds limit) {
  return loop_ != nullptr ? loop_->run(limit.count()) : stock_->run(limit);
}

void Engine::stop() noexcept {
  if (loop_ != nullptr) {
    loop_->stop();
  } else {
    stock_->stop();
  }
}

std::uint64_t Engine::events() const noexcept {
  return loop_ != nullptr ? loop_->executed() : ns3::Simulator::GetEventCount();
}

Picoseconds Engine::next_event() const noexcept {
  const std::uint64_t time = loop_->wheel().first_time();
  return time == UINT64_MAX ? Picoseconds::max() : Picoseconds{static_cast<std::int64_t>(time)};
}

Picoseconds Engine::stock_now() const noexcept {
  return Picoseconds{ns3::Simulator::Now().GetTimeStep()};
}

void Engine::stock_post(Picoseconds delay, EventFn fn, void* object, void* argument) {
  stock_->post(delay, fn, object, argument);
}

}  // namespace bx::sim
