// SPDX-License-Identifier: BSD-3-Clause
// Memory of the application's own that is registered with the device, so that calls send from it and answers
// can be made in it without a copy; and how the application hears that it holds too much of the library's.
//
//   auto table = worker.register_memory(bytes);
//   session.start_call(table->buffer(offset, length), op);
//   ...
//   co_await table->idle();   // no NIC touches it any more: it may be freed
//
// The pages that hold the memory are registered whole, so peers that are handed a key of it could reach the
// rest of its first and last page: align what must not be reached.
#pragma once

#include <bx/buffer.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "libbx/base/intrusive_list.h"

namespace bx {

namespace memory {
class RegistrationCache;
struct UserRegion;
}  // namespace memory

// co_await memory.idle()
class [[nodiscard]] MemoryIdleAwaiter : public ListHook<> {
 public:
  explicit MemoryIdleAwaiter(memory::UserRegion* region) noexcept : region_(region) {}
  bool await_ready() const noexcept;
  void await_suspend(std::coroutine_handle<> awaiting) noexcept;
  void await_resume() const noexcept {}
  ~MemoryIdleAwaiter() { unlink(); }  // no longer waits
  MemoryIdleAwaiter(const MemoryIdleAwaiter&) = delete;
  MemoryIdleAwaiter& operator=(const MemoryIdleAwaiter&) = delete;

 private:
  friend class memory::RegistrationCache;
  memory::UserRegion* region_;
  std::coroutine_handle<> awaiting_;
};

// A handle to a registration. The registration lasts while a handle or a Buffer of it is left, those that the
// library still sends from included; then it ends, or is cached if it was made under a generation. Must not
// outlive its worker.
class UserMemory {
 public:
  UserMemory() = default;
  UserMemory(UserMemory&& other) noexcept
      : region_(std::exchange(other.region_, nullptr)), bytes_(other.bytes_) {}
  UserMemory& operator=(UserMemory&& other) noexcept {
    if (this == &other) return *this;
    reset();
    region_ = std::exchange(other.region_, nullptr);
    bytes_ = other.bytes_;
    return *this;
  }
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;
  ~UserMemory() { reset(); }

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  // A Buffer over part of it, O(1); what lies outside is a programming error. Several may overlap: that
  // nobody writes to what is being sent is up to the application.
  [[nodiscard]] Buffer buffer(std::size_t offset, std::size_t size) noexcept;
  [[nodiscard]] Buffer buffer() noexcept { return buffer(0, bytes_.size()); }
  // True while a Buffer of the registration is left: the NIC may touch the memory.
  [[nodiscard]] bool in_use() const noexcept;
  // Waits until none is left.
  [[nodiscard]] MemoryIdleAwaiter idle() noexcept { return MemoryIdleAwaiter(region_); }
  void reset() noexcept;

  // For the engine.
  UserMemory(memory::UserRegion& region, std::span<std::byte> bytes) noexcept
      : region_(&region), bytes_(bytes) {}

 private:
  memory::UserRegion* region_ = nullptr;
  std::span<std::byte> bytes_;
};

// How near the worker is to where received payloads are copied out and incoming ones wait.
enum class MemoryPressure : std::uint8_t {
  none,
  high,  // as many receive slots are kept as credits.lend_percent allows, or an incoming payload waits for
         // memory
};

// Told at the end of the turn in which it changed. To let go of received Buffers is what helps.
class PressureListener {
 public:
  virtual void on_memory_pressure(MemoryPressure pressure) noexcept = 0;

 protected:
  ~PressureListener() = default;
};

}  // namespace bx
