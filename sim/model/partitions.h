// SPDX-License-Identifier: GPL-2.0-only
// The parts that a network is simulated in, usually one: each has a clock with a queue of events, a pool of
// frames and a digest. Several run beside each other in windows of the plan's lookahead (partition_plan.h),
// on as many threads as are given; what crosses from one to another goes through a Mailbox.
//
// Several partitions are a run of their own: events of one instant in different partitions have no order, and
// those of frames that crossed come in the order of partitions, not of sending. Its digest differs from that
// of the same network in one; it does not depend on the threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/mailbox.h"
#include "sim/model/partition_plan.h"
#include "sim/model/run_digest.h"
#include "sim/model/units.h"

namespace bx::sim {

class Partitions {
 public:
  // The first partition is simulated by `engine`, which must be of the fast kind if there are more; these
  // have engines that ns-3 does not know.
  Partitions(Engine& engine, FramePool& frames, PartitionPlan plan);
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;
  ~Partitions();

  [[nodiscard]] std::size_t count() const noexcept { return plan_.count; }
  [[nodiscard]] std::size_t of_host(std::uint16_t host) const noexcept { return plan_.of_host[host]; }
  [[nodiscard]] std::size_t of_switch(std::size_t index) const noexcept { return plan_.of_switch[index]; }
  [[nodiscard]] Engine& engine(std::size_t partition) noexcept { return *parts_[partition].engine; }
  [[nodiscard]] FramePool& frames(std::size_t partition) noexcept { return *parts_[partition].frames; }
  [[nodiscard]] RunDigest& digest(std::size_t partition) noexcept { return parts_[partition].digest; }
  [[nodiscard]] Mailbox& mailbox(std::size_t from, std::size_t to) noexcept {
    return mailboxes_[from * count() + to];
  }

  // As Engine::run, of all of them, on up to `threads` threads (at least one); stop() of an engine counts at
  // the end of the window. All clocks end up at one time, unless one was stopped.
  bool run(Picoseconds limit, std::size_t threads);
  [[nodiscard]] std::uint64_t events() const noexcept;       // executed so far
  [[nodiscard]] std::size_t frames_in_use() const noexcept;  // those between partitions not included
  [[nodiscard]] RunDigest digest() const noexcept;           // of all; of one partition its own

 private:
  class Windows;
  struct Part {
    std::unique_ptr<Engine> own_engine;  // of all but the first
    std::unique_ptr<FramePool> own_frames;
    Engine* engine = nullptr;
    FramePool* frames = nullptr;
    RunDigest digest{};
  };
  PartitionPlan plan_;
  std::vector<Part> parts_;
  std::vector<Mailbox> mailboxes_;  // by sender, then receiver; none if there is one partition
  std::uint64_t window_ = 1;        // the next one; of all runs
};

}  // namespace bx::sim
