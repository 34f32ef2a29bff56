// SPDX-License-Identifier: GPL-2.0-only
#include "harness/report/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace bx::harness {
namespace {

VariantResult result(const std::string& name, double fetch_ns, double pauses) {
  VariantResult r;
  r.name = name;
  r.digest = 0xabc;
  r.metrics.set("fetch.time", fetch_ns, "ns");
  r.metrics.set("bound.line_rate", 5'000'000, "ns");
  r.metrics.set("pfc.pause_frames", pauses, "count");
  r.metrics.set("calls.started", 3, "count");  // not among the rows
  return r;
}

TEST(table, align__columns) {
  EXPECT_EQ(align({{"a", "1"}, {"long", "222", "x"}}), "a       1\nlong  222  x\n");
}

TEST(table, render_table__variants_side_by_side_with_ratios_to_the_first) {
  const std::vector<VariantResult> results{result("window", 5'500'000, 0),
                                           result("no-window", 11'000'000, 12)};
  EXPECT_EQ(render_table(results, {}),
            "                            window         no-window\n"
            "fetch.time                  5.5 ms        11 ms (x2)\n"
            "bound.line_rate               5 ms              5 ms\n"
            "pfc.pause_frames                 0                12\n"
            "digest            0000000000000abc  0000000000000abc\n");
}

TEST(table, render_table__many_variants_are_broken_into_blocks_that_fit) {
  std::vector<VariantResult> results;
  for (const char* name : {"base", "one", "two", "three", "four"})
    results.push_back(result(name, 5'500'000, 1));
  const std::string text = render_table(results, {false, 80});
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  EXPECT_LE(widest, 80U);
  for (const char* name : {"one", "two", "three", "four"}) EXPECT_NE(text.find(name), std::string::npos);
  EXPECT_NE(text.find("\n\n"), std::string::npos);
  EXPECT_EQ(render_table({}, {}), "");
}

TEST(table, render_verdicts__marks_numbers_and_deviation) {
  VariantResult r = result("window", 5'100'000, 0);
  Expectation within;
  within.metric = "fetch.time";
  within.kind = Expectation::Kind::within;
  within.value = 0.03;
  within.of = "bound.line_rate";
  r.verdicts.push_back(judge(within, r.metrics, r.metrics));
  within.value = 0.01;
  r.verdicts.push_back(judge(within, r.metrics, r.metrics));
  r.skipped.push_back({"nic.rnr_naks", "backend loopback cannot see it"});
  r.breaches.push_back({"finished", "call 3 is unfinished"});
  const std::vector<VariantResult> results{r};
  EXPECT_EQ(render_verdicts(results, {}),
            "ok   window  fetch.time within 3 % of bound.line_rate: measured 5.1 ms against 5 ms (+2.00 %)\n"
            "FAIL window  fetch.time within 1 % of bound.line_rate: measured 5.1 ms against 5 ms (+2.00 %)\n"
            "-    window  nic.rnr_naks: not judged, backend loopback cannot see it\n"
            "FAIL window  breach of finished: call 3 is unfinished\n");
  EXPECT_TRUE(render_verdicts(results, {true, 100}).starts_with("\u2713 window"));
}

}  // namespace
}  // namespace bx::harness
