// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/system_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bx::memory {
namespace {

std::uintptr_t address(const std::byte* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}

TEST(LinuxMemory, map__is_zeroed_and_aligned_for_huge_pages) {
  LinuxMemory system;
  for (const std::size_t bytes : {std::size_t{1}, kPageBytesMin, kHugePageBytes, 5 * kHugePageBytes + 1}) {
    std::byte* p = system.map(bytes, MapKind::ordinary);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(address(p) % kHugePageBytes, 0U);
    EXPECT_EQ(p[0], std::byte{0});
    p[bytes - 1] = std::byte{1};
    system.unmap({p, bytes});
  }
}

// The pool may be empty: then null, and never a mapping that faults when it is touched.
TEST(LinuxMemory, map__of_huge_pages_is_reserved_or_null) {
  LinuxMemory system;
  std::byte* p = system.map(2 * kHugePageBytes, MapKind::huge);
  if (p == nullptr) return;
  EXPECT_EQ(address(p) % kHugePageBytes, 0U);
  p[2 * kHugePageBytes - 1] = std::byte{1};
  system.unmap({p, 2 * kHugePageBytes});
}

TEST(LinuxMemory, map__of_more_than_there_is_address_space_is_null) {
  EXPECT_EQ(LinuxMemory().map(std::size_t{1} << 60U, MapKind::ordinary), nullptr);
}

// A child does not have the pages: touching them ends it by a signal.
TEST(LinuxMemory, advise__keeps_pages_out_of_a_fork) {
  LinuxMemory system;
  std::byte* p = system.map(kHugePageBytes, MapKind::ordinary);
  ASSERT_NE(p, nullptr);
  constexpr int kSeen = 42;  // a sanitizer that finds the page missing exits with 1
  p[0] = std::byte{kSeen};
  const auto child_reads = [p] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(std::to_integer<int>(*const_cast<volatile std::byte*>(p)));
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == kSeen;
  };
  EXPECT_TRUE(child_reads());
  EXPECT_TRUE(system.advise({p, kHugePageBytes}, Advice::not_in_a_fork));
  EXPECT_FALSE(child_reads());
  EXPECT_EQ(p[0], std::byte{kSeen});
  system.unmap({p, kHugePageBytes});
}

TEST(LinuxMemory, page_bytes__is_a_power_of_two) {
  const std::size_t bytes = LinuxMemory().page_bytes();
  EXPECT_GE(bytes, kPageBytesMin);
  EXPECT_EQ(bytes & (bytes - 1), 0U);
}

TEST(LinuxMemory, lockable_bytes__is_the_soft_limit_or_none) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  const std::uint64_t lockable = LinuxMemory().lockable_bytes();
  EXPECT_TRUE(lockable == kUnlimited || lockable == limit.rlim_cur) << lockable;
}

}  // namespace
}  // namespace bx::memory
