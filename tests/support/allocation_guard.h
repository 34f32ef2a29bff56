// SPDX-License-Identifier: BSD-3-Clause
// Counts heap allocations of the process, to prove that a path makes none. A program that uses it links
// allocation_guard.cc, which replaces the global operator new and delete by ones that count and go to malloc,
// so that AddressSanitizer still sees every block. Single-threaded programs only see their own allocations.
//
//   const AllocationCount before;
//   worker.progress(now);
//   EXPECT_EQ(before.since(), 0U);
#pragma once

#include <cstdint>

namespace bx::test {

// Calls of operator new, of any form, since the program began.
std::uint64_t allocations() noexcept;

// Bytes asked of operator new since the program began; those given back are not taken off.
std::uint64_t allocated_bytes() noexcept;

class AllocationCount {
 public:
  AllocationCount() noexcept : begin_(allocations()) {}
  [[nodiscard]] std::uint64_t since() const noexcept { return allocations() - begin_; }

 private:
  std::uint64_t begin_;
};

}  // namespace bx::test
