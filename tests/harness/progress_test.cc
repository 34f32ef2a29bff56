// SPDX-License-Identifier: GPL-2.0-only
#include "harness/report/progress.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

std::string displayed(ProgressStyle style) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  {
    ProgressDisplay display(style, out);
    RunJob job;
    job.label = "x window";
    display.on_start(job);
    display.on_progress(job, {"measure", 1'000'000, 500'000, 0.25}, 0.5);
    VariantResult result;
    result.simulated_ns = 2'000'000;
    result.events = 1'000'000;
    result.wall_seconds = 1;
    display.on_end(job, result);
  }
  std::fclose(out);
  std::string shown(text, size);
  std::free(text);
  return shown;
}

TEST(progress, progress_line__with_and_without_an_end_in_sight) {
  EXPECT_EQ(progress_line("x", {"measure", 2'310'000, 0, 0.42}, 1.23e6, 3),
            "x: measure, 2.31 ms simulated, 1.2 M events/s, 42 %, 3 s left");
  EXPECT_EQ(progress_line("x", {"measure", 2'310'000, 0, 0.0}, 45e3, -1),
            "x: measure, 2.31 ms simulated, 45 k events/s, 0 %");
  EXPECT_EQ(progress_line("x", {"connect", 0, 0, 0}, 0, -1), "x: connect, 0 ns simulated, 0 k events/s");
}

TEST(progress, display__quiet_says_nothing) {
  EXPECT_EQ(displayed(ProgressStyle::quiet), "");
}

TEST(progress, display__plain_says_the_start_and_the_end_of_each_run) {
  EXPECT_EQ(displayed(ProgressStyle::plain),
            "x window: started\nx window: completed after 2 ms simulated, 1000000 events in 1.00 s\n");
}

TEST(progress, display__terminal_draws_one_line_and_wipes_it) {
  const std::string shown = displayed(ProgressStyle::terminal);
  const std::string line = "x window: measure, 1 ms simulated, 1.0 M events/s, 25 %, 2 s left";
  EXPECT_EQ(shown, "\r" + line + "\r" + std::string(line.size(), ' ') +
                       "\rx window: completed after 2 ms simulated, 1000000 events in 1.00 s\n");
}

}  // namespace
}  // namespace bx::harness
