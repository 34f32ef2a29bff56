// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/registration_cache.h"

#include <algorithm>
#include <utility>

#include "libbx/base/check.h"

namespace bx::memory {
namespace {

bool overlap(std::span<std::byte> a, std::span<std::byte> b) noexcept {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

RegistrationCache::RegistrationCache(fabric::Device& device, IdleListener& listener, const Limits& limits)
    : device_(device),
      listener_(listener),
      limits_(limits),
      regions_(std::make_unique<UserRegion[]>(limits.regions_max)) {
  for (std::uint32_t i = 0; i < limits.regions_max; ++i) {
    regions_[i].cache = this;
    regions_[i].owner = this;
    unused_.push_back(regions_[i]);
  }
}

RegistrationCache::~RegistrationCache() {
  while (UserRegion* region = idle_.front()) end(*region);
  BX_CHECK(counters_.regions == 0, "a registration of the application's memory outlived its worker");
  unused_.clear();
}

Result<UserMemory> RegistrationCache::acquire(std::span<std::byte> bytes, std::uint64_t generation) {
  if (bytes.empty()) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, "no memory to register");
  }
  auto region = find_or_register(bytes, generation);
  if (!region) return tl::unexpected<Error>(region.error());
  ++(*region)->handles;
  return UserMemory(**region, bytes);
}

Result<UserRegion*> RegistrationCache::find_or_register(std::span<std::byte> bytes,
                                                        std::uint64_t generation) {
  const std::span<std::byte> pages = pages_of(bytes);
  if (generation != 0) {
    if (const auto found = by_key_.find(key_of(bytes, generation)); found != by_key_.end()) {
      ++counters_.hits;
      found->second->unlink();
      return found->second;
    }
    drop_overlapping(pages, generation);
  }
  ++counters_.misses;
  if (auto room = make_room(pages.size()); !room) {
    ++counters_.failures;
    return tl::unexpected<Error>(room.error());
  }
  auto registration =
      device_.register_memory(pages, fabric::Access::remote_read | fabric::Access::remote_write);
  if (!registration) return tl::unexpected<Error>(registration.error());
  UserRegion& region = *unused_.pop_front();
  region.data = bytes.data();
  region.capacity = bytes.size();
  region.pages = pages;
  region.lkey = static_cast<std::uint32_t>((*registration)->lkey());
  region.rkey = static_cast<std::uint32_t>((*registration)->rkey());
  region.registration = std::move(*registration);
  region.generation = generation;
  region.forgotten = false;
  if (generation != 0) by_key_.emplace(key_of(bytes, generation), &region);
  ++counters_.regions;
  counters_.bytes += pages.size();
  counters_.bytes_peak = std::max(counters_.bytes_peak, counters_.bytes);
  return &region;
}

std::span<std::byte> RegistrationCache::pages_of(std::span<std::byte> bytes) const noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::size_t before = begin % limits_.page_bytes;
  const std::size_t whole =
      (before + bytes.size() + limits_.page_bytes - 1) / limits_.page_bytes * limits_.page_bytes;
  return {bytes.data() - before, whole};
}

Result<> RegistrationCache::make_room(std::size_t bytes) noexcept {
  if (bytes > limits_.bytes_max) {
    return fail(ErrorCode::too_large, ErrorScope::operation,
                "more than memory.user, or than the limit of locked memory leaves beside memory.arena (MiB)",
                static_cast<int>(std::min<std::uint64_t>(limits_.bytes_max >> 20U, 0x7fffffff)));
  }
  while (counters_.bytes + bytes > limits_.bytes_max || unused_.empty()) {
    UserRegion* oldest = idle_.front();
    if (oldest == nullptr) {
      return fail(ErrorCode::exhausted, ErrorScope::operation,
                  unused_.empty() ? "memory.user_regions are all in use" : "memory.user is used up");
    }
    ++counters_.evictions;
    end(*oldest);
  }
  return {};
}

void RegistrationCache::forget(std::span<std::byte> bytes) noexcept {
  if (!bytes.empty()) drop_overlapping(pages_of(bytes), 0);
}

void RegistrationCache::drop_overlapping(std::span<std::byte> pages, std::uint64_t except) noexcept {
  for (std::uint32_t i = 0; i < limits_.regions_max; ++i) {
    UserRegion& region = regions_[i];
    if (region.registration == nullptr || region.generation == 0 || region.generation == except) continue;
    if (!region.forgotten && overlap(region.pages, pages)) forget_one(region);
  }
}

void RegistrationCache::forget_one(UserRegion& region) noexcept {
  ++counters_.stale;
  region.forgotten = true;
  by_key_.erase(key_of(region.bytes(), region.generation));
  settle(region);
}

void RegistrationCache::release(UserRegion& region) noexcept {
  BX_CHECK(region.handles > 0, "a handle of registered memory was released twice");
  --region.handles;
  settle(region);
}

void RegistrationCache::reclaim(engine::Block& block) noexcept {
  auto& region = static_cast<UserRegion&>(block);
  BX_CHECK(region.buffers > 0, "a buffer of registered memory was released twice");
  if (--region.buffers > 0) return;
  while (MemoryIdleAwaiter* awaiter = region.waiting.pop_front())
    listener_.on_memory_idle(awaiter->awaiting_);
  settle(region);
}

// Nobody has it any more: it ends, or waits to be wanted again.
void RegistrationCache::settle(UserRegion& region) noexcept {
  if (region.handles > 0 || region.buffers > 0) return;
  if (region.generation == 0 || region.forgotten) return end(region);
  if (!region.linked()) idle_.push_back(region);
}

void RegistrationCache::end(UserRegion& region) noexcept {
  BX_CHECK(region.handles == 0 && region.buffers == 0, "a registration in use was ended");
  region.unlink();
  if (region.generation != 0 && !region.forgotten) by_key_.erase(key_of(region.bytes(), region.generation));
  --counters_.regions;
  counters_.bytes -= region.pages.size();
  region.registration.reset();
  unused_.push_back(region);
}

void RegistrationCache::check_invariants() const {
  std::uint64_t bytes = 0;
  std::uint64_t regions = 0;
  for (std::uint32_t i = 0; i < limits_.regions_max; ++i) {
    const UserRegion& region = regions_[i];
    if (region.registration == nullptr) continue;
    ++regions;
    bytes += region.pages.size();
    const bool cached = region.handles == 0 && region.buffers == 0;
    BX_CHECK(region.linked() == cached, "idle_registrations_listed");
  }
  BX_CHECK(bytes == counters_.bytes && regions == counters_.regions && bytes <= limits_.bytes_max,
           "user_bytes_counted");
}

}  // namespace bx::memory

namespace bx {

bool MemoryIdleAwaiter::await_ready() const noexcept {
  return region_ == nullptr || region_->buffers == 0;
}

void MemoryIdleAwaiter::await_suspend(std::coroutine_handle<> awaiting) noexcept {
  awaiting_ = awaiting;
  region_->cache->wait(*this);
}

Buffer UserMemory::buffer(std::size_t offset, std::size_t size) noexcept {
  BX_CHECK(offset <= bytes_.size() && size <= bytes_.size() - offset,
           "a buffer beyond the registered memory");
  if (size == 0) return {};
  ++region_->buffers;
  return Buffer(*region_, bytes_.data() + offset, size);
}

bool UserMemory::in_use() const noexcept {
  return region_ != nullptr && region_->buffers > 0;
}

void UserMemory::reset() noexcept {
  bytes_ = {};
  if (region_ != nullptr) {
    memory::UserRegion& region = *std::exchange(region_, nullptr);
    region.cache->release(region);
  }
}

}  // namespace bx
