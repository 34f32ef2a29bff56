// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/variant_result.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bx::harness {
namespace {

VariantResult sample_result() {
  VariantResult result;
  result.name = "window";
  result.seed = 3;
  result.digest = 0x00ff;
  result.simulated_ns = 12;
  result.events = 34;
  result.wall_seconds = 0.5;
  result.metrics.set("call.latency.p99", 1500, "ns");
  result.metrics.set("bound.ratio", 1.25, "ratio");
  Expectation expectation;
  expectation.metric = "call.latency.p99";
  expectation.kind = Expectation::Kind::at_most;
  expectation.value = 2000;
  expectation.value_unit = "ns";
  result.verdicts.push_back({expectation, true, Metric{"call.latency.p99", 1500, "ns"}, std::nullopt, ""});
  expectation.kind = Expectation::Kind::within;
  expectation.value = 0.03;
  expectation.value_unit = "";
  expectation.of = "bound.line_rate";
  result.verdicts.push_back(
      {expectation, false, std::nullopt, Metric{"bound.line_rate", 1000, "ns"}, "gone"});
  result.skipped.push_back({"pfc.pause_frames", "cannot be seen"});
  result.settings.push_back({"workload[0].answer", "1MiB", "scenario"});
  result.knobs.push_back({"window.enabled", "true", "default"});
  result.taken_as_given = {"fabric.alpha"};
  result.series = Series(7);
  result.series.add({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}});
  return result;
}

TEST(variant_result, to_json__has_the_promised_shape) {
  const auto json = to_json(sample_result());
  EXPECT_EQ(json.at("name"), "window");
  EXPECT_EQ(json.at("digest"), "00000000000000ff");
  EXPECT_EQ(json.at("metrics").at("call.latency.p99").dump(), R"({"value":1500,"unit":"ns"})");
  EXPECT_EQ(json.at("metrics").at("bound.ratio").at("value"), 1.25);
  EXPECT_EQ(json.at("expectations")[0].dump(),
            R"({"metric":"call.latency.p99","condition":"at most 2us","at_most":2000,"unit":"ns",)"
            R"("measured":{"value":1500,"unit":"ns"},"holds":true})");
  EXPECT_EQ(json.at("expectations")[1].at("measured"), nullptr);
  EXPECT_EQ(json.at("expectations")[1].at("reason"), "gone");
  EXPECT_TRUE(json.at("oracle").at("breaches").empty());
}

TEST(variant_result, from_wire__gives_back_what_to_wire_wrote) {
  VariantResult result = sample_result();
  result.status = RunStatus::interrupted;
  result.breaches.push_back({"finished", "call 1 is \"unfinished\"\n"});
  const std::string wire = to_wire(result);
  EXPECT_EQ(wire.find('\n'), std::string::npos);  // it is one line of the pipe
  const VariantResult back = from_wire(wire);
  EXPECT_EQ(to_wire(back), wire);
  EXPECT_EQ(back.status, RunStatus::interrupted);
  EXPECT_EQ(back.series.csv(), result.series.csv());
  EXPECT_EQ(back.series.interval_ns(), 7U);
  EXPECT_EQ(back.verdicts[1].expectation.condition(), "within 3 % of bound.line_rate");
  EXPECT_THROW(from_wire("{}"), nlohmann::json::exception);
}

TEST(variant_result, good__needs_every_expectation_and_no_breach) {
  VariantResult result = sample_result();
  EXPECT_FALSE(result.good());
  result.verdicts.pop_back();
  EXPECT_TRUE(result.good());
  result.breaches.push_back({"finished", "x"});
  EXPECT_FALSE(result.good());
  result.breaches.clear();
  result.status = RunStatus::interrupted;
  EXPECT_FALSE(result.good());
}

}  // namespace
}  // namespace bx::harness
