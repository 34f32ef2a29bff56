// SPDX-License-Identifier: BSD-3-Clause
// A mapping that is to be registered, in the largest pages that can be had: huge pages spare the NIC entries
// of its translation table and the CPU misses of its own. Falls back from the pool of huge pages to
// transparent ones to ordinary ones; remedy() then says what to set.
#pragma once

#include <bx/config.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libbx/base/result.h"
#include "libbx/memory/system_memory.h"

namespace bx::memory {

// In the order of preference from the last.
enum class PageKind : std::uint8_t { ordinary, transparent, huge };
std::string_view to_string(PageKind kind) noexcept;

struct PageWish {
  HugePages huge_pages = HugePages::automatic;
  // The device holds on to the pages themselves (DeviceCaps::pins_memory): huge pages are worth having, and a
  // child of this process must not get the pages. `automatic` means `prefer` then, and `off` otherwise.
  bool pinned = false;
};

class PageMapping {
 public:
  // `bytes` is a multiple of kHugePageBytes. Errors: exhausted (no address space, or no huge pages where they
  // are required).
  static Result<PageMapping> create(SystemMemory& system, std::size_t bytes, const PageWish& wish);
  PageMapping(PageMapping&& other) noexcept;
  PageMapping& operator=(PageMapping&&) = delete;
  PageMapping(const PageMapping&) = delete;
  PageMapping& operator=(const PageMapping&) = delete;
  ~PageMapping();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] PageKind kind() const noexcept { return kind_; }
  // Why the pages are smaller than wished for, and what to set; null if they are not.
  [[nodiscard]] const char* remedy() const noexcept { return remedy_; }

 private:
  PageMapping(SystemMemory& system, std::span<std::byte> bytes) noexcept : system_(&system), bytes_(bytes) {}
  SystemMemory* system_;
  std::span<std::byte> bytes_;
  PageKind kind_ = PageKind::ordinary;
  const char* remedy_ = nullptr;
};

}  // namespace bx::memory
