// SPDX-License-Identifier: GPL-2.0-only
// The engine behind the interface that reactors and streams of virtual-time providers run on. The engine
// counts picoseconds and the loop nanoseconds: now() rounds down, and what is posted for an instant runs at
// exactly that nanosecond, not a fraction after it.
#pragma once

#include "libbx/providers/virtual/event_loop.h"
#include "sim/model/engine.h"

namespace bx::sim {

class EngineLoop final : public virtual_time::EventLoop {
 public:
  explicit EngineLoop(Engine& engine) noexcept : engine_(engine) {}

  [[nodiscard]] Instant now() const noexcept override;
  void post(Duration delay, EventFn fn, void* object, void* argument) override;
  fabric::RunEnd run(Instant limit) override;
  void stop() noexcept override;

 private:
  Engine& engine_;
  bool running_ = false;
  bool stopped_ = false;
};

}  // namespace bx::sim
