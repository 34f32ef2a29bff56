// SPDX-License-Identifier: BSD-3-Clause
// Task<T>: a lazily started coroutine that is awaited once. Applications are written as coroutines because
// the same code must run under virtual time. A coroutine takes values or references that outlive it, never a
// capturing lambda.
//
// Frames: a coroutine whose first parameter (after `this`) offers frame_pool() takes its frame from that pool
// and so allocates nothing once the pool has grown to its working size; any other uses operator new.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "libbx/base/check.h"
#include "libbx/base/frame_pool.h"

namespace bx {

template <class T = void>
class [[nodiscard]] Task;

namespace detail {

template <class A>
concept HasFramePool = requires(A& a) {
  { a.frame_pool() } -> std::same_as<FramePool&>;
};

// The pool of the first argument that has one, or null.
inline FramePool* find_frame_pool() noexcept {
  return nullptr;
}
template <class First, class... Rest>
FramePool* find_frame_pool(First& first, Rest&... rest) noexcept {
  if constexpr (HasFramePool<First>) {
    return &first.frame_pool();
  } else {
    return find_frame_pool(rest...);
  }
}

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();

  // Always inlined: GCC 12 takes a template and a plain function for a mismatched pair, and would warn in
  // every coroutine of an unoptimised build.
  template <class... Args>
  [[gnu::always_inline]] static void* operator new(std::size_t size, Args&... args) {
    return FramePool::allocate(find_frame_pool(args...), size);
  }
  [[gnu::always_inline]] static void operator delete(void* frame, std::size_t size) noexcept {
    FramePool::deallocate(frame, size);
  }

  std::suspend_always initial_suspend() noexcept { return {}; }
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
      return self.promise().continuation;
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
  [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }  // the library does not throw
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object() noexcept;
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() noexcept {}
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    Task(std::move(other)).swap(*this);
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }
  void swap(Task& other) noexcept { std::swap(handle_, other.handle_); }

  [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(handle_); }
  [[nodiscard]] bool done() const noexcept { return handle_ && handle_.done(); }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    BX_CHECK(handle_, "an empty task was awaited");
    handle_.promise().continuation = awaiting;
    return handle_;
  }
  T await_resume() { return handle_.promise().take(); }
  // For schedulers: the coroutine, to be resumed once from outside.
  [[nodiscard]] std::coroutine_handle<> handle() const noexcept { return handle_; }

 private:
  Handle handle_{};
};

namespace detail {
template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}
}  // namespace detail

}  // namespace bx
