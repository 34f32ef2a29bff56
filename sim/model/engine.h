// SPDX-License-Identifier: GPL-2.0-only
// The model's view of the process's ns-3 simulator: a clock and allocation-free events. On our own simulator
// implementation (FastSimulatorImpl) an event costs no allocation and no virtual call; on the stock one it
// goes through ns3::Simulator::Schedule. Both order events by (time, order of scheduling) and so give the
// same run.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/model/event_loop.h"
#include "sim/model/units.h"

namespace bx::sim {

enum class EngineKind : std::uint8_t { fast, stock };

class Engine {
 public:
  // Installs the simulator implementation. ns-3 is a process singleton: one Engine at a time; destroying it
  // destroys the ns-3 simulator so that another may follow. The first one sets ns-3's time resolution to
  // picoseconds, for the rest of the process.
  explicit Engine(EngineKind kind);
  // One of the fast kind that ns-3 knows nothing of, beside the one that it does; see partitions.h.
  struct Beside {};
  explicit Engine(Beside beside);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] EngineKind kind() const noexcept { return kind_; }
  [[nodiscard]] Picoseconds now() const noexcept {
    return loop_ != nullptr ? Picoseconds{loop_->now()} : stock_now();
  }
  // Where the time stands, in picoseconds, for those who look often; null on the stock engine.
  [[nodiscard]] const std::int64_t* clock() const noexcept {
    return loop_ != nullptr ? loop_->clock() : nullptr;
  }
  void post(Picoseconds delay, EventFn fn, void* object, void* argument = nullptr) {
    if (loop_ != nullptr) {
      loop_->post(delay.count(), fn, object, argument);
    } else {
      stock_post(delay, fn, object, argument);
    }
  }
  // Runs events until none is left, stop() is called or the next event lies past `limit` (the clock then
  // stands at `limit`); those at `limit` itself run. Returns true when it ended because nothing is left.
  bool run(Picoseconds limit);
  void stop() noexcept;
  [[nodiscard]] std::uint64_t events() const noexcept;  // executed so far
  // Of the fast kind only: the time of the first event that is pending, Picoseconds::max() if none is;
  // whether the last run ended by stop(); and to let time pass in which nothing is pending.
  [[nodiscard]] Picoseconds next_event() const noexcept;
  [[nodiscard]] bool stopped() const noexcept { return loop_->stopped(); }
  void advance_to(Picoseconds time) noexcept { loop_->advance_to(time.count()); }
  // See timing_wheel.h; the stock engine announces nothing.
  void announce_to(ApproachFn fn) noexcept {
    if (loop_ != nullptr) loop_->wheel().announce_to(fn);
  }

 private:
  class Stock;
  [[nodiscard]] Picoseconds stock_now() const noexcept;
  void stock_post(Picoseconds delay, EventFn fn, void* object, void* argument);

  EngineKind kind_;
  EventLoop* loop_ = nullptr;  // of the FastSimulatorImpl, which ns-3 owns, or own_; null for stock
  std::unique_ptr<EventLoop> own_;
  std::unique_ptr<Stock> stock_;
};

}  // namespace bx::sim
