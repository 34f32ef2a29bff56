// SPDX-License-Identifier: BSD-3-Clause
// Registrations of the application's own memory: those in use, and, up to a limit, those that may be wanted
// again. A cached one is found by address, length and generation together. The generation is the word of
// whoever owns the memory, and changes when the memory is given back or mapped anew; so what was registered
// at an address before is never taken for what lies there now. Without a generation nothing is cached.
//
// Invariants: a registration with handles or Buffers is never ended; user_bytes_counted.
#pragma once

#include <bx/buffer.h>
#include <bx/memory.h>

#include <coroutine>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>

#include "libbx/base/intrusive_list.h"
#include "libbx/base/result.h"
#include "libbx/fabric/device.h"

namespace bx::memory {

// One registration: the Block of every Buffer made of it.
struct UserRegion : engine::Block, ListHook<> {
  RegistrationCache* cache = nullptr;
  std::uint64_t generation = 0;  // 0: not to be cached
  std::uint32_t handles = 0;
  std::uint32_t buffers = 0;
  std::span<std::byte> pages;                          // that hold the bytes: what is registered
  bool forgotten = false;                              // its memory is somebody else's soon, or already
  std::unique_ptr<fabric::MemoryRegion> registration;  // null: unused
  IntrusiveList<MemoryIdleAwaiter> waiting;
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data, capacity}; }
};

// Told when memory somebody waits for is idle.
class IdleListener {
 public:
  virtual void on_memory_idle(std::coroutine_handle<> awaiting) noexcept = 0;

 protected:
  ~IdleListener() = default;
};

class RegistrationCache final : public engine::BufferOwner {
 public:
  struct Limits {
    std::uint64_t bytes_max = 0;
    std::uint32_t regions_max = 0;
    std::size_t page_bytes = 4096;
  };
  struct Counters {
    std::uint64_t bytes = 0;  // registered, whole pages
    std::uint64_t bytes_peak = 0;
    std::uint64_t regions = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evictions = 0;  // to make room
    std::uint64_t stale = 0;      // that were found under another generation, or forgotten
    std::uint64_t failures = 0;   // for want of room
  };
  RegistrationCache(fabric::Device& device, IdleListener& listener, const Limits& limits);
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // Registers the pages that hold `bytes`, or finds them. Generation 0: for this handle alone. Errors:
  // invalid_argument (no bytes), too_large (more than bytes_max), exhausted (what is in use leaves no room),
  // device.
  Result<UserMemory> acquire(std::span<std::byte> bytes, std::uint64_t generation);
  // The memory is about to be given back: what is cached of it ends, now or when it is idle.
  void forget(std::span<std::byte> bytes) noexcept;
  void reclaim(engine::Block& block) noexcept override;
  // A handle is gone.
  void release(UserRegion& region) noexcept;
  void wait(MemoryIdleAwaiter& awaiter) noexcept { awaiter.region_->waiting.push_back(awaiter); }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  void check_invariants() const;

 private:
  using Key = std::tuple<std::uintptr_t, std::size_t, std::uint64_t>;  // begin, length, generation
  static Key key_of(std::span<std::byte> bytes, std::uint64_t generation) noexcept {
    return {reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size(), generation};
  }
  [[nodiscard]] std::span<std::byte> pages_of(std::span<std::byte> bytes) const noexcept;
  Result<UserRegion*> find_or_register(std::span<std::byte> bytes, std::uint64_t generation);
  Result<> make_room(std::size_t bytes) noexcept;
  // Of those that overlap, all but the generation named are of the past.
  void drop_overlapping(std::span<std::byte> pages, std::uint64_t except) noexcept;
  void forget_one(UserRegion& region) noexcept;
  void settle(UserRegion& region) noexcept;
  void end(UserRegion& region) noexcept;

  fabric::Device& device_;
  IdleListener& listener_;
  Limits limits_;
  Counters counters_;
  std::unique_ptr<UserRegion[]> regions_;
  IntrusiveList<UserRegion> unused_;
  IntrusiveList<UserRegion> idle_;  // cached; the one used least lately first
  std::map<Key, UserRegion*> by_key_;
};

}  // namespace bx::memory
