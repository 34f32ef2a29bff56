// SPDX-License-Identifier: GPL-2.0-only
#include "harness/compare/loaded_result.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/report/result_file.h"

namespace bx::harness {
namespace {

namespace fs = std::filesystem;

class LoadedResults : public ::testing::Test {
 protected:
  void SetUp() override {
    directory = fs::path(testing::TempDir()) / ("bx-loaded-" + std::to_string(::getpid()));
    fs::remove_all(directory);
    scenario.name = "incast";
    scenario.hash = "bxdigest64:1";
    scenario.compare = {{.metric = "fetch.time",
                         .within = 0.25,
                         .or_by = 5,
                         .or_by_unit = "ns",
                         .over = CompareRule::Over::mean,
                         .variants = {"window"}},
                        {.metric = "goodput", .judged = false}};
    variant.name = "window";
    variant.metrics.set("fetch.time", 1500.5, "ns");
    variant.breaches.push_back({"alive", "it died"});
  }
  void TearDown() override { fs::remove_all(directory); }
  [[nodiscard]] std::string text(std::uint64_t seed = 7) const {
    const RunInfo info{&scenario, {.kind = BackendKind::rxe}, seed, "20260102T030405Z", false};
    return result_json(info, {&variant, 1});
  }
  std::string put(const std::string& name, const std::string& content) const {
    fs::create_directories((directory / name).parent_path());
    std::ofstream(directory / name) << content;
    return (directory / name).string();
  }

  fs::path directory;
  Scenario scenario;
  VariantResult variant;
};

TEST_F(LoadedResults, parse_result__is_what_was_written) {
  const Parsed<LoadedResult> result = parse_result(text(), "r.json");
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->scenario, "incast");
  EXPECT_EQ(result->backend, "rxe");
  EXPECT_EQ(result->seed, 7U);
  ASSERT_EQ(result->variants.size(), 1U);
  EXPECT_EQ(result->variants[0].metrics.find("fetch.time")->value, 1500.5);
  EXPECT_EQ(result->variants[0].breaches, 1U);
  ASSERT_EQ(result->rules.size(), 2U);
  EXPECT_EQ(result->rules[0].within, 0.25);
  EXPECT_EQ(result->rules[0].or_by, 5);
  EXPECT_EQ(result->rules[0].or_by_unit, "ns");
  EXPECT_EQ(result->rules[0].over, CompareRule::Over::mean);
  EXPECT_EQ(result->rules[0].variants, std::vector<std::string>{"window"});
  EXPECT_FALSE(result->rules[1].judged);
}

TEST_F(LoadedResults, parse_result__what_is_none_is_refused) {
  for (const char* wrong : {"", "{", "[]", "{\"schema_version\": 1}", "null", "3"}) {
    const Parsed<LoadedResult> result = parse_result(wrong, "r.json");
    ASSERT_FALSE(result) << wrong;
    EXPECT_TRUE(result.error().starts_with("r.json: is no result of 'bx run': ")) << result.error();
  }
  std::string later = text();
  later.replace(later.find("\"schema_version\": 1"), 19, "\"schema_version\": 9");
  EXPECT_EQ(parse_result(later, "r.json").error(),
            "r.json: 'schema_version' is 9, this bx reads 1; run the scenario again");
}

TEST_F(LoadedResults, load_results__a_directory_of_seeds) {
  put("seed-9/result.json", text(9));
  put("seed-2/result.json", text(2));
  const auto results = load_results(directory.string());
  ASSERT_TRUE(results) << results.error();
  ASSERT_EQ(results->size(), 2U);
  EXPECT_EQ(results->front().seed, 2U);
}

TEST_F(LoadedResults, load_results__says_what_is_wrong) {
  EXPECT_NE(load_results("/nowhere/result.json").error().find("cannot be read"), std::string::npos);
  fs::create_directories(directory);
  EXPECT_NE(load_results(directory.string()).error().find("there is no result.json below it"),
            std::string::npos);
  put("a/result.json", text(2));
  put("b/result.json", text(2));
  EXPECT_NE(load_results(directory.string()).error().find("seed 2 is there twice"), std::string::npos);
  scenario.name = "another";
  put("b/result.json", text(3));
  EXPECT_NE(load_results(directory.string()).error().find("has results of incast and of another"),
            std::string::npos);
}

}  // namespace
}  // namespace bx::harness
