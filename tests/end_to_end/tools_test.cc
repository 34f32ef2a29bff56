// SPDX-License-Identifier: GPL-2.0-only
// `bx compare`, `bx doctor` and `bx perf verbs`.
#include "tests/end_to_end/command.h"

namespace bx::end_to_end {
namespace {

class ToolsCommands : public CommandTest {
 protected:
  // Runs the scenario into `directory`.
  void run(const std::string& directory, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"run", "s.toml", "--quiet", "--out", directory};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_LE(bx(arguments).status, 1);
  }
};

TEST_F(ToolsCommands, compare__a_result_with_itself_and_with_another) {
  file("s.toml", incast_scenario());
  run("a");
  run("b", {"--set", "fabric.rate=50Gbps"});
  const Outcome same = bx({"compare", "a", "a/result.json"});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  const Outcome other = bx({"compare", "a", "b"});
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.out.find("DIFFERS"), std::string::npos) << other.out;
  EXPECT_EQ(bx({"compare", "a", "b", "--metric", "fetch.time", "--within", "200%"}).status, 0);
  const Outcome json = bx({"compare", "a", "b", "--json"});
  EXPECT_EQ(json.status, 1);
  EXPECT_FALSE(nlohmann::json::parse(json.out).at("agrees").get<bool>());
}

TEST_F(ToolsCommands, compare__seeds_by_number) {
  file("s.toml", incast_scenario());
  run("a", {"--seeds", "1..2"});
  run("b", {"--seeds", "2..3"});
  const Outcome outcome = bx({"compare", "a", "b"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("differs: seed 1 is in A only\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("differs: seed 3 is in B only\n"), std::string::npos) << outcome.out;
}

TEST_F(ToolsCommands, compare__bad_input_is_status_2) {
  file("s.toml", incast_scenario());
  run("a");
  file("none.json", "{}");
  EXPECT_EQ(bx({"compare", "a", "nowhere"}).status, 2);
  EXPECT_EQ(bx({"compare", "a", "none.json"}).status, 2);
  EXPECT_EQ(bx({"compare", "a"}).status, 2);
  const Outcome within = bx({"compare", "a", "a", "--within", "3us"});
  EXPECT_EQ(within.status, 2);
  EXPECT_NE(within.err.find("write for example 10%"), std::string::npos);
}

TEST_F(ToolsCommands, doctor__of_a_machine_without_devices) {
  std::filesystem::create_directories(directory() / "machine");
  const Outcome outcome = bx({"doctor", "--root", "machine"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("there is no RDMA device"), std::string::npos) << outcome.out;
  const auto json = nlohmann::json::parse(bx({"doctor", "--root", "machine", "--json"}).out);
  EXPECT_EQ(json.at("findings").back().at("check"), "devices");
  EXPECT_EQ(bx({"doctor", "--root", "nowhere"}).status, 2);
  EXPECT_LE(bx({"doctor"}).status, 1) << "this machine, whatever it is";
}

TEST_F(ToolsCommands, perf_verbs__on_loopback) {
  const Outcome outcome =
      bx({"perf", "verbs", "--loopback", "--sizes", "64B..128B", "--time", "1", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("points").size(), 22U);
}

TEST_F(ToolsCommands, perf_verbs__says_what_is_missing) {
  EXPECT_EQ(bx({"perf", "verbs"}).status, 2);
  EXPECT_EQ(bx({"perf", "verbs", "--listen", "--connect", "10.0.0.1"}).status, 2);
  const Outcome sizes = bx({"perf", "verbs", "--loopback", "--sizes", "2MiB"});
  EXPECT_EQ(sizes.status, 2);
  EXPECT_NE(sizes.err.find("64B..1MiB"), std::string::npos);
  const Outcome wrong = bx({"perf", "verbs", "--loopback", "send-latencies"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("the cases are: send-latency"), std::string::npos);
}

TEST_F(ToolsCommands, perf__help_lists_all_cases) {
  const Outcome all = bx({"perf", "--help"});
  EXPECT_NE(all.out.find("fetch-bandwidth"), std::string::npos);
  EXPECT_NE(all.out.find("permutation-1024"), std::string::npos);
  EXPECT_NE(bx({"perf", "sim", "--help"}).out.find("permutation-1024"), std::string::npos);
}

}  // namespace
}  // namespace bx::end_to_end
