// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/overrides.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/scenario/scenario.h"

namespace bx::harness {
namespace {

constexpr std::string_view kScenario = R"(name = "x"
[fabric]
hosts = 3
[library]
window.per_peer = "64KiB"
[[workload]]
kind = "incast"
clients = 0
servers = "1..2"
answer = "64KiB"
)";

class Overrides : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() /
            ("bx-overrides-test-" + std::to_string(::getpid()) + ".conf");
  }
  void TearDown() override {
    std::filesystem::remove(file_);
    for (const char* name : {"BX_WINDOW_PER_PEER", "BX_WINDOW_PER_PEAR"}) ::unsetenv(name);
  }

  std::vector<Assignment> read(const OverrideSources& sources) {
    warnings_.clear();
    return read_overrides(sources, diagnostics_, warnings_);
  }
  OverrideSources with_file(const std::string& text) {
    std::ofstream(file_) << text;
    OverrideSources sources;
    sources.knob_file = file_.string();
    return sources;
  }
  // What is wrong, without the file's name.
  std::string errors() {
    std::string text = diagnostics_.text();
    for (std::size_t at; (at = text.find(file_.string())) != std::string::npos;) {
      text.replace(at, file_.string().size(), "F");
    }
    return text;
  }
  Settings settings_with(const OverrideSources& sources, const std::string& more = "") {
    auto scenario = parse_scenario(std::string(kScenario) + more, "s.toml", read(sources), diagnostics_);
    EXPECT_TRUE(scenario) << diagnostics_.text();
    notes_ = scenario->notes;
    return scenario->variants.back().settings;
  }

  std::filesystem::path file_;
  Diagnostics diagnostics_;
  std::vector<std::string> warnings_;
  std::vector<std::string> notes_;
};

TEST_F(Overrides, environment_name__of_a_knob) {
  EXPECT_EQ(environment_name("window.per_peer"), "BX_WINDOW_PER_PEER");
}

