// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/page_mapping.h"

#include <cerrno>
#include <utility>

#include "libbx/base/check.h"

namespace bx::memory {

std::string_view to_string(PageKind kind) noexcept {
  switch (kind) {
    case PageKind::ordinary:
      return "ordinary";
    case PageKind::transparent:
      return "transparent";
    case PageKind::huge:
      return "huge";
  }
  return "?";
}

Result<PageMapping> PageMapping::create(SystemMemory& system, std::size_t bytes, const PageWish& wish) {
  BX_CHECK(bytes % kHugePageBytes == 0, "a mapping is made of whole huge pages");
  const HugePages huge_pages = wish.huge_pages != HugePages::automatic ? wish.huge_pages
                               : wish.pinned                           ? HugePages::prefer
                                                                       : HugePages::off;
  std::byte* base = huge_pages == HugePages::off ? nullptr : system.map(bytes, MapKind::huge);
  const bool huge = base != nullptr;
  if (!huge && huge_pages == HugePages::require) {
    return fail(ErrorCode::exhausted, ErrorScope::device,
                "memory.huge_pages = require: the pool of huge pages is too small; set vm.nr_hugepages to "
                "memory.arena / 2 MiB for each worker of the host",
                errno);
  }
  if (!huge) base = system.map(bytes, MapKind::ordinary);
  if (base == nullptr) {
    return fail(ErrorCode::exhausted, ErrorScope::device,
                "memory.arena: the address space could not be mapped; lower memory.arena or raise ulimit -v",
                errno);
  }
  PageMapping mapping(system, {base, bytes});
  if (huge) {
    mapping.kind_ = PageKind::huge;
  } else if (huge_pages == HugePages::prefer) {
    const bool transparent = system.advise(mapping.bytes_, Advice::huge_pages);
    mapping.kind_ = transparent ? PageKind::transparent : PageKind::ordinary;
    mapping.remedy_ =
        transparent ? "memory.arena lies in transparent huge pages, for the pool of huge pages is too "
                      "small: set vm.nr_hugepages to memory.arena / 2 MiB for each worker of the host"
                    : "memory.arena lies in ordinary pages: set vm.nr_hugepages to memory.arena / 2 MiB "
                      "for each worker of the host, or /sys/kernel/mm/transparent_hugepage/enabled to "
                      "madvise";
  }
  // Where it is refused, Linux before 5.12 may move a pinned page to a child that forks off.
  if (wish.pinned) (void)system.advise(mapping.bytes_, Advice::not_in_a_fork);
  return mapping;
}

PageMapping::PageMapping(PageMapping&& other) noexcept
    : system_(other.system_),
      bytes_(std::exchange(other.bytes_, {})),
      kind_(other.kind_),
      remedy_(other.remedy_) {}

PageMapping::~PageMapping() {
  if (!bytes_.empty()) system_->unmap(bytes_);
}

}  // namespace bx::memory
