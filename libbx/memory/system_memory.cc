// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/system_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace bx::memory {
namespace {

constexpr int kHuge2MiB = MAP_HUGETLB | (21 << 26);  // 2^21 bytes; MAP_HUGE_SHIFT is 26 (mmap(2))
constexpr unsigned kCapIpcLock = 14;                 // capabilities(7)

// The beginning of a small file of the kernel's; empty if it cannot be read.
template <std::size_t N>
std::string_view read_file(const char* path, std::array<char, N>& buffer) noexcept {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t count = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  return {buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

// madvise() succeeds even where the administrator has turned transparent huge pages off.
bool transparent_pages_allowed() noexcept {
  std::array<char, 64> buffer{};
  const auto text = read_file("/sys/kernel/mm/transparent_hugepage/enabled", buffer);
  return !text.empty() && text.find("[never]") == std::string_view::npos;
}

bool may_exceed_lock_limit() noexcept {
  std::array<char, 4096> buffer{};
  const auto text = read_file("/proc/self/status", buffer);
  constexpr std::string_view kField = "\nCapEff:\t";
  const auto at = text.find(kField);
  if (at == std::string_view::npos || text.size() - at < kField.size() + 16) return false;
  const unsigned long long set = std::strtoull(text.data() + at + kField.size(), nullptr, 16);
  return (set >> kCapIpcLock & 1U) != 0;
}

}  // namespace

std::byte* LinuxMemory::map(std::size_t bytes, MapKind kind) noexcept {
  const bool huge = kind == MapKind::huge;
  const std::size_t slack = huge ? 0 : kHugePageBytes;  // the kernel aligns huge pages itself
  void* const got = ::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (huge ? kHuge2MiB : MAP_NORESERVE), -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(got);
  const std::size_t before =
      (kHugePageBytes - reinterpret_cast<std::uintptr_t>(begin) % kHugePageBytes) % kHugePageBytes;
  if (slack == 0) return begin;
  const std::size_t used = (before + bytes + kPageBytesMin - 1) / kPageBytesMin * kPageBytesMin;
  if (before > 0) ::munmap(begin, before);
  if (used < bytes + slack) ::munmap(begin + used, bytes + slack - used);
  return begin + before;
}

void LinuxMemory::unmap(std::span<std::byte> bytes) noexcept {
  ::munmap(bytes.data(), bytes.size());
}

bool LinuxMemory::advise(std::span<std::byte> bytes, Advice advice) noexcept {
  if (advice == Advice::huge_pages && !transparent_pages_allowed()) return false;
  const int value = advice == Advice::huge_pages ? MADV_HUGEPAGE : MADV_DONTFORK;
  return ::madvise(bytes.data(), bytes.size(), value) == 0;
}

std::size_t LinuxMemory::page_bytes() const noexcept {
  const long bytes = ::sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : kPageBytesMin;
}

std::uint64_t LinuxMemory::lockable_bytes() const noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return kUnlimited;
  if (limit.rlim_cur == RLIM_INFINITY || may_exceed_lock_limit()) return kUnlimited;
  return limit.rlim_cur;
}

}  // namespace bx::memory
