// SPDX-License-Identifier: BSD-3-Clause
// What the memory layer asks of the operating system, as a seam: a test hands in another and makes any step
// fail. Addresses are aligned to kHugePageBytes, so that huge pages can lie behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace bx::memory {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;
inline constexpr std::size_t kPageBytesMin = 4096;
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

enum class MapKind : std::uint8_t {
  ordinary,  // not reserved: what nobody touches costs nothing
  huge,      // from the pool of huge pages, reserved: touching it cannot fail later
};
enum class Advice : std::uint8_t {
  huge_pages,     // transparent ones
  not_in_a_fork,  // a child of this process does not get the pages, so it cannot take them from the NIC
};

class SystemMemory {
 public:
  // Zeroed memory; null if there is none, with errno set.
  virtual std::byte* map(std::size_t bytes, MapKind kind) noexcept = 0;
  virtual void unmap(std::span<std::byte> bytes) noexcept = 0;
  // False if it is not to be had.
  virtual bool advise(std::span<std::byte> bytes, Advice advice) noexcept = 0;
  [[nodiscard]] virtual std::size_t page_bytes() const noexcept = 0;
  // Bytes this process may lock (RLIMIT_MEMLOCK); kUnlimited if it is above the limit (CAP_IPC_LOCK).
  [[nodiscard]] virtual std::uint64_t lockable_bytes() const noexcept = 0;

 protected:
  ~SystemMemory() = default;
};

// Linux.
class LinuxMemory final : public SystemMemory {
 public:
  std::byte* map(std::size_t bytes, MapKind kind) noexcept override;
  void unmap(std::span<std::byte> bytes) noexcept override;
  bool advise(std::span<std::byte> bytes, Advice advice) noexcept override;
  [[nodiscard]] std::size_t page_bytes() const noexcept override;
  [[nodiscard]] std::uint64_t lockable_bytes() const noexcept override;
};

}  // namespace bx::memory