TEST_F(Overrides, read_overrides__each_layer_wins_over_the_one_before) {
  const auto window = [&](const OverrideSources& sources, const std::string& more = "") {
    const Settings settings = settings_with(sources, more);
    return std::make_pair(settings.library.window_per_peer, settings.origin("library.window.per_peer"));
  };
  OverrideSources sources;
  EXPECT_EQ(window(sources), std::make_pair(std::uint64_t{65'536}, Origin::scenario));
  sources = with_file("window.per_peer = 128KiB\n");
  EXPECT_EQ(window(sources), std::make_pair(std::uint64_t{131'072}, Origin::knob_file));
  ::setenv("BX_WINDOW_PER_PEER", "256KiB", 1);
  EXPECT_EQ(window(sources), std::make_pair(std::uint64_t{262'144}, Origin::environment));
  sources.sets = {"library.window.per_peer=512KiB"};
  EXPECT_EQ(window(sources), std::make_pair(std::uint64_t{524'288}, Origin::command_line));
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(window(sources, "[[variant]]\nname = 'v'\nlibrary.window.per_peer = '1MiB'\n"),
            std::make_pair(std::uint64_t{1'048'576}, Origin::variant));
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_EQ(notes_[0],
            "variant 'v' sets library.window.per_peer itself, so the value from --set does not reach it");
}

TEST_F(Overrides, read_overrides__knob_file_sections_and_comments) {
  const Settings settings = settings_with(
      with_file("# a comment\n[window]\nenabled = false\nper_peer = 128KiB\n[calls]\nmax = 7\n"));
  EXPECT_EQ(settings.library.window_enabled, 0U);
  EXPECT_EQ(settings.library.window_per_peer, 131'072U);
  EXPECT_EQ(settings.library.calls_max, 7U);
  EXPECT_EQ(settings.set_by.at("library.calls.max").place.line, 6U);
}

TEST_F(Overrides, read_overrides__knob_file_mistakes_have_their_line) {
  read(with_file("\n[window]\nper_pear = 1KiB\nenabled = maybe\n"));
  EXPECT_EQ(
      errors(),
      "F:3:1: error: unknown knob 'window.per_pear'; did you mean 'window.per_peer'?; 'bx config' lists the "
      "knobs\n"
      "F:4:1: error: 'library.window.enabled' = 'maybe' has the wrong type; allowed: true or false\n");
}

TEST_F(Overrides, read_overrides__knob_file_twice_and_nonsense) {
  read(with_file("calls.max = 3\ncalls.max = 4\n"));
  EXPECT_EQ(errors(), "F:1:1: error: knob 'calls.max' is set twice\n");
  diagnostics_ = {};
  read(with_file("this is no knob file\n"));
  EXPECT_EQ(errors().substr(0, 28), "F: error: not a knob file: t");
  diagnostics_ = {};
  OverrideSources missing;
  missing.knob_file = "/nonexistent.conf";
  read(missing);
  EXPECT_EQ(errors(), "/nonexistent.conf: error: cannot be read: No such file or directory\n");
}

TEST_F(Overrides, read_overrides__environment_mistakes) {
  ::setenv("BX_WINDOW_PER_PEER", "64", 1);  // 64 bytes is below the range
  ::setenv("BX_WINDOW_PER_PEAR", "64KiB", 1);
  read({});
  EXPECT_EQ(
      errors(),
      "BX_WINDOW_PER_PEER: error: 'library.window.per_peer' = 64 is out of range; allowed: bytes, 4KiB to "
      "64GiB\n");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(warnings_[0],
            "the environment variable BX_WINDOW_PER_PEAR is no knob and is ignored; did you mean "
            "'BX_WINDOW_PER_PEER'?");
}

TEST_F(Overrides, read_overrides__set_reaches_one_workload_by_its_index) {
  const std::string second = "[[workload]]\nkind = 'flows'\nsources = '1..2'\nsinks = 0\nsize = '1KiB'\n";
  OverrideSources sources;
  sources.sets = {"workload.1.size=4MiB", "workload.0.calls=9"};
  const Settings settings = settings_with(sources, second);
  ASSERT_EQ(settings.workloads.size(), 2U);
  EXPECT_EQ(settings.workloads[1].size, 4U << 20U);
  EXPECT_EQ(settings.workloads[0].calls, 9U);
  EXPECT_EQ(settings.workloads[1].calls, 1U);
}

TEST_F(Overrides, read_overrides__set_takes_any_key) {
  OverrideSources sources;
  sources.sets = {"fabric.rate=25Gbps", "workload.answer=['64B', '1MiB']", " fabric.pfc.enabled = false "};
  sources.seed = 99;
  const Settings settings = settings_with(sources);
  EXPECT_EQ(settings.fabric.rate_bps, 25'000'000'000U);
  EXPECT_EQ(settings.workloads[0].answer.choices.size(), 2U);
  EXPECT_FALSE(settings.fabric.pfc.enabled);
  EXPECT_EQ(settings.fabric.seed, 99U);
}

TEST_F(Overrides, read_overrides__set_is_strict) {
  OverrideSources sources;
  sources.sets = {"fabric.raet=25Gbps", "fabric.rate", "window.per_peer=64KiB", "fabric.hosts=two"};
  read(sources);
  EXPECT_EQ(
      errors(),
      "--set fabric.raet=25Gbps: error: unknown key 'fabric.raet' = '25Gbps'; did you mean 'fabric.rate'?\n"
      "--set fabric.rate: error: is not of the form key=value, for example --set fabric.rate=25Gbps\n"
      "--set window.per_peer=64KiB: error: unknown key 'window.per_peer' = '64KiB'; did you mean "
      "'library.window.per_peer'?\n"
      "--set fabric.hosts=two: error: 'fabric.hosts' = 'two' has the wrong type; allowed: whole number, 2 "
      "to "
      "4096\n");
}

TEST_F(Overrides, check__a_bad_override_is_blamed_on_who_set_it) {
  OverrideSources sources;
  sources.sets = {"fabric.hosts=2"};
  EXPECT_FALSE(parse_scenario(kScenario, "s.toml", read(sources), diagnostics_).has_value());
  EXPECT_EQ(errors(),
            "s.toml:9:11: error: 'workload.servers' = '1..2' names host 2, but 'fabric.hosts' = 2: there are "
            "host0 to "
            "host1\n");
}

}  // namespace
}  // namespace bx::harness
