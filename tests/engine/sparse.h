// SPDX-License-Identifier: BSD-3-Clause
// Address space for payloads larger than what a test may use of memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <span>

namespace bx::testing {

// Zeros that take no memory until they are written to.
class Sparse {
 public:
  explicit Sparse(std::size_t bytes) : bytes_(bytes) {
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::byte*>(at);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() { munmap(base_, bytes_); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {base_, bytes_}; }

 private:
  std::size_t bytes_;
  std::byte* base_ = nullptr;
};

}  // namespace bx::testing
