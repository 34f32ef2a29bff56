// SPDX-License-Identifier: BSD-3-Clause
// The loopback provider's clock: a binary heap of events ordered by (time, order of posting).
#pragma once

#include <cstdint>
#include <vector>

#include "libbx/providers/virtual/event_loop.h"

namespace bx::loopback {

class HeapLoop final : public virtual_time::EventLoop {
 public:
  [[nodiscard]] Instant now() const noexcept override { return now_; }
  void post(Duration delay, EventFn fn, void* object, void* argument) override;
  fabric::RunEnd run(Instant limit) override;
  void stop() noexcept override { stopped_ = true; }

  // Makes room for `events` more pending events, so that posting them later allocates nothing.
  void reserve_more(std::size_t events);
  [[nodiscard]] std::uint64_t executed() const noexcept { return executed_; }
  [[nodiscard]] std::size_t pending() const noexcept { return heap_.size(); }

 private:
  struct Event {
    Instant time{};
    std::uint64_t order = 0;
    EventFn fn = nullptr;
    void* object = nullptr;
    void* argument = nullptr;
  };
  static bool later(const Event& a, const Event& b) noexcept;

  std::vector<Event> heap_;
  std::size_t reserved_ = 0;
  Instant now_{};
  std::uint64_t order_ = 0;
  std::uint64_t executed_ = 0;
  bool running_ = false;
  bool stopped_ = false;
};

}  // namespace bx::loopback
