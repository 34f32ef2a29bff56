// SPDX-License-Identifier: BSD-3-Clause
// An operating system whose memory calls fail when told to, and that counts what it gave.
#pragma once

#include <cerrno>
#include <vector>

#include "libbx/memory/system_memory.h"

namespace bx::memory {

class FakeMemory final : public SystemMemory {
 public:
  std::byte* map(std::size_t bytes, MapKind kind) noexcept override {
    errno = ENOMEM;
    if (kind == MapKind::huge ? !huge : !ordinary) return nullptr;
    std::byte* got = real_.map(bytes, MapKind::ordinary);
    if (got != nullptr) ++mapped;
    return got;
  }
  void unmap(std::span<std::byte> bytes) noexcept override {
    --mapped;
    real_.unmap(bytes);
  }
  bool advise(std::span<std::byte> /*bytes*/, Advice advice) noexcept override {
    advised.push_back(advice);
    return advice != Advice::huge_pages || transparent;
  }
  [[nodiscard]] std::size_t page_bytes() const noexcept override { return 4096; }
  [[nodiscard]] std::uint64_t lockable_bytes() const noexcept override { return lockable; }

  bool huge = true;
  bool transparent = true;
  bool ordinary = true;
  std::uint64_t lockable = kUnlimited;
  int mapped = 0;
  std::vector<Advice> advised;

 private:
  LinuxMemory real_;
};

}  // namespace bx::memory
