// SPDX-License-Identifier: GPL-2.0-only
// `bx list`, `bx show`, `bx config` and the help.
#include "tests/end_to_end/command.h"

namespace bx::end_to_end {
namespace {

class Commands : public CommandTest {
 protected:
  static nlohmann::json knob(const nlohmann::json& knobs, const std::string& name) {
    for (const auto& entry : knobs) {
      if (entry.at("name") == name) return entry;
    }
    return nullptr;
  }
};

TEST_F(Commands, list__every_scenario_of_the_project_is_sound) {
  const Outcome outcome = bx({"list", source("scenarios")});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name : {"incast-16.toml", "incast-64.toml", "incast-256.toml", "incast-mixed.toml"}) {
    EXPECT_NE(outcome.out.find(name), std::string::npos) << name;
  }
  EXPECT_NE(outcome.out.find(
                "65 hosts; each of 2 variants (window, no-window): 64 calls, 0 flows, 64 MiB, 16384 packets"),
            std::string::npos);
}

TEST_F(Commands, list__a_broken_scenario_is_reported_and_the_others_are_listed) {
  file("good.toml", incast_scenario());
  file("bad.toml", "x = 1\n");
  const Outcome outcome = bx({"list", "."});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.out.find("./good.toml\n"), std::string::npos);
  EXPECT_NE(outcome.err.find("./bad.toml:1:1: error: "), std::string::npos);
}

TEST_F(Commands, show__predicts_before_anything_runs) {
  const Outcome outcome = bx({"show", source("scenarios/incast/incast-64.toml")});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("closed form   5.479 ms until the last answer"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("PFC headroom"), std::string::npos);
  EXPECT_NE(outcome.out.find("PFC onset"), std::string::npos);
  EXPECT_NE(outcome.out.find("sets library.window.enabled = false"), std::string::npos);
  const Outcome small =
      bx({"show", source("scenarios/incast/incast-64.toml"), "--set", "workload.answer=1KiB"});
  EXPECT_NE(small.out.find("the largest fetch has 64 KiB: cannot reach XOFF, no pause expected"),
            std::string::npos)
      << small.out;
  EXPECT_NE(small.out.find("marks everything before PFC pauses"), std::string::npos) << small.out;
  const Outcome late = bx({"show", source("scenarios/incast/incast-64.toml"), "--set",
                           "fabric.ecn.kmin=30MiB", "--set", "fabric.ecn.kmax=31MiB"});
  EXPECT_NE(late.out.find("marks nothing before PFC pauses"), std::string::npos) << late.out;
}

TEST_F(Commands, show__headroom_of_a_profile_is_the_profiles) {
  const auto kept = [&](const std::string& profile) {
    const Outcome outcome = bx(
        {"show", source("scenarios/incast/incast-16.toml"), "--json", "--set", "fabric.profile=" + profile});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)
        .at("variants")[0]
        .at("predictions")
        .at("headroom")
        .at(0)
        .at("kept_bytes")
        .get<std::uint64_t>();
  };
  EXPECT_NE(kept("none"), kept("td2"));
}

TEST_F(Commands, show__lists_the_headroom_of_every_kind_of_port) {
  const Outcome outcome =
      bx({"show", source("scenarios/incast/incast-16.toml"), "--set", "fabric.topology=dumbbell", "--set",
          "fabric.hosts=18", "--set", "fabric.uplink_rate=400Gbps"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(": 18 ports to a host at 100Gbps, 1us away\n"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find(": 2 ports to a switch at 400Gbps, 1us away\n"), std::string::npos);
}

TEST_F(Commands, show__says_that_nothing_is_lossless) {
  const Outcome outcome =
      bx({"show", source("scenarios/incast/incast-16.toml"), "--set", "fabric.lossless=[]"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("PFC           for no class: a full buffer drops\n"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find("PFC headroom"), std::string::npos);
}

TEST_F(Commands, show__json_has_values_origins_and_predictions) {
  const Outcome outcome =
      bx({"show", source("scenarios/incast/incast-16.toml"), "--json", "--set", "fabric.rate=25Gbps"});
  const auto json = nlohmann::json::parse(outcome.out);
  const auto& window = json.at("variants")[0];
  EXPECT_EQ(window.at("settings").at("fabric.rate").at("value"), "25Gbps");
  EXPECT_EQ(window.at("settings").at("fabric.rate").at("origin"), "--set");
  EXPECT_EQ(window.at("settings").at("fabric.alpha").at("origin"), "default");
  EXPECT_EQ(window.at("workloads")[0].at("answer"), "1MiB");
  EXPECT_GT(window.at("predictions").at("headroom_needed_bytes"), 0);
}

TEST_F(Commands, config__values_come_from_file_environment_and_set) {
  file("bx.conf", "[window]\nper_peer = 64KiB\nreceiver = 64KiB\n");
  const Outcome outcome = bx({"config", "--json", "--set", "library.calls.max=7"},
                             {{"BX_WINDOW_RECEIVER", "1MiB"}, {"BX_NO_SUCH_KNOB", "1"}});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto knobs = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(knob(knobs, "window.per_peer").at("number"), 65'536);
  EXPECT_EQ(knob(knobs, "window.per_peer").at("origin"), "knob file");
  EXPECT_EQ(knob(knobs, "window.per_peer").at("source"), "bx.conf");
  EXPECT_EQ(knob(knobs, "window.per_peer").at("line"), 2);
  EXPECT_EQ(knob(knobs, "window.receiver").at("value"), "1MiB");
  EXPECT_EQ(knob(knobs, "window.receiver").at("origin"), "environment");
  EXPECT_EQ(knob(knobs, "calls.max").at("origin"), "--set");
  EXPECT_EQ(knob(knobs, "eager.max").at("origin"), "default");
  EXPECT_NE(outcome.err.find("BX_NO_SUCH_KNOB is no knob and is ignored"), std::string::npos);
}

TEST_F(Commands, config__the_table_has_every_knob_and_says_who_wins) {
  const Outcome outcome = bx({"config"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("window.per_peer"), std::string::npos);
  EXPECT_NE(outcome.out.find("Who wins, weakest first"), std::string::npos);
}

TEST_F(Commands, help__has_examples_and_the_exit_statuses) {
  const Outcome outcome = bx({"--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("bx run scenarios/incast/incast-64.toml"), std::string::npos);
  EXPECT_NE(outcome.out.find("Exit status: 0"), std::string::npos);
  EXPECT_EQ(bx({"run", "--help"}).status, 0);
  EXPECT_TRUE(bx({"--version"}).out.starts_with("bx 0.1.0 "));
}

}  // namespace
}  // namespace bx::end_to_end
