// SPDX-License-Identifier: GPL-2.0-only
// How far the runs are: one line that is redrawn on a terminal, a plain line every few seconds otherwise.
#pragma once

#include <cstdio>
#include <map>
#include <string>

#include "harness/base/stopwatch.h"
#include "harness/run/run_set.h"

namespace bx::harness {

// "incast-64 window: measure, 2.31 ms simulated, 1.2 M events/s, 42 %, 3 s left"; the end is left out while
// nothing can be said about it.
std::string progress_line(const std::string& label, const Progress& progress, double events_per_second,
                          double seconds_left);

enum class ProgressStyle : std::uint8_t { quiet, plain, terminal };

class ProgressDisplay final : public RunSetObserver {
 public:
  // Writes to `out`, which outlives it.
  ProgressDisplay(ProgressStyle style, std::FILE* out) : style_(style), out_(out) {}
  ~ProgressDisplay() override { clear(); }
  void on_start(const RunJob& job) override;
  void on_progress(const RunJob& job, const Progress& progress, double wall_seconds) override;
  void on_end(const RunJob& job, const VariantResult& result) override;

 private:
  // What was last heard of one run, for rates.
  struct Seen {
    double wall_seconds = 0;
    std::uint64_t events = 0;
    double measure_began = -1;  // wall seconds; -1 before
  };
  void clear();

  ProgressStyle style_;
  std::FILE* out_;
  Stopwatch stopwatch_;
  double next_plain_ = 5;
  std::size_t drawn_ = 0;  // characters of the line on the terminal
  std::map<std::string, Seen> seen_;
};

}  // namespace bx::harness
