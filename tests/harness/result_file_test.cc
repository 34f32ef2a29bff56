// SPDX-License-Identifier: GPL-2.0-only
#include "harness/report/result_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace bx::harness {
namespace {

namespace fs = std::filesystem;

class ResultFile : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("bx-result-test-" + std::to_string(::getpid()));
    scenario_.name = "incast-16";
    scenario_.file = "s.toml";
    scenario_.hash = "bxdigest64:0";
    info_ = {&scenario_,
             {.kind = BackendKind::sim, .engine = sim::EngineKind::stock},
             7,
             "20260102T030405Z",
             false};
    result_.name = "window";
    result_.metrics.set("call.latency.p99", 5, "ns");
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string read(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(directory_ / name).rdbuf();
    return text.str();
  }

  fs::path directory_;
  Scenario scenario_;
  RunInfo info_;
  VariantResult result_;
};

TEST_F(ResultFile, write_results__json_and_series_and_nothing_else) {
  const std::string directory = (directory_ / "a/b").string();
  ASSERT_TRUE(prepare_directory(directory));
  EXPECT_TRUE(fs::is_empty(directory));  // the probe is gone
  ASSERT_TRUE(write_results(directory, info_, std::span(&result_, 1)));
  const auto json = nlohmann::json::parse(read("a/b/result.json"));
  EXPECT_EQ(json.at("schema_version"), kResultSchemaVersion);
  EXPECT_EQ(json.at("scenario").at("hash"), "bxdigest64:0");
  EXPECT_EQ(json.at("seed"), 7);
  EXPECT_EQ(json.at("backend"), "sim");
  EXPECT_EQ(json.at("engine"), "stock");
  EXPECT_EQ(json.at("commit"), build_commit());
  EXPECT_EQ(json.at("good"), true);
  EXPECT_EQ(json.at("variants").at(0).at("metrics").at("call.latency.p99").at("value"), 5);
  EXPECT_EQ(read("a/b/series-window.csv"), result_.series.csv());
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 2);
}

TEST_F(ResultFile, result_json__interrupted_is_not_good) {
  info_.interrupted = true;
  EXPECT_EQ(nlohmann::json::parse(result_json(info_, std::span(&result_, 1))).at("good"), false);
}

TEST_F(ResultFile, prepare_directory__a_file_in_the_way) {
  fs::create_directories(directory_);
  std::ofstream(directory_ / "file") << "x";
  const auto ready = prepare_directory((directory_ / "file").string());
  ASSERT_FALSE(ready);
  EXPECT_NE(ready.error().find("use --out DIR or --no-out"), std::string::npos);
}

TEST_F(ResultFile, default_directory__is_not_one_that_exists) {
  const fs::path before = fs::current_path();
  fs::create_directories(directory_);
  fs::current_path(directory_);
  const std::string first = default_directory(info_);
  fs::create_directories(first);
  const std::string second = default_directory(info_);
  fs::current_path(before);
  EXPECT_EQ(first, "results/runs/incast-16/20260102T030405Z-sim-7");
  EXPECT_EQ(second, first + "-2");
}

TEST_F(ResultFile, write_file_atomically__leaves_no_rest_when_it_fails) {
  fs::create_directories(directory_ / "x");
  const auto written =
      write_file_atomically((directory_ / "x").string(), "text");  // a directory is in the way
  ASSERT_FALSE(written);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace bx::harness
