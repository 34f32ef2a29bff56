// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/scenario/key_table.h"

namespace bx::harness {
namespace {

Parsed<Converted> convert_text(std::string_view key, std::string_view toml) {
  return convert(*find_key(key), parse_loose_value(toml));
}
std::string error_of(std::string_view key, std::string_view toml) {
  const auto value = convert_text(key, toml);
  return value ? "no error" : value.error();
}

TEST(key_table, scenario_keys__names_are_unique_and_defaults_are_allowed) {
  std::set<std::string> names;
  for (const KeySpec& key : scenario_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.sentence.empty()) << key.name;
    if (key.required) continue;
    // Everything that is shown can be written: the default reads back as itself.
    const auto value = convert(key, parse_loose_value(key.default_text()));
    ASSERT_TRUE(value) << value.error();
    Settings settings;
    settings.workloads.emplace_back();
    if (key.of_workload()) {
      key.set_workload(settings.workloads[0], *value);
      EXPECT_EQ(key.get_workload(settings.workloads[0]), key.default_text());
    } else if (key.of_fault()) {
      FaultEntry fault;
      key.set_fault(fault, *value);
      EXPECT_EQ(key.get_fault(fault), key.default_text());
    } else {
      key.set(settings, *value);
      EXPECT_EQ(key.get(settings), key.default_text());
    }
  }
}

TEST(key_table, scenario_keys__has_every_knob) {
  for (const KnobSpec& knob : knobs()) EXPECT_NE(find_key("library." + std::string(knob.name)), nullptr);
}

TEST(key_value, convert__flag_and_choice) {
  EXPECT_EQ(convert_text("fabric.pfc.enabled", "false")->number, 0U);
  EXPECT_EQ(error_of("fabric.pfc.enabled", "1"),
            "'fabric.pfc.enabled' = 1 has the wrong type; allowed: true or false");
  EXPECT_EQ(convert_text("workload.kind", "rpc")->number, 2U);
  EXPECT_EQ(error_of("workload.kind", "ps-push"),
            "'workload.kind' = 'ps-push' is not available; one of: ps-fetch, incast, rpc, flows");
}

TEST(key_value, convert__congestion_control) {
  EXPECT_EQ(convert_text("fabric.congestion_control.algorithm", "dcqcn")->text, "dcqcn");
  EXPECT_EQ(error_of("fabric.congestion_control.algorithm", "hpcc"),
            "'fabric.congestion_control.algorithm' = 'hpcc' is not available; one of: none, dcqcn, swift");
  EXPECT_EQ(error_of("fabric.congestion_control.profile", "zhu16"),
            "'fabric.congestion_control.profile' = 'zhu16' is not available; one of: zhu15, nvidia, alibaba");
  EXPECT_EQ(error_of("fabric.congestion_control.cnp_scope", "host"),
            "'fabric.congestion_control.cnp_scope' = 'host' is not available; one of: auto, port, "
            "address-pair, queue-pair");
  EXPECT_EQ(convert_text("fabric.congestion_control.dcqcn.g", "auto")->real, 0);
  EXPECT_EQ(convert_text("fabric.congestion_control.dcqcn.g", "0.25")->real, 0.25);
  EXPECT_EQ(error_of("fabric.congestion_control.dcqcn.g", "2"),
            "'fabric.congestion_control.dcqcn.g' = 2 is out of range; allowed: number, 0 to 1, or auto");
  EXPECT_EQ(convert_text("fabric.congestion_control.dcqcn.threshold", "auto")->number, 0U);
  EXPECT_EQ(error_of("fabric.congestion_control.dcqcn.threshold", "0"),
            "'fabric.congestion_control.dcqcn.threshold' = 0 is out of range; allowed: whole number, 1 to "
            "1000, or auto");
  EXPECT_EQ(convert_text("fabric.congestion_control.cnp_interval", "4us")->number, 4000U);
  EXPECT_EQ(convert_text("fabric.congestion_control.dcqcn.rate_ai", "40Mbps")->number, 40'000'000U);
}

TEST(key_value, convert__count) {
  EXPECT_EQ(convert_text("fabric.hosts", "65")->number, 65U);
  EXPECT_EQ(error_of("fabric.hosts", "1"),
            "'fabric.hosts' = 1 is out of range; allowed: whole number, 2 to 4096");
  EXPECT_EQ(error_of("fabric.hosts", "-3"),
            "'fabric.hosts' = -3 is negative; allowed: whole number, 2 to 4096");
  EXPECT_EQ(error_of("fabric.hosts", "2.5"),
            "'fabric.hosts' = 2.5 has the wrong type; allowed: whole number, 2 to 4096");
  EXPECT_EQ(error_of("fabric.hosts", "many"),
            "'fabric.hosts' = 'many' has the wrong type; allowed: whole number, 2 to 4096");
}

TEST(key_value, convert__numbers_by_index) {
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(convert_text("fabric.weights", "[0, 1, 2, 3, 4, 5, 6, 1000]")->numbers,
            (Numbers{0, 1, 2, 3, 4, 5, 6, 1000}));
  EXPECT_EQ(convert_text("fabric.weights", "{ 3 = 5, 7 = 1 }")->numbers, (Numbers{0, 0, 0, 5, 0, 0, 0, 1}));
  const std::string allowed =
      "; allowed: list of 8 whole numbers, 0 to 1000, or a table of them by index as { 3 = 1000 }";
  EXPECT_EQ(error_of("fabric.weights", "3"), "'fabric.weights' = 3 has the wrong type" + allowed);
  EXPECT_EQ(error_of("fabric.weights", "[1, 2]"), "'fabric.weights' = a list has 2 items" + allowed);
  EXPECT_EQ(error_of("fabric.weights", "[0, 1, 2, 3, 4, 5, 6, 1001]"),
            "'fabric.weights' = a list has the item 1001" + allowed);
  EXPECT_EQ(error_of("fabric.weights", "{ 3 = -5 }"), "'fabric.weights' = a table has 3 = -5" + allowed);
  EXPECT_EQ(error_of("fabric.weights", "{ 3 = 'high' }"),
            "'fabric.weights' = a table has 3 = 'high'" + allowed);
  for (const char* index : {"8", "-1", "03", "high"}) {
    EXPECT_EQ(
        error_of("fabric.weights", fmt::format("{{ {} = 5 }}", index)),
        fmt::format("'fabric.weights' = a table has the unknown index '{}'; an index is 0 to 7", index));
  }
}

TEST(key_value, convert__a_long_list_is_shown_by_what_differs) {
  Settings settings;
  const KeySpec& key = *find_key("fabric.dscp_map");
  EXPECT_EQ(key.get(settings), "{}");
  key.set(settings, *convert_text("fabric.dscp_map", "{ 46 = 6, 0 = 3, 63 = 7 }"));
  EXPECT_EQ(settings.fabric.scheduling.priorities.dscp[46], 6);
  EXPECT_EQ(settings.fabric.scheduling.priorities.dscp[45], 5);  // its top three bits
  EXPECT_EQ(key.get(settings), "{ 0 = 3, 46 = 6 }");
  EXPECT_EQ(error_of("fabric.dscp_map", "{ 64 = 1 }"),
            "'fabric.dscp_map' = a table has the unknown index '64'; an index is 0 to 63");
  EXPECT_FALSE(convert_text("fabric.dscp_map", "{ 46 = 8 }").has_value());
}

TEST(key_value, convert__members) {
  EXPECT_EQ(convert_text("fabric.lossless", "[4, 3]")->number, 0x18U);
  EXPECT_EQ(convert_text("fabric.lossless", "[]")->number, 0U);
  EXPECT_EQ(find_key("fabric.lossless")->get(Settings{}), "[3]");
  EXPECT_EQ(error_of("fabric.lossless", "3"),
            "'fabric.lossless' = 3 has the wrong type; allowed: list of different whole numbers, 0 to 7");
  EXPECT_EQ(error_of("fabric.lossless", "[3, 8]"),
            "'fabric.lossless' = a list has the item 8; allowed: list of different whole numbers, 0 to 7");
  EXPECT_EQ(error_of("fabric.lossless", "[3, 3]"), "'fabric.lossless' = a list has 3 twice");
}

TEST(key_value, convert__trust) {
  Settings settings;
  const KeySpec& key = *find_key("fabric.trust");
  EXPECT_EQ(key.get(settings), "pcp");
  key.set(settings, *convert_text("fabric.trust", "dscp"));
  EXPECT_EQ(settings.fabric.scheduling.priorities.trust, sim::PriorityTrust::dscp);
  EXPECT_EQ(key.get(settings), "dscp");
  EXPECT_EQ(error_of("fabric.trust", "vlan"), "'fabric.trust' = 'vlan' is not available; one of: pcp, dscp");
}

TEST(key_value, convert__auto_of_what_may_be_zero) {
  WorkloadSpec flows;
  const KeySpec& key = *find_key("workload.traffic_class");
  EXPECT_EQ(key.get_workload(flows), "auto");
  key.set_workload(flows, *convert_text("workload.traffic_class", "0"));
  EXPECT_EQ(flows.traffic_class, std::uint8_t{0});
  EXPECT_EQ(key.get_workload(flows), "0");
  key.set_workload(flows, *convert_text("workload.traffic_class", "auto"));
  EXPECT_FALSE(flows.traffic_class.has_value());
  EXPECT_FALSE(convert_text("workload.traffic_class", "256").has_value());
}

TEST(key_value, convert__quantities_need_their_unit) {
  EXPECT_EQ(convert_text("fabric.rate", "25Gbps")->number, 25'000'000'000U);
  EXPECT_EQ(
      error_of("fabric.rate", "100"),
      "'fabric.rate' = 100 has no unit; write for example '100Gbps' (units: bps, kbps, Mbps, Gbps, Tbps)");
  EXPECT_EQ(error_of("fabric.rate", "100us"),
            "'fabric.rate' = '100us' has the unknown unit 'us'; the units are bps, kbps, Mbps, Gbps, Tbps");
  EXPECT_EQ(convert_text("fabric.delay", "0")->number, 0U);
  EXPECT_EQ(error_of("fabric.delay", "5"),
            "'fabric.delay' = 5 has no unit; write for example '1us' (units: ns, us, ms, s)");
  EXPECT_EQ(convert_text("fabric.buffer", "12MiB")->number, 12U << 20U);
  EXPECT_EQ(convert_text("fabric.mtu", "1024")->number, 1024U);
  EXPECT_EQ(error_of("fabric.mtu", "8KiB"),
            "'fabric.mtu' = '8KiB' is out of range; allowed: bytes, 256B to 4KiB");
}

TEST(key_value, convert__auto) {
  EXPECT_EQ(convert_text("fabric.pfc.headroom", "auto")->number, 0U);
  EXPECT_EQ(convert_text("fabric.pfc.headroom", "40KiB")->number, 40'960U);
  EXPECT_FALSE(convert_text("fabric.pfc.headroom", "0").has_value());  // 0 would mean auto
}

TEST(key_value, convert__power_of_two) {
  EXPECT_EQ(convert_text("fabric.alpha", "0.125")->exponent, -3);
  EXPECT_EQ(convert_text("fabric.alpha", "1/16")->exponent, -4);
  EXPECT_EQ(convert_text("fabric.alpha", "2")->exponent, 1);
  const std::string allowed = "allowed: power of two, as 0.125 or '1/8', from 1/128 to 16";
  EXPECT_EQ(error_of("fabric.alpha", "0.3"), "'fabric.alpha' = 0.3 is not allowed; " + allowed);
  EXPECT_EQ(error_of("fabric.alpha", "32"), "'fabric.alpha' = 32 is not allowed; " + allowed);
  EXPECT_EQ(error_of("fabric.alpha", "0"), "'fabric.alpha' = 0 is not allowed; " + allowed);
  EXPECT_EQ(error_of("fabric.alpha", "1/0"), "'fabric.alpha' = '1/0' has the wrong type; " + allowed);
}

TEST(key_value, convert__real) {
  EXPECT_DOUBLE_EQ(convert_text("fabric.ecn.pmax", "0.2")->real, 0.2);
  EXPECT_DOUBLE_EQ(convert_text("fabric.ecn.pmax", "1")->real, 1);
  EXPECT_EQ(error_of("fabric.ecn.pmax", "1.5"),
            "'fabric.ecn.pmax' = 1.5 is out of range; allowed: number, 0 to 1");
  EXPECT_FALSE(convert_text("fabric.ecn.pmax", "nan").has_value());
}

TEST(key_value, convert__hosts) {
  EXPECT_EQ(convert_text("workload.servers", "1..3")->hosts, (HostList{1, 2, 3}));
  EXPECT_EQ(convert_text("workload.clients", "0")->hosts, (HostList{0}));
  EXPECT_EQ(error_of("workload.clients", "-1"),
            "'workload.clients' = -1 is not a list of hosts; write for example 0, 1..64 or 0,3..5");
}

TEST(key_value, convert__sizes) {
  EXPECT_EQ(convert_text("workload.answer", "1MiB")->sizes.low, 1U << 20U);
  EXPECT_EQ(convert_text("workload.answer", "100")->sizes.low, 100U);
  EXPECT_EQ(convert_text("workload.answer", "['64B', {size = '1MiB', weight = 3}]")->sizes.shown(),
            "64B*1, 1MiB*3");
  EXPECT_EQ(error_of("workload.answer", "[]"),
            "'workload.answer' = a list has 0 items; a list of sizes has 1 to 64");
  EXPECT_EQ(
      error_of("workload.answer", "[{size = '1MiB', wieght = 3}]"),
      "'workload.answer' = a list has an item with the unknown key 'wieght'; an item has size and weight");
  EXPECT_EQ(error_of("workload.answer", "[{weight = 3}]"),
            "'workload.answer' = a list has an item without size");
  EXPECT_EQ(error_of("workload.answer", "[{size = '1B', weight = 0}]"),
            "'workload.answer' = a list has the weight 0; a weight is a whole number from 1 to 1000000");
  EXPECT_EQ(error_of("workload.answer", "['1KB']"),
            "'workload.answer' = a list has the item '1KB', which has the ambiguous unit 'KB'; write kB for "
            "1000 or "
            "KiB for 1024");
  EXPECT_EQ(
      error_of("workload.answer", "128MiB"),
      "'workload.answer' = '128MiB' is out of range; allowed: size, range or list of sizes, 0B to 64MiB");
  EXPECT_FALSE(convert_text("workload.request", "8B").has_value());  // no room for what is asked
}

}  // namespace
}  // namespace bx::harness
