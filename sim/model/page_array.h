// SPDX-License-Identifier: GPL-2.0-only
// Memory for many small objects that events reach in no order. From a huge page on it asks the system for
// huge pages: the table of ordinary ones is larger than a processor keeps at hand. Objects are the owner's to
// make, and are not destroyed.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace bx::sim {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;

template <class T>
class PageArray {
 public:
  static_assert(std::is_trivially_destructible_v<T>);

  PageArray() = default;
  explicit PageArray(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const bool huge = bytes >= kHugePageBytes;
    const std::align_val_t align{huge ? kHugePageBytes : kLine};
    memory_ = {static_cast<T*>(::operator new(bytes, align)), Release{align}};
    // Refused where the system has none: then they are ordinary ones.
    if (huge) static_cast<void>(::madvise(memory_.get(), bytes, MADV_HUGEPAGE));
  }
  [[nodiscard]] T* data() const noexcept { return memory_.get(); }

 private:
  static constexpr std::size_t kLine = 64;
  struct Release {
    std::align_val_t align{kLine};
    void operator()(T* memory) const noexcept { ::operator delete(memory, align); }
  };
  std::unique_ptr<T, Release> memory_;
};

}  // namespace bx::sim
