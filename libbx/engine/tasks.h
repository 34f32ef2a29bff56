// SPDX-License-Identifier: BSD-3-Clause
// The coroutines of a worker that nobody awaits: started in a turn, destroyed when they end or with the
// worker.
#pragma once

#include <bx/task.h>

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "libbx/base/intrusive_list.h"

namespace bx::engine {

class Tasks {
 public:
  Tasks() = default;
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;
  ~Tasks() { destroy_all(); }

  void spawn(FramePool& frames, Task<> task) { ready_.push_back(run(frames, *this, std::move(task)).handle); }
  void start(std::coroutine_handle<> task) { ready_.push_back(task); }
  [[nodiscard]] bool ready() const noexcept { return !ready_.empty(); }
  // Starts what was spawned so far; returns how many. What these spawn in turn waits for the next call.
  std::uint32_t resume_ready() {
    const std::size_t count = ready_.size();
    for (std::size_t i = 0; i < count && i < ready_.size(); ++i) {
      const std::coroutine_handle<> task = ready_[i];  // by value: ready_ may grow under it
      task.resume();
    }
    ready_.erase(ready_.begin(),
                 ready_.begin() + static_cast<std::ptrdiff_t>(std::min(count, ready_.size())));
    return static_cast<std::uint32_t>(count);
  }
  void destroy_all() noexcept {
    ready_.clear();
    while (Promise* promise = live_.pop_front())
      std::coroutine_handle<Promise>::from_promise(*promise).destroy();
  }

 private:
  struct Promise;
  struct Runner {
    using promise_type = Promise;
    std::coroutine_handle<> handle;
  };
  struct Promise : ListHook<>, detail::PromiseBase {
    Promise(FramePool& /*frames*/, Tasks& tasks, Task<>& /*task*/) noexcept { tasks.live_.push_back(*this); }
    ~Promise() { unlink(); }
    // Frames come from the worker's pool.
    static void* operator new(std::size_t size, FramePool& frames, Tasks& /*tasks*/, Task<>& /*task*/) {
      return FramePool::allocate(&frames, size);
    }
    static void operator delete(void* frame, std::size_t size) noexcept {
      FramePool::deallocate(frame, size);
    }
    Runner get_return_object() noexcept { return {std::coroutine_handle<Promise>::from_promise(*this)}; }
    std::suspend_never final_suspend() noexcept { return {}; }  // destroys itself
    void return_void() noexcept {}
  };
  static Runner run(FramePool& /*frames*/, Tasks& /*tasks*/, Task<> task) { co_await task; }

  std::vector<std::coroutine_handle<>> ready_;
  IntrusiveList<Promise> live_;
};

}  // namespace bx::engine
