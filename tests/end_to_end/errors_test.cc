// SPDX-License-Identifier: GPL-2.0-only
// What a person does wrong gets a message that says what to do, and a status that a script can tell apart.
#include "tests/end_to_end/command.h"

namespace bx::end_to_end {
namespace {

class Errors : public CommandTest {
 protected:
  // Exit status 2, nothing run, and the message on standard error.
  void expect_refused(const std::string& scenario_file, const std::string& message) {
    const Outcome outcome = bx({"run", scenario_file, "--out", "r"});
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(directory() / "r"));
  }
};

TEST_F(Errors, scenario__unknown_key) {
  expect_refused(
      file("s.toml", incast_scenario("anwser = '1MiB'\n")),
      "s.toml:10:1: error: unknown key 'workload.anwser' = '1MiB'; did you mean 'workload.answer'?");
}

TEST_F(Errors, scenario__wrong_unit) {
  expect_refused(
      file("s.toml", incast_scenario("think_time = '5KiB'\n")),
      "s.toml:10:14: error: 'workload.think_time' = '5KiB' has the unknown unit 'KiB'; the units are ns, us, "
      "ms, s");
}

TEST_F(Errors, scenario__headroom_too_small) {
  expect_refused(
      file("s.toml", incast_scenario("[fabric.pfc]\nheadroom = '4KiB'\n")),
      "s.toml:11:12: error: 'fabric.pfc.headroom' = 4KiB (4096 bytes) is too small: after a pause ");
}

TEST_F(Errors, scenario__host_out_of_range) {
  expect_refused(
      file("s.toml", incast_scenario("[[variant]]\nname = 'v'\nfabric.hosts = 16\n")),
      "'workload.servers' = '1..16' names host 16, but 'fabric.hosts' = 16: there are host0 to host15");
}

TEST_F(Errors, scenario__empty_file) {
  expect_refused(file("s.toml", ""), "s.toml:1:1: error: is empty");
}

TEST_F(Errors, scenario__not_utf8) {
  expect_refused(file("s.toml", incast_scenario("# caf\xe9\n")),
                 "s.toml:10:6: error: is not UTF-8: byte 0xe9");
}

TEST_F(Errors, scenario__100_mb_file) {
  file("s.toml", incast_scenario());
  std::filesystem::resize_file(directory() / "s.toml", 100'000'000);
  expect_refused("s.toml", "s.toml: error: is 100000000 bytes long; a scenario has at most 1048576");
}

TEST_F(Errors, scenario__missing_directory_and_binary) {
  expect_refused("nosuch.toml", "nosuch.toml: error: cannot be read: No such file or directory");
  expect_refused(".", ".: error: is a directory");
  expect_refused(file("s.toml", std::string("a\0b", 3)), "s.toml:1:2: error: is binary");
}

TEST_F(Errors, scenario__metric_that_does_not_exist_is_refused_before_the_run) {
  expect_refused(
      file("s.toml", incast_scenario("[[expect]]\nmetric = 'pfc.puase_frames'\nequals = 0\n")),
      "s.toml:10:1: error: there is no metric 'pfc.puase_frames'; did you mean 'pfc.pause_frames'?");
  expect_refused(file("s.toml", incast_scenario("[[expect]]\nmetric = 'fetch.time'\nat_most = '1KiB'\n")),
                 "s.toml:10:1: error: 'fetch.time' is measured in ns, which 'at most 1KiB' is not");
}

TEST_F(Errors, scenario__that_the_simulator_refuses) {
  expect_refused(file("s.toml", incast_scenario("[[variant]]\nname = 'v'\nfabric.buffer = '64KiB'\n")),
                 "s.toml:12:17: error: 'fabric.buffer' = 64KiB with 'fabric.reserved' = 4KiB: the buffer is");
}

TEST_F(Errors, scenario__the_mistakes_of_all_files_are_reported) {
  file("a.toml", "x = 1\n");
  file("b.toml", "y = 1\n");
  const Outcome outcome = bx({"run", "a.toml", "b.toml", "--no-out"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("a.toml:1:1: error: unknown key 'x'"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("b.toml:1:1: error: unknown key 'y'"), std::string::npos);
}

TEST_F(Errors, out__a_directory_that_cannot_be_written_is_refused_before_the_run) {
  file("s.toml", incast_scenario());
  file("taken", "");
  for (const char* out : {"/proc/nothing", "taken"}) {
    const Outcome outcome = bx({"run", "s.toml", "--out", out});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("use --out DIR or --no-out"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("started"), std::string::npos);
  }
}

TEST_F(Errors, backend_verbs__needs_a_list_of_hosts_that_makes_sense) {
  file("s.toml", incast_scenario());
  const Outcome none = bx({"run", "s.toml", "--on", "verbs", "--no-out"});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("needs --hosts FILE"), std::string::npos) << none.err;
  file("h.toml", "[[host]]\nssh = 'local'\naddress = 'a.example'\n");
  const Outcome wrong = bx({"run", "s.toml", "--on", "verbs", "--hosts", "h.toml", "--no-out"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("h.toml:3:"), std::string::npos) << wrong.err;
  file("h.toml", "[[host]]\nssh = 'local'\naddress = '127.0.0.1'\n");
  const Outcome few = bx({"run", "s.toml", "--on", "verbs", "--hosts", "h.toml", "--no-out"});
  EXPECT_EQ(few.status, 2);
  EXPECT_NE(few.err.find("names 1 hosts, but the scenario has"), std::string::npos) << few.err;
  const Outcome useless = bx({"run", "s.toml", "--hosts", "h.toml", "--no-out"});
  EXPECT_EQ(useless.status, 2);
  EXPECT_NE(useless.err.find("--hosts is for --on verbs"), std::string::npos) << useless.err;
}

// 192.0.2.0/24 is of nobody (RFC 5737), so whatever devices this machine has, none is its.
TEST_F(Errors, backend_verbs__a_host_without_its_device_is_named_in_a_result) {
  file("s.toml", incast_scenario());
  std::string hosts;
  for (int i = 1; i <= 17; ++i) {
    hosts += "[[host]]\nname = 'n" + std::to_string(i) + "'\nssh = 'local'\naddress = '192.0.2." +
             std::to_string(i) + "'\n";
  }
  file("h.toml", hosts);
  const Outcome outcome = bx({"run", "s.toml", "--on", "verbs", "--hosts", "h.toml", "--out", "r"});
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("breach of alive: host"), std::string::npos) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(directory() / "r" / "result.json"));
}

TEST_F(Errors, backend_rxe__refuses_what_real_time_or_its_hosts_cannot_give) {
  file("s.toml", incast_scenario());
  const Outcome twice = bx({"run", "s.toml", "--on", "rxe", "--no-out", "--twice"});
  EXPECT_EQ(twice.status, 2);
  EXPECT_NE(twice.err.find("no digest"), std::string::npos) << twice.err;
  const Outcome many = bx({"run", "s.toml", "--on", "rxe", "--no-out", "--set", "fabric.hosts=65"});
  EXPECT_EQ(many.status, 2);
  EXPECT_NE(many.err.find("at most 64 hosts"), std::string::npos) << many.err;
}

TEST_F(Errors, command_line__mistakes_give_status_2) {
  file("s.toml", incast_scenario());
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"rnu"},
      {"run"},
      {"run", "s.toml", "--on", "moon"},
      {"run", "s.toml", "--engine", "steam"},
      {"run", "s.toml", "--jobs", "0"},
      {"run", "s.toml", "--seeds", "3"},
      {"run", "s.toml", "--seeds", "3..1"},
      {"run", "s.toml", "--seed", "1", "--seeds", "1..2"},
      {"run", "s.toml", "--set", "fabric.raet=1Gbps"},
      {"run", "s.toml", "--config", "nosuch.conf"},
      {"show"},
      {"list", "nosuch"},
  };
  for (const auto& arguments : wrong) {
    const Outcome outcome = bx(arguments);
    EXPECT_EQ(outcome.status, 2) << ::testing::PrintToString(arguments);
    EXPECT_NE(outcome.err, "") << ::testing::PrintToString(arguments);
  }
}

}  // namespace
}  // namespace bx::end_to_end
