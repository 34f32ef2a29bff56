// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/alarm.h"

#include <algorithm>

#include "libbx/base/check.h"

namespace bx::virtual_time {

struct Alarm::Core {
  // Times of pending events that are remembered, latest first. An event beyond these is posted all the same
  // and only fires without effect.
  static constexpr std::size_t kRemembered = 8;

  AlarmPool* pool = nullptr;
  Core* next_free = nullptr;
  Fn fn = nullptr;
  void* object = nullptr;  // null once the alarm is gone
  Instant due = kNever;
  std::uint32_t events = 0;  // pending in the loop
  std::uint32_t remembered = 0;
  std::array<Instant, kRemembered> times{};

  // Forgets the remembered events that have fired.
  void forget(Instant now) noexcept {
    while (remembered > 0 && times[remembered - 1] <= now) --remembered;
  }
  void post_if_needed(Instant now) {
    if (remembered > 0 && times[remembered - 1] <= due) return;
    if (remembered == kRemembered) {
      std::copy(times.begin() + 1, times.end(), times.begin());
      --remembered;
    }
    times[remembered++] = due;
    ++events;
    pool->loop().post(due - now, &AlarmPool::on_event, this, nullptr);
  }
};

Alarm::Alarm(AlarmPool& pool, Fn fn, void* object) : core_(pool.take()) {
  core_->fn = fn;
  core_->object = object;
}

Alarm::~Alarm() {
  core_->object = nullptr;
  core_->due = kNever;
  if (core_->events == 0) core_->pool->release(*core_);
}

void Alarm::arm(Instant when) {
  const Instant now = core_->pool->loop().now();
  core_->due = std::max(when, now);
  if (when == kNever) return cancel();
  core_->post_if_needed(now);
}

void Alarm::cancel() noexcept {
  core_->due = kNever;
}

bool Alarm::armed() const noexcept {
  return core_->due != kNever;
}

Instant Alarm::when() const noexcept {
  return core_->due;
}

AlarmPool::AlarmPool(EventLoop& loop) : loop_(loop) {}

AlarmPool::~AlarmPool() {
  for (const auto& core : cores_) BX_CHECK(core->object == nullptr, "an alarm outlived its pool");
}

Alarm::Core* AlarmPool::take() {
  if (free_ == nullptr) {
    cores_.push_back(std::make_unique<Alarm::Core>());
    cores_.back()->pool = this;
    free_ = cores_.back().get();
  }
  Alarm::Core* core = free_;
  free_ = core->next_free;
  core->next_free = nullptr;
  return core;
}

void AlarmPool::release(Alarm::Core& core) noexcept {
  core.remembered = 0;
  core.next_free = free_;
  free_ = &core;
}

void AlarmPool::on_event(void* opaque, void*) {
  auto& core = *static_cast<Alarm::Core*>(opaque);
  AlarmPool& pool = *core.pool;
  const Instant now = pool.loop_.now();
  --core.events;
  core.forget(now);
  if (core.object == nullptr) {
    if (core.events == 0) pool.release(core);
    return;
  }
  if (core.due > now) {
    if (core.due != kNever) core.post_if_needed(now);
    return;
  }
  core.due = kNever;
  core.fn(core.object);  // may destroy the alarm: `core` is not touched afterwards
}

}  // namespace bx::virtual_time
