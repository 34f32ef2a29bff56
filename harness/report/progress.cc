// SPDX-License-Identifier: GPL-2.0-only
#include "harness/report/progress.h"

#include <fmt/format.h>

#include "harness/base/units.h"

namespace bx::harness {
namespace {

constexpr double kPlainInterval = 5;  // seconds of real time

std::string rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.1f} M events/s", per_second / 1e6);
  return fmt::format("{:.0f} k events/s", per_second / 1e3);
}

}  // namespace

std::string progress_line(const std::string& label, const Progress& progress, double events_per_second,
                          double seconds_left) {
  std::string line = fmt::format("{}: {}, {} simulated, {}", label, progress.phase,
                                 format_approximately(static_cast<double>(progress.simulated_ns), "ns"),
                                 rate(events_per_second));
  if (progress.phase != "measure") return line;
  line += fmt::format(", {:.0f} %", progress.fraction * 100);
  if (seconds_left >= 0) line += fmt::format(", {:.0f} s left", seconds_left);
  return line;
}

void ProgressDisplay::on_start(const RunJob& job) {
  seen_[job.label] = {};
  if (style_ != ProgressStyle::plain) return;
  fmt::print(out_, "{}: started\n", job.label);
  std::fflush(out_);
}

void ProgressDisplay::on_progress(const RunJob& job, const Progress& progress, double wall_seconds) {
  Seen& seen = seen_[job.label];
  const double elapsed = wall_seconds - seen.wall_seconds;
  const double events_per_second =
      elapsed > 0 ? static_cast<double>(progress.events - seen.events) / elapsed : 0;
  if (progress.phase == "measure" && seen.measure_began < 0) seen.measure_began = seen.wall_seconds;
  double left = -1;
  if (progress.phase == "measure" && progress.fraction > 0.01) {
    left = (wall_seconds - seen.measure_began) * (1 - progress.fraction) / progress.fraction;
  }
  seen.wall_seconds = wall_seconds;
  seen.events = progress.events;
  if (style_ == ProgressStyle::quiet) return;

  const std::string line = progress_line(job.label, progress, events_per_second, left);
  if (style_ == ProgressStyle::terminal) {
    fmt::print(out_, "\r{:<{}}", line, drawn_);
    drawn_ = line.size();
    std::fflush(out_);
  } else if (stopwatch_.seconds() >= next_plain_) {
    next_plain_ = stopwatch_.seconds() + kPlainInterval;
    fmt::print(out_, "{}\n", line);
    std::fflush(out_);
  }
}

void ProgressDisplay::on_end(const RunJob& job, const VariantResult& result) {
  seen_.erase(job.label);
  if (style_ == ProgressStyle::quiet) return;
  clear();
  fmt::print(out_, "{}: {} after {} simulated, {} events in {:.2f} s\n", job.label, to_string(result.status),
             format_approximately(static_cast<double>(result.simulated_ns), "ns"), result.events,
             result.wall_seconds);
  std::fflush(out_);
}

void ProgressDisplay::clear() {
  if (drawn_ == 0) return;
  fmt::print(out_, "\r{:<{}}\r", "", drawn_);
  drawn_ = 0;
}

}  // namespace bx::harness
