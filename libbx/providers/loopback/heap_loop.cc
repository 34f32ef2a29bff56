// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/heap_loop.h"

#include <algorithm>

#include "libbx/base/check.h"

namespace bx::loopback {

void HeapLoop::post(Duration delay, EventFn fn, void* object, void* argument) {
  BX_CHECK(delay >= Duration{0}, "an event cannot be posted into the past");
  heap_.push_back({now_ + delay, order_++, fn, object, argument});
  std::push_heap(heap_.begin(), heap_.end(), &HeapLoop::later);
}

fabric::RunEnd HeapLoop::run(Instant limit) {
  BX_CHECK(!running_, "run() was called from inside an event");
  running_ = true;
  stopped_ = false;
  fabric::RunEnd end = fabric::RunEnd::idle;
  while (!heap_.empty()) {
    if (heap_.front().time > limit) {
      now_ = std::max(now_, limit);
      end = fabric::RunEnd::limit;
      break;
    }
    std::pop_heap(heap_.begin(), heap_.end(), &HeapLoop::later);
    const Event event = heap_.back();
    heap_.pop_back();
    now_ = event.time;
    ++executed_;
    event.fn(event.object, event.argument);
    if (stopped_) {
      end = fabric::RunEnd::stopped;
      break;
    }
  }
  running_ = false;
  return end;
}

void HeapLoop::reserve_more(std::size_t events) {
  reserved_ += events;
  if (heap_.capacity() < reserved_) heap_.reserve(std::max(reserved_, 2 * heap_.capacity()));
}

bool HeapLoop::later(const Event& a, const Event& b) noexcept {
  return a.time != b.time ? a.time > b.time : a.order > b.order;
}

}  // namespace bx::loopback
