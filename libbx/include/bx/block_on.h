// SPDX-License-Identifier: BSD-3-Clause
// From main into the world of coroutines and back: runs the worker's reactor until the task is done.
#pragma once

#include <bx/task.h>
#include <bx/worker.h>

#include <optional>
#include <type_traits>
#include <utility>

namespace bx {

namespace detail {

template <class T>
Task<> finish_and_stop(Task<T>& task, fabric::Reactor& reactor, std::optional<T>& out) {
  out.emplace(co_await task);
  reactor.stop();
}

inline Task<> finish_and_stop(Task<>& task, fabric::Reactor& reactor, bool& out) {
  co_await task;
  out = true;
  reactor.stop();
}

}  // namespace detail

// Runs until `task` is done or the reactor's time reaches `limit`. Returns what the task returned (true for a
// task without a value); deadline_exceeded at the limit; cancelled when the virtual world ran dry with the
// task unfinished (a task that waits for something that nothing will ever do).
template <class T>
auto block_on(Worker worker, Task<T> task, Instant limit = kNever)
    -> Result<std::conditional_t<std::is_void_v<T>, bool, T>> {
  using Value = std::conditional_t<std::is_void_v<T>, bool, T>;
  std::conditional_t<std::is_void_v<T>, bool, std::optional<T>> out{};
  Task<> outer = detail::finish_and_stop(task, worker.reactor(), out);
  worker.start(outer);
  const fabric::RunEnd end = worker.reactor().run(limit);
  if (out) {
    if constexpr (std::is_void_v<T>) {
      return true;
    } else {
      return Result<Value>(std::move(*out));
    }
  }
  return end == fabric::RunEnd::limit
             ? Result<Value>(
                   fail(ErrorCode::deadline_exceeded, ErrorScope::operation, "block_on reached its limit"))
             : Result<Value>(fail(ErrorCode::cancelled, ErrorScope::operation,
                                  "nothing is left that could finish the task"));
}

}  // namespace bx
