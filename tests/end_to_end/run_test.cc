// SPDX-License-Identifier: GPL-2.0-only
// `bx run`: scenarios through the library on both backends.
#include "tests/end_to_end/command.h"

namespace bx::end_to_end {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Run : public CommandTest {
 protected:
  static double metric(const Json& variant, const std::string& name) {
    return variant.at("metrics").at(name).at("value").get<double>();
  }
  // Every variant's digest.
  std::vector<std::string> digests(const std::string& directory) {
    std::vector<std::string> all;
    const Json json = result(directory);
    for (const Json& variant : json.at("variants")) all.push_back(variant.at("digest"));
    return all;
  }
};

TEST_F(Run, incast_16__window_keeps_the_bound_without_a_pause_and_no_window_pauses) {
  const Outcome outcome = bx({"run", source("scenarios/incast/incast-16.toml"), "--out", "r"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const Json json = result("r");
  EXPECT_EQ(json.at("schema_version"), 1);
  EXPECT_EQ(json.at("scenario").at("name"), "incast-16");
  EXPECT_EQ(json.at("backend"), "sim");
  EXPECT_EQ(json.at("engine"), "fast");
  ASSERT_EQ(json.at("variants").size(), 2U);
  const Json& window = json.at("variants")[0];
  const Json& no_window = json.at("variants")[1];
  EXPECT_EQ(window.at("name"), "window");
  EXPECT_EQ(metric(window, "pfc.pause_frames"), 0);
  EXPECT_EQ(metric(window, "switch.lossless_drops"), 0);
  EXPECT_EQ(metric(window, "workload.calls"), 16);
  // 16 * 256 packets of 4178 bytes and the first one's way to the switch, at 100 Gb/s, and 2 us.
  EXPECT_DOUBLE_EQ(metric(window, "bound.line_rate"), 1'371'381.280);
  EXPECT_GE(metric(window, "fetch.time"), metric(window, "bound.line_rate"));
  EXPECT_LE(metric(window, "bound.ratio"), 1.03);
  EXPECT_GE(metric(no_window, "pfc.pause_frames"), 1);
  EXPECT_EQ(metric(no_window, "switch.lossless_drops"), 0);
  EXPECT_EQ(window.at("expectations").size(), 3U);
  for (const Json& variant : json.at("variants")) {
    EXPECT_TRUE(variant.at("oracle").at("breaches").empty());
    for (const Json& expectation : variant.at("expectations")) EXPECT_TRUE(expectation.at("holds"));
  }
  const std::string series = read("r/series-window.csv");
  EXPECT_TRUE(series.starts_with("time_ns,switch_bytes,"));
  EXPECT_GT(std::count(series.begin(), series.end(), '\n'), 200);
  EXPECT_NE(outcome.out.find("bound.line_rate"), std::string::npos);
  EXPECT_NE(outcome.out.find("results: r/result.json"), std::string::npos);
}

TEST_F(Run, of_variant__is_judged_when_all_variants_have_run) {
  const auto scenario = [](const std::string& factor) {
    return incast_scenario(
        "[[variant]]\nname = 'fast'\n[[variant]]\nname = 'slow'\nfabric.rate = '25Gbps'\n"
        "[[expect]]\nmetric = 'fetch.time'\nat_most = " +
        factor + "\nof_variant = 'slow'\nvariant = 'fast'\n");
  };
  const Outcome good = bx({"run", file("s.toml", scenario("0.5")), "--out", "r"});
  ASSERT_EQ(good.status, 0) << good.out << good.err;
  const Json json = result("r");
  const Json& verdict = json.at("variants")[0].at("expectations").back();
  EXPECT_TRUE(verdict.at("holds"));
  EXPECT_EQ(verdict.at("of_variant"), "slow");
  EXPECT_EQ(verdict.at("reference").at("value"),
            json.at("variants")[1].at("metrics").at("fetch.time").at("value"));
  const Outcome bad = bx({"run", file("t.toml", scenario("0.1")), "--no-out", "--jobs", "2"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.out.find("fetch.time at most 0.1 times fetch.time of variant slow: measured"),
            std::string::npos)
      << bad.out;
}

// All connect at the same instant, so the server answers many handshakes in one dispatch.
TEST_F(Run, many_clients__of_one_server_have_the_receives_that_they_were_told_of) {
  file("many.toml",
       "name = 'many'\n[fabric]\nhosts = 33\n[[workload]]\nkind = 'ps-fetch'\nclients = '1..32'\n"
       "servers = 0\nanswer = '64B'\n");
  for (const char* backend : {"sim", "loopback"}) {
    const Outcome outcome = bx({"run", "many.toml", "--on", backend, "--out", "r", "--quiet"});
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_EQ(metric(result("r").at("variants")[0], "call.errors"), 0) << backend;
  }
}

TEST_F(Run, faults__that_hit_no_packet_are_noted) {
  const Outcome outcome =
      bx({"run",
          file("s.toml", incast_scenario("[[fault]]\nkind = 'ecn-mark'\ntarget = 'host1:qp1'\n"
                                         "psn = 1000000\n[[fault]]\nkind = 'cnp-loss'\n"
                                         "target = 'host2'\n")),
          "--no-out"});
  EXPECT_NE(outcome.err.find("number 1 (ecn-mark of host1:qp1) hit no packet"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("number 2 (cnp-loss of host2) hit no packet"), std::string::npos) << outcome.err;
}

TEST_F(Run, keys_without_effect__warn_and_run) {
  const Outcome outcome = bx({"run", file("s.toml", incast_scenario()), "--no-out", "--set",
                              "fabric.congestion_control.dcqcn.g=0.5"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: 'fabric.congestion_control.dcqcn.g' has no effect: it needs "
                             "fabric.congestion_control.algorithm = dcqcn"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Run, digest__the_same_twice_on_both_engines_and_however_it_is_sampled) {
  const std::string scenario = file(
      "s.toml",
      incast_scenario("[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\nlibrary.window.enabled = false\n"));
  EXPECT_EQ(bx({"run", scenario, "--twice", "--out", "fast"}).status, 0);
  EXPECT_EQ(bx({"run", scenario, "--engine", "stock", "--out", "stock"}).status, 0);
  EXPECT_EQ(bx({"run", scenario, "--set", "measure.series=777us", "--jobs", "2", "--out", "sampled"}).status,
            0);
  const auto expected = digests("fast");
  ASSERT_EQ(expected.size(), 2U);
  EXPECT_NE(expected[0], expected[1]);
  EXPECT_EQ(digests("stock"), expected);
  EXPECT_EQ(digests("sampled"), expected);
}

TEST_F(Run, digest__depends_on_the_seed) {
  const std::string scenario = file("s.toml", incast_scenario());
  EXPECT_EQ(bx({"run", scenario, "--seeds", "1..2", "--jobs", "2", "--set", "workload.answer=1KiB..64KiB",
                "--out", "r"})
                .status,
            0);
  EXPECT_NE(digests("r/seed-1"), digests("r/seed-2"));
  EXPECT_EQ(result("r/seed-2").at("seed"), 2);
}

TEST_F(Run, loopback__runs_what_it_can_and_says_what_it_cannot_see) {
  const Outcome outcome =
      bx({"run", source("scenarios/incast/incast-16.toml"), "--on", "loopback", "--out", "r", "--twice"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const Json json = result("r");
  const Json& window = json.at("variants")[0];
  EXPECT_EQ(json.at("backend"), "loopback");
  EXPECT_FALSE(json.contains("engine"));
  EXPECT_EQ(metric(window, "workload.answer_bytes"), 16 * 1024 * 1024);
  EXPECT_FALSE(window.at("metrics").contains("pfc.pause_frames"));
  EXPECT_EQ(window.at("expectations_skipped").size(), 3U);
  const Json given = window.at("taken_as_given");
  EXPECT_NE(std::find(given.begin(), given.end(), "fabric.buffer"), given.end());
}

TEST_F(Run, workloads__ps_fetch_with_several_clients_and_rpc_at_once_on_both_backends) {
  const std::string scenario = file("s.toml", R"(name = "mixed"
[fabric]
hosts = 8
[[workload]]
kind = "ps-fetch"
clients = "0..1"
servers = "2..5"
answer = [{ size = "0B" }, { size = "64B", weight = 3 }, "8KiB", "1MiB"]
request = "16B..32KiB"
calls = 5
warm_up = 1
concurrency = 2
think_time = "3us"
[[workload]]
kind = "rpc"
clients = "6..7"
servers = "2..5"
answer = "uniform 0B..20KiB"
calls = 40
concurrency = 4
[[expect]]
metric = "workload.calls"
equals = 120
[[variant]]
name = "pull"
[[variant]]
name = "granted-write"
library.rendezvous.policy = "granted-write"
)");
  for (const char* backend : {"sim", "loopback"}) {
    const Outcome outcome = bx({"run", scenario, "--on", backend, "--out", backend});
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    const Json written = result(backend);  // named, because a loop does not keep a temporary alive
    for (const Json& variant : written.at("variants")) EXPECT_EQ(variant.at("expectations").size(), 1U);
  }
}

TEST_F(Run, expectation__that_does_not_hold_gives_status_1_and_is_named) {
  const std::string scenario =
      file("s.toml", incast_scenario("[[expect]]\nmetric = 'fetch.time'\nat_most = '1us'\n"));
  const Outcome outcome = bx({"run", scenario, "--out", "r"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("FAIL base  fetch.time at most 1us: measured 1."), std::string::npos)
      << outcome.out;
  EXPECT_EQ(result("r").at("good"), false);
  EXPECT_EQ(result("r").at("variants")[0].at("expectations")[0].at("holds"), false);
}

TEST_F(Run, oracle__a_run_that_does_not_end_is_a_breach_that_names_the_calls) {
  const std::string scenario = file("s.toml", incast_scenario("[measure]\nlimit = '1ms'\n"));
  const Outcome outcome = bx({"run", scenario, "--out", "r"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("breach of finished: the limit of 1ms simulated time is reached"),
            std::string::npos)
      << outcome.err;
  const Json breaches = result("r").at("variants")[0].at("oracle").at("breaches");
  ASSERT_GE(breaches.size(), 2U);
  EXPECT_NE(breaches[1].at("detail").get<std::string>().find("host0: 16 calls outstanding"),
            std::string::npos);
  EXPECT_NE(result("r").at("variants")[0].at("hang").at("reason").get<std::string>().find("the limit of 1ms"),
            std::string::npos);
}

TEST_F(Run, out__without_a_name_results_go_to_a_directory_of_their_own) {
  const std::string scenario = file("s.toml", incast_scenario());
  EXPECT_EQ(bx({"run", scenario, "--quiet"}).status, 0);
  ASSERT_TRUE(fs::exists(directory() / "results/runs/incast"));
  const fs::path made = *fs::directory_iterator(directory() / "results/runs/incast");
  EXPECT_TRUE(made.filename().string().ends_with("-sim-1")) << made;
  EXPECT_TRUE(fs::exists(made / "result.json"));
  fs::remove_all(directory() / "results");
  EXPECT_EQ(bx({"run", scenario, "--no-out"}).status, 0);
  EXPECT_FALSE(fs::exists(directory() / "results"));
}

TEST_F(Run, interrupt__keeps_what_was_measured) {
  const std::string scenario =
      file("s.toml", incast_scenario("calls = 20000\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n"));
  const Outcome outcome = bx_interrupted_at("measure,", {"run", scenario, "--out", "r"});
  EXPECT_EQ(outcome.status, 130) << outcome.out;
  const Json json = result("r");
  EXPECT_EQ(json.at("interrupted"), true);
  EXPECT_EQ(json.at("good"), false);
  ASSERT_EQ(json.at("variants").size(), 1U);  // the second never began
  const Json& variant = json.at("variants")[0];
  EXPECT_EQ(variant.at("status"), "interrupted");
  EXPECT_GT(metric(variant, "workload.calls"), 0);
  EXPECT_LT(metric(variant, "workload.calls"), 320'000);
  EXPECT_TRUE(variant.at("oracle").at("breaches").empty());
  EXPECT_GT(read("r/series-a.csv").size(), 200U);
}

}  // namespace
}  // namespace bx::end_to_end
