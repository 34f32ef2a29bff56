// SPDX-License-Identifier: GPL-2.0-only
// Bytes on their way over PCIe to the host's memory. They land in order, each at its time, whole; a region
// that is deregistered meanwhile is not touched any more. One event is pending for all, by the time of the
// first.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/memory_table.h"

namespace bx::sim {

class LateDma {
 public:
  LateDma(Engine& engine, FramePool& frames, const MemoryTable& memory) noexcept
      : engine_(engine), frames_(frames), memory_(memory) {}
  ~LateDma();
  LateDma(const LateDma&) = delete;
  LateDma& operator=(const LateDma&) = delete;

  // At most kPayloadMax bytes; `at` not before that of the write before.
  void write(Picoseconds at, std::uint32_t key, std::uint64_t addr, std::span<const std::byte> bytes,
             MemoryAccess access);
  void land_due();
  void land_all();
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

 private:
  struct Write {
    Write* next = nullptr;
    Payload* payload = nullptr;
    Picoseconds at{};
    std::uint64_t addr = 0;
    std::uint32_t bytes = 0;
    std::uint32_t key = 0;
    MemoryAccess access{};
  };
  void land_first();
  void schedule();
  static void on_due(void* dma, void* unused);

  Engine& engine_;
  FramePool& frames_;
  const MemoryTable& memory_;
  std::deque<Write> writes_;  // which do not move; as many as were ever under way at once
  Write* free_ = nullptr;
  Write* first_ = nullptr;
  Write* last_ = nullptr;
  bool scheduled_ = false;
};

}  // namespace bx::sim
