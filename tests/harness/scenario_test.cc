// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/scenario.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/scenario/overrides.h"
#include "sim/provider/sim_fabric.h"

namespace bx::harness {
namespace {

constexpr std::string_view kGood = R"(name = "x"
title = "a title"
seed = 7
[fabric]
hosts = 5
[[workload]]
kind = "incast"
clients = 0
servers = "1..4"
answer = "64KiB"
)";

std::optional<Scenario> parse(std::string_view text, Diagnostics& diagnostics) {
  return parse_scenario(text, "s.toml", {}, diagnostics);
}

Scenario good(const std::string& more = "") {
  Diagnostics diagnostics;
  auto scenario = parse(std::string(kGood) + more, diagnostics);
  EXPECT_TRUE(scenario) << diagnostics.text();
  return scenario ? std::move(*scenario) : Scenario{};
}

std::string errors_of(std::string_view text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse(text, diagnostics).has_value());
  return diagnostics.text();
}
// Of the good scenario with more after it; kGood has 10 lines.
std::string errors_with(const std::string& more) {
  return errors_of(std::string(kGood) + more);
}
std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kGood);
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(scenario, parse_scenario__a_good_one_with_defaults) {
  const Scenario scenario = good();
  EXPECT_EQ(scenario.name, "x");
  EXPECT_EQ(scenario.title, "a title");
  ASSERT_EQ(scenario.variants.size(), 1U);
  EXPECT_EQ(scenario.variants[0].name, "base");
  const Settings& settings = scenario.variants[0].settings;
  EXPECT_EQ(settings.fabric.seed, 7U);
  EXPECT_EQ(settings.fabric.hosts, 5U);
  EXPECT_EQ(settings.fabric.rate_bps, 100'000'000'000U);
  EXPECT_EQ(settings.origin("fabric.hosts"), Origin::scenario);
  EXPECT_EQ(settings.origin("fabric.rate"), Origin::default_value);
  ASSERT_EQ(settings.workloads.size(), 1U);
  EXPECT_EQ(settings.workloads[0].servers, (HostList{1, 2, 3, 4}));
  EXPECT_EQ(settings.workloads[0].answer.low, 65'536U);
}

TEST(scenario, parse_scenario__sections_nest_and_dotted_keys_are_the_same) {
  const Scenario scenario = good("[library]\nwindow.per_peer = '64KiB'\n[fabric.pfc]\nenabled = false\n");
  EXPECT_EQ(scenario.variants[0].settings.library.window_per_peer, 65'536U);
  EXPECT_FALSE(scenario.variants[0].settings.fabric.pfc.enabled);
}

TEST(scenario, parse_scenario__variants_override_what_they_name) {
  const Scenario scenario = good(
      "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\nlibrary.window.enabled = false\nworkload.answer = "
      "'1KiB'\n"
      "fabric.rate = '25Gbps'\n");
  ASSERT_EQ(scenario.variants.size(), 2U);
  EXPECT_EQ(scenario.variants[0].settings.library.window_enabled, 1U);
  const Settings& b = scenario.variants[1].settings;
  EXPECT_EQ(b.library.window_enabled, 0U);
  EXPECT_EQ(b.workloads[0].answer.low, 1024U);
  EXPECT_EQ(b.fabric.rate_bps, 25'000'000'000U);
  EXPECT_EQ(b.origin("library.window.enabled"), Origin::variant);
}

TEST(scenario, parse_scenario__the_hash_is_of_the_bytes) {
  const std::string hash = good().hash;
  EXPECT_EQ(hash.size(), std::string_view("bxdigest64:").size() + 16);
  EXPECT_EQ(good().hash, hash);
  EXPECT_NE(good("# a comment\n").hash, hash);
}

TEST(scenario, parse_scenario__unknown_keys) {
  EXPECT_EQ(
      errors_with("[fabric.pfc]\nenabeld = true\n"),
      "s.toml:12:1: error: unknown key 'fabric.pfc.enabeld' = true; did you mean 'fabric.pfc.enabled'?\n");
  EXPECT_EQ(errors_of(replaced("hosts = 5", "hosts = 5\nraet = '1Gbps'")),
            "s.toml:6:1: error: unknown key 'fabric.raet' = '1Gbps'; did you mean 'fabric.rate'?\n");
  EXPECT_EQ(errors_of("mtu = 4096\n" + std::string(kGood)),
            "s.toml:1:1: error: unknown key 'mtu' = 4096; did you mean 'fabric.mtu'?\n");
  EXPECT_EQ(errors_with("[[varaint]]\nname = 'a'\n"),
            "s.toml:11:3: error: unknown key 'varaint' = a list; did you mean 'variant'?\n");
  EXPECT_EQ(
      errors_with("[fabric.pfc]\ntemperature = 3\n"),
      "s.toml:12:1: error: unknown key 'fabric.pfc.temperature' = 3; the keys of 'fabric.pfc' are: enabled, "
      "headroom, xon_offset, quanta, watchdog, watchdog_detect, watchdog_restore, watchdog_poll\n");
  EXPECT_EQ(errors_with("[library]\nwindow.per_pear = 3\n"),
            "s.toml:12:8: error: unknown key 'library.window.per_pear' = 3; did you mean "
            "'library.window.per_peer'?\n");
  EXPECT_EQ(errors_with("[[variant]]\nname = 'a'\nlibrary.windwo.enabled = false\n"),
            "s.toml:13:9: error: unknown key 'library.windwo' = a table; did you mean "
            "'library.window'?\n");
}

TEST(scenario, parse_scenario__wrong_types_units_and_ranges_name_the_place_of_the_value) {
  EXPECT_EQ(
      errors_of(replaced("hosts = 5", "hosts = 'five'")),
      "s.toml:5:9: error: 'fabric.hosts' = 'five' has the wrong type; allowed: whole number, 2 to 4096\n");
  EXPECT_EQ(errors_of(replaced("hosts = 5", "hosts = 5\nrate = '100Gb'")),
            "s.toml:6:8: error: 'fabric.rate' = '100Gb' has the unknown unit 'Gb'; the units are bps, kbps, "
            "Mbps, Gbps, "
            "Tbps\n");
  EXPECT_EQ(errors_of(replaced("seed = 7", "seed = -7")),
            "s.toml:3:8: error: 'seed' = -7 is negative; allowed: whole number, 0 to 9223372036854775807\n");
  EXPECT_EQ(
      errors_of("fabric = 3\nname = 'x'\n[[workload]]\nkind = 'rpc'\nclients = 0\nservers = 1\nanswer = 1\n")
          .substr(0, 60),
      "s.toml:1:1: error: 'fabric' = 3 is not a value but a table; ");
}

constexpr const char* kFlows =
    "name = 'x'\nfabric.hosts = 4\n[[workload]]\nkind = 'flows'\nsources = '1..3'\nsinks = 0\nsize = "
    "'1MiB'\n";

std::string errors_with_set(const std::string& text, const std::string& set) {
  Diagnostics diagnostics;
  std::vector<std::string> warnings;
  OverrideSources sources;
  sources.environment = false;
  sources.sets = {set};
  const auto overrides = read_overrides(sources, diagnostics, warnings);
  parse_scenario(text, "s.toml", overrides, diagnostics);
  return diagnostics.text();
}

TEST(scenario, parse_scenario__flows_have_keys_of_their_own) {
  EXPECT_EQ(errors_with_set(kFlows, "seed=2"), "");
  EXPECT_EQ(errors_of("name = 'x'\n[[workload]]\nkind = 'flows'\nsources = 1\nsinks = 0\n"),
            "s.toml:2:1: error: [[workload]] number 1 needs 'size' (bytes, 1B to 1TiB)\n");
  EXPECT_EQ(
      errors_of(std::string(kFlows) + "answer = '1KiB'\n"),
      "s.toml:8:10: error: 'workload.answer' is no key of a workload of kind 'flows'; flows have sources, "
      "sinks, size, message\n");
  EXPECT_EQ(
      errors_of(std::string(kFlows) + "[[variant]]\nname = 'v'\nworkload.calls = 3\n"),
      "s.toml:10:18: error: 'workload.calls' is no key of a workload of kind 'flows'; flows have sources, "
      "sinks, size, message\n");
}

TEST(scenario, parse_scenario__flows_are_checked) {
  EXPECT_EQ(errors_of("name = 'x'\n[[workload]]\nkind = 'flows'\nsources = '0..1'\nsinks = 0\nsize = 1\n"),
            "s.toml:4:11: error: host 0 is both a source and a sink of [[workload]] number 1\n");
}

TEST(scenario, parse_scenario__set_by_index) {
  EXPECT_EQ(errors_with_set(kFlows, "workload.0.size=64KiB"), "");
  EXPECT_EQ(
      errors_with_set(kFlows, "workload.1.size=64KiB"),
      "--set workload.1.size=64KiB: error: there is no workload 1: the scenario has 1, counted from 0\n");
  EXPECT_EQ(
      errors_with_set(kFlows, "workload.0.calls=3"),
      "--set workload.0.calls=3: error: 'workload.calls' is no key of a workload of kind 'flows'; flows "
      "have sources, sinks, size, message\n");
  EXPECT_EQ(
      errors_with_set(kFlows, "workload.0.kind=rpc"),
      "--set workload.0.kind=rpc: error: workload 0 is of kind 'flows' and cannot become 'rpc', which has "
      "other keys\n");
}

TEST(scenario, parse_scenario__a_variant_reaches_one_workload_or_fault_by_its_index) {
  const std::string two =
      "[[workload]]\nkind = 'rpc'\nclients = 0\nservers = 1\nanswer = '1KiB'\n"
      "[[fault]]\nkind = 'loss'\ntarget = 'host1'\nprobability = 0.1\n"
      "[[fault]]\nkind = 'loss'\ntarget = 'host2'\nprobability = 0.1\n"
      "[[variant]]\nname = 'v'\n";
  const Settings settings =
      good(two + "workload.1.answer = '4KiB'\nfault.0.probability = 0.5\n").variants[0].settings;
  EXPECT_EQ(settings.workloads[0].answer.largest(), 65536U);
  EXPECT_EQ(settings.workloads[1].answer.largest(), 4096U);
  EXPECT_EQ(settings.faults[0].probability, 0.5);
  EXPECT_EQ(settings.faults[1].probability, 0.1);
  EXPECT_EQ(errors_with(two + "workload.2.answer = '4KiB'\n"),
            "s.toml:26:21: error: there is no workload 2: the scenario has 2, counted from 0\n");
  EXPECT_EQ(errors_with(two + "fault.2.probability = 0.5\n"),
            "s.toml:26:23: error: there is no fault 2: the scenario has 2, counted from 0\n");
}

TEST(scenario, parse_scenario__ecn_bits_are_the_nics) {
  EXPECT_EQ(errors_with("[library]\npath.traffic_class = 107\n"),
            "s.toml:12:22: error: 'library.path.traffic_class' = 107 sets ECN bits, which are the NIC's; the "
            "DSCP alone is 104\n");
  EXPECT_EQ(errors_of(std::string(kFlows) + "traffic_class = 255\n"),
            "s.toml:8:17: error: 'workload.traffic_class' = 255 sets ECN bits, which are the NIC's; the DSCP "
            "alone is 252\n");
}

TEST(scenario, parse_scenario__a_network_that_cannot_be_read_draws_no_further_errors) {
  EXPECT_EQ(errors_of(replaced("hosts = 5", "topology = 'file'\ntopology_file = 'nosuch.toml'")),
            "nosuch.toml: error: cannot be read: No such file or directory\n");
  EXPECT_EQ(errors_of(replaced("hosts = 5", "topology = 'file'")),
            "s.toml:5:12: error: 'fabric.topology' = 'file' needs 'fabric.topology_file'\n");
}

TEST(scenario, parse_scenario__workloads) {
  EXPECT_EQ(errors_of("name = 'x'\n"), "s.toml:1:1: error: a scenario needs at least one [[workload]]\n");
  EXPECT_EQ(errors_of("title = 'x'\n[[workload]]\nkind = 'incast'\nclients = 0\nservers = 1\n"),
            "s.toml:1:1: error: a scenario needs a 'name', for example name = 'incast-64'\n"
            "s.toml:2:1: error: [[workload]] number 1 needs 'answer' (size, range or list of sizes, 0B to "
            "64MiB)\n");
  EXPECT_EQ(errors_of(replaced("\"incast\"", "\"ps-push\"")),
            "s.toml:7:8: error: 'workload.kind' = 'ps-push' is not available; one of: ps-fetch, incast, rpc, "
            "flows\n");
  EXPECT_EQ(errors_of("name = 'x'\n[workload]\nkind = 'rpc'\n"),
            "s.toml:2:2: error: 'workload' = a table is not a list of tables; write [[workload]]\n");
}

TEST(scenario, parse_scenario__names) {
  EXPECT_EQ(
      errors_of(replaced("name = \"x\"", "name = \"../x\"")),
      "s.toml:1:8: error: 'name' = '../x' is not a name; a name has 1 to 64 of a-z, 0-9, '-', '_' and '.'\n");
  EXPECT_EQ(errors_with("[[variant]]\nname = 'a'\n[[variant]]\nname = 'a'\n"),
            "s.toml:13:1: error: there is already a variant named 'a' in line 11\n");
  EXPECT_EQ(errors_with("[[variant]]\n"), "s.toml:11:1: error: a [[variant]] needs a 'name'\n");
}

TEST(scenario, parse_scenario__transport_that_does_not_exist_yet) {
  EXPECT_EQ(errors_with("[[variant]]\nname = 'tcp'\ntransport = 'tcp'\n"),
            "s.toml:13:13: error: 'transport' = 'tcp' is not available; one of: rdma\n");
}

TEST(scenario, parse_scenario__faults_with_overrides_of_variants) {
  const Scenario scenario = good(
      "[[fault]]\nkind = 'loss'\ntarget = 'host1'\nprobability = 1e-3\nat = '2us'\n"
      "[[fault]]\nkind = 'loss'\ntarget = 'host0'\nprobability = 0.5\nenabled = false\n"
      "[[variant]]\nname = 'a'\n"
      "[[variant]]\nname = 'b'\nfault.probability = 0.25\nfault.enabled = true\n");
  const Settings& a = scenario.variants[0].settings;
  const Settings& b = scenario.variants[1].settings;
  ASSERT_EQ(a.faults.size(), 2U);
  EXPECT_EQ(a.faults[0].probability, 1e-3);
  EXPECT_EQ(a.faults[0].at_ns, 2000U);
  EXPECT_FALSE(a.faults[1].enabled);
  EXPECT_EQ(b.faults[0].probability, 0.25);
  EXPECT_EQ(b.faults[1].probability, 0.25);
  EXPECT_TRUE(b.faults[1].enabled);
  const sim::FaultSpec spec = a.faults[0].spec();
  EXPECT_EQ(spec.kind, sim::FaultKind::loss);
  EXPECT_EQ(spec.target, "host1");
  EXPECT_EQ(spec.at, sim::microseconds{2});
  EXPECT_EQ(spec.given, sim::fault_field::kProbability);
}

TEST(scenario, parse_scenario__faults_that_cannot_be_are_named_where_they_stand) {
  EXPECT_EQ(errors_with("[[fault]]\nkind = 'link-down'\ntraget = 'host1'\n"),
            "s.toml:11:1: error: [[fault]] number 1 needs 'target' (text)\n"
            "s.toml:13:1: error: unknown key 'fault.traget' = 'host1'; did you mean 'fault.target'?\n");
  EXPECT_TRUE(
      errors_with("[[fault]]\nkind = 'meteor'\ntarget = 'host1'\n")
          .starts_with("s.toml:12:8: error: 'fault.kind' = 'meteor' is not available; one of: link-down, "
                       "link-flap, loss, drop, corrupt, "));
  EXPECT_TRUE(errors_with("[[fault]]\nkind = 'link-down'\ntarget = 'host9'\n")
                  .starts_with(
                      "s.toml:13:10: error: fault.target = 'host9' does not exist: there are host0 to host"));
  EXPECT_EQ(errors_with("[[fault]]\nkind = 'loss'\ntarget = 'host1'\n"),
            "s.toml:12:8: error: fault.kind = loss needs probability\n");
  EXPECT_EQ(
      errors_with("[[fault]]\nkind = 'black-hole'\ntarget = 'host1'\npsn = 3\n"),
      "s.toml:14:7: error: fault.psn is no parameter of kind = black-hole on target = host1, whose are: "
      "duration\n");
  EXPECT_EQ(
      errors_with("[[fault]]\nkind = 'process-kill'\ntarget = 'host0'\n"),
      "s.toml:13:10: error: fault.target = 'host0' calls: process-kill is done to hosts that only serve\n");
}

TEST(scenario, parse_scenario__syntax_errors_and_duplicates) {
  EXPECT_EQ(errors_of("name = \n").substr(0, 35), "s.toml:1:8: error: not valid TOML: ");
  EXPECT_NE(errors_of("name = 'x'\nname = 'y'\n").find("s.toml:2:"), std::string::npos);
}

TEST(scenario, parse_scenario__all_mistakes_are_reported_up_to_twenty) {
  std::string text = "name = 'x'\n[fabric]\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("zzzzzzzzzzzz{} = 1\n", i);
  const std::string errors = errors_of(text);
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 21);
  EXPECT_TRUE(errors.ends_with("and 11 more errors\n")) << errors;  // 30 keys and the missing workload
}

TEST(scenario_check, check_variant__hosts_that_do_not_exist) {
  EXPECT_EQ(errors_of(replaced("1..4", "1..64")),
            "s.toml:9:11: error: 'workload.servers' = '1..64' names host 64, but 'fabric.hosts' = 5: there "
            "are host0 to "
            "host4\n");
  EXPECT_EQ(
      errors_of(replaced("clients = 0", "clients = 5")),
      "s.toml:8:11: error: 'workload.clients' = '5' names host 5, but 'fabric.hosts' = 5: there are host0 to "
      "host4\n");
}

TEST(scenario_check, check_variant__clients_and_servers) {
  EXPECT_EQ(errors_of(replaced("clients = 0", "clients = 3")),
            "s.toml:8:11: error: host 3 is both a client and a server of [[workload]] number 1\n");
  EXPECT_EQ(
      errors_of(replaced("servers = \"1..4\"", "servers = \"2..4\"")
                    .replace(replaced("servers = \"1..4\"", "servers = \"2..4\"").find("clients = 0"), 11,
                             "clients = '0..1'")),
      "s.toml:8:11: error: 'workload.clients' = '0..1' are 2 hosts, but an incast has one client; use kind = "
      "'ps-fetch'\n");
}

TEST(scenario_check, check_variant__too_little_headroom_names_configured_needed_and_remedy) {
  const std::uint64_t needed = sim::SimFabric::headroom_needed_bytes(good().variants[0].settings.fabric);
  ASSERT_GT(needed, 10'240U);
  EXPECT_EQ(
      errors_with("[fabric.pfc]\nheadroom = '10KiB'\n"),
      fmt::format(
          "s.toml:12:12: error: 'fabric.pfc.headroom' = 10KiB (10240 bytes) is too small: after a pause {} "
          "bytes can still arrive at 100Gbps over 1us with MTU 4096, and a lossless class would drop; "
          "write 'auto' or at least '{}B'\n",
          needed, needed));
  good(fmt::format("[fabric.pfc]\nheadroom = '{}B'\n", needed));  // just enough
  good("[fabric.pfc]\nheadroom = '10KiB'\nenabled = false\n");    // nobody needs it
}

TEST(scenario_check, check_variant__fabric) {
  EXPECT_EQ(
      errors_of(replaced("hosts = 5", "hosts = 5\nmtu = 3000")),
      "s.toml:6:7: error: 'fabric.mtu' = 3000 is not a path MTU; allowed: 256, 512, 1024, 2048, 4096\n");
  EXPECT_EQ(errors_with("[fabric.ecn]\nkmin = '1MiB'\n"),
            "s.toml:12:8: error: 'fabric.ecn.kmin' = 1MiB is above 'fabric.ecn.kmax' = 400KiB\n");
}

TEST(scenario_check, check_variant__a_plan_that_is_too_large) {
  EXPECT_EQ(errors_with("calls = 1000000\nwarm_up = 1000000\n"),
            "s.toml:11:9: error: [[workload]] number 1 plans 8000000 calls; the limit is 5000000\n");
}

}  // namespace
}  // namespace bx::harness
