// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/partitions.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "libbx/base/check.h"
#include "sim/model/port.h"

namespace bx::sim {
namespace {

// Tells the processor that a loop only waits.
void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// One run(): which partition has what to do next, and where the window ends.
class Partitions::Windows {
 public:
  Windows(Partitions& partitions, std::int64_t limit, std::size_t threads)
      : partitions_(partitions), limit_(limit), threads_(threads), next_(partitions.count()), left_(threads) {
    // What the run before has left in the mailboxes is on its way.
    for (std::size_t p = 0; p < next_.size(); ++p) next_[p].time = next_time(p);
    plan_window();
  }

  void run() {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < threads_; ++t) others.emplace_back([this] { run_thread(); });
    run_thread();
  }
  // Nothing is left anywhere.
  [[nodiscard]] bool empty() const noexcept { return first_ == Mailbox::kNever; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  static constexpr int kLooks = 20'000;  // some 100 to 500 us
  // Written by one thread, and read by another after they met.
  struct alignas(64) Next {
    std::int64_t time = Mailbox::kNever;
    bool stopped = false;
  };

  void run_thread() {
    while (!done_) {
      // Whoever is free takes the next partition: they differ in work.
      for (std::size_t p = 0; (p = taken_.fetch_add(1, std::memory_order_relaxed)) < partitions_.count();) {
        run_partition(p);
      }
      meet();
    }
  }

  // A barrier; the last to arrive plans the next window while all others wait. They look for a while before
  // they sleep: the others are at most a partition behind, and to be woken may take as long.
  void meet() {
    const std::uint32_t window = windows_.load(std::memory_order_relaxed);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      ++partitions_.window_;
      plan_window();
      taken_.store(0, std::memory_order_relaxed);
      left_.store(threads_, std::memory_order_relaxed);
      windows_.store(window + 1, std::memory_order_release);
      windows_.notify_all();
      return;
    }
    for (int look = 0; look < kLooks; ++look) {
      if (windows_.load(std::memory_order_acquire) != window) return;
      relax();
    }
    windows_.wait(window, std::memory_order_acquire);
  }

  void run_partition(std::size_t own) {
    Engine& engine = partitions_.engine(own);
    FramePool& frames = partitions_.frames(own);
    const std::uint64_t window = partitions_.window_;
    for (std::size_t from = 0; from < partitions_.count(); ++from) {
      partitions_.mailbox(from, own).take(window, frames, [&](std::int64_t time, Port& to, Frame* frame) {
        to.arrives(Picoseconds{time} - engine.now(), frame);
      });
    }
    for (std::size_t to = 0; to < partitions_.count(); ++to) {
      partitions_.mailbox(own, to).give_back(window, frames);
    }
    engine.run(Picoseconds{last_});
    next_[own] = {next_time(own), engine.stopped()};
  }

  // Of its own events and of what it has sent.
  [[nodiscard]] std::int64_t next_time(std::size_t own) {
    std::int64_t time = partitions_.engine(own).next_event().count();
    for (std::size_t to = 0; to < partitions_.count(); ++to) {
      time = std::min(time, partitions_.mailbox(own, to).earliest());
    }
    return time;
  }

  void plan_window() noexcept {
    first_ = Mailbox::kNever;
    for (const Next& next : next_) {
      first_ = std::min(first_, next.time);
      stopped_ = stopped_ || next.stopped;
    }
    done_ = first_ > limit_ || empty() || stopped_;
    const std::int64_t lookahead = partitions_.plan_.lookahead.count();
    last_ = first_ > limit_ - lookahead ? limit_ : first_ + lookahead - 1;
  }

  Partitions& partitions_;
  std::int64_t limit_;
  std::size_t threads_;
  std::vector<Next> next_;  // by partition
  std::int64_t first_ = 0;  // event of the window
  std::int64_t last_ = 0;   // instant of the window
  bool done_ = false;
  bool stopped_ = false;
  // Each of a cache line of its own: all threads write to the first two.
  alignas(64) std::atomic<std::size_t> taken_{0};  // partitions of this window
  alignas(64) std::atomic<std::size_t> left_;      // threads that have yet to arrive
  alignas(64) std::atomic<std::uint32_t> windows_{0};
};

Partitions::Partitions(Engine& engine, FramePool& frames, PartitionPlan plan)
    : plan_(std::move(plan)),
      parts_(plan_.count),
      mailboxes_(plan_.count > 1 ? plan_.count * plan_.count : 0) {
  BX_CHECK(plan_.count == 1 || engine.kind() == EngineKind::fast, "several partitions need the fast engine");
  parts_[0].engine = &engine;
  parts_[0].frames = &frames;
  for (std::size_t p = 1; p < parts_.size(); ++p) {
    parts_[p].own_engine = std::make_unique<Engine>(Engine::Beside{});
    parts_[p].own_frames = std::make_unique<FramePool>();
    parts_[p].engine = parts_[p].own_engine.get();
    parts_[p].frames = parts_[p].own_frames.get();
  }
}

Partitions::~Partitions() = default;

bool Partitions::run(Picoseconds limit, std::size_t threads) {
  BX_CHECK(threads > 0, "a run needs a thread");
  if (count() == 1) return engine(0).run(limit);
  Windows windows(*this, limit.count(), std::min(threads, count()));
  windows.run();
  if (windows.stopped()) return false;
  Picoseconds end = windows.empty() ? Picoseconds{} : limit;
  for (const Part& part : parts_) end = std::max(end, part.engine->now());
  for (const Part& part : parts_) part.engine->advance_to(end);
  return windows.empty();
}

std::uint64_t Partitions::events() const noexcept {
  std::uint64_t sum = 0;
  for (const Part& part : parts_) sum += part.engine->events();
  return sum;
}

std::size_t Partitions::frames_in_use() const noexcept {
  std::size_t sum = 0;
  for (const Part& part : parts_) sum += part.frames->in_use();
  return sum;
}

RunDigest Partitions::digest() const noexcept {
  RunDigest digest = parts_[0].digest;
  for (std::size_t p = 1; p < parts_.size(); ++p) digest.append(parts_[p].digest);
  return digest;
}

}  // namespace bx::sim
