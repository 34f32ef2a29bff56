// SPDX-License-Identifier: GPL-2.0-only
// Scenarios on networks of several switches, and on one from a file.
#include "tests/end_to_end/command.h"

namespace bx::end_to_end {
namespace {

class TopologyRun : public CommandTest {
 protected:
  std::string scenario(const std::string& fabric) {
    return file("s.toml",
                "name = 'x'\n[fabric]\n" + fabric +
                    "[[workload]]\nkind = 'ps-fetch'\nclients = 0\nservers = '1..3'\nanswer = '64KiB'\n"
                    "[[expect]]\nmetric = 'switch.lossless_drops'\nequals = 0\n");
  }
};

constexpr const char* kNet = R"(hosts = 4
switches = ["a", "b"]
rate = "25Gbps"
delay = "1us"
[[link]]
ends = ["host0..1", "a"]
[[link]]
ends = ["host2..3", "b"]
[[link]]
ends = ["a", "b"]
rate = "100Gbps"
)";

TEST_F(TopologyRun, file__hosts_and_links_are_those_of_the_file) {
  file("net.toml", kNet);
  const std::string s = scenario("topology = 'file'\ntopology_file = 'net.toml'\n");
  const Outcome outcome = bx({"run", s, "--out", "r", "--capture", "a:2"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const auto result_of = result("r");
  const auto& metrics = result_of.at("variants")[0].at("metrics");
  // 3 * 16 packets of 4178 bytes, and one more on its sender's link, at 25 Gb/s, and 2 us.
  EXPECT_NEAR(metrics.at("bound.line_rate").at("value").get<double>(), 49 * 4178 * 8 / 25.0 + 2000, 1);
  EXPECT_GE(metrics.at("fetch.time").at("value").get<double>(), 49 * 4178 * 8 / 25.0);
}

TEST_F(TopologyRun, file__mistakes_in_it_are_named_in_it) {
  file("net.toml", "hosts = 2\nswitches = ['a']\n[[link]]\nends = ['host0', 'c']\nrate = '1Gbps'\n");
  const Outcome wrong = bx({"run", scenario("topology = 'file'\ntopology_file = 'net.toml'\n"), "--no-out"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("net.toml:4:18: error: a link leads to 'c', which does not exist"),
            std::string::npos)
      << wrong.err;
  const Outcome missing = bx({"run", scenario("topology = 'file'\n"), "--no-out"});
  EXPECT_NE(missing.err.find("'fabric.topology' = 'file' needs 'fabric.topology_file'"), std::string::npos)
      << missing.err;
  const Outcome idle = bx({"run", scenario("hosts = 4\ntopology_file = 'net.toml'\n"), "--no-out"});
  EXPECT_NE(idle.err.find("is given, but 'fabric.topology' is not 'file'"), std::string::npos) << idle.err;
  file("net.toml", kNet);
  const Outcome other =
      bx({"run", scenario("hosts = 9\ntopology = 'file'\ntopology_file = 'net.toml'\n"), "--no-out"});
  EXPECT_NE(other.err.find("s.toml:3:9: error: 'fabric.hosts' = 9, but net.toml has 4; leave it out"),
            std::string::npos)
      << other.err;
}

TEST_F(TopologyRun, shapes__keys_of_the_fabric_reach_the_network) {
  const std::vector<std::string> fabrics{
      "hosts = 4\ntopology = 'dumbbell'\nuplink_rate = '50Gbps'\nuplink_delay = '3us'\n",
      "hosts = 4\ntopology = 'leaf-spine'\nleaves = 2\nspines = 2\nreroute_delay = '1ms'\n",
      "hosts = 4\ntopology = 'rail'\npods = 1\nrails = 2\nspines = 1\n",
      "hosts = 4\nprofile = 'th'\npfc.watchdog = 'forward'\npfc.watchdog_detect = '1ms'\n"};
  for (const std::string& fabric : fabrics) {
    const Outcome outcome = bx({"run", scenario(fabric), "--no-out"});
    EXPECT_EQ(outcome.status, 0) << fabric << outcome.out << outcome.err;
  }
}

}  // namespace
}  // namespace bx::end_to_end
