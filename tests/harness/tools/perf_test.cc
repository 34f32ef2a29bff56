// SPDX-License-Identifier: GPL-2.0-only
// `bx perf verbs` between two hosts of the loopback provider, whose times are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/perf/calibration.h"
#include "harness/perf/points.h"
#include "harness/perf/raw_message.h"
#include "harness/perf/verbs_perf.h"
#include "harness/scenario/host_file.h"
#include "harness/scenario/scenario.h"
#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/harness/tools/fake_machine.h"

namespace bx::harness {
namespace {

const PerfPoint* find(const std::vector<PerfPoint>& points, PerfCase which, std::uint64_t size) {
  const auto found = std::ranges::find_if(
      points, [&](const PerfPoint& point) { return point.which == which && point.size == size; });
  return found == points.end() ? nullptr : &*found;
}

constexpr std::uint64_t kLong = 65536;

PerfPlan all_cases(std::vector<std::uint64_t> sizes) {
  PerfPlan plan{.cases = {}, .sizes = std::move(sizes), .point_ns = 1'000'000};
  for (const PerfCaseSpec& spec : perf_cases()) plan.cases.push_back(spec.which);
  return plan;
}

TEST(points, summarise__median_and_percentiles) {
  const PerfPoint point = summarise(PerfCase::send_latency, 64, 11, {10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(point.median, 5);
  EXPECT_EQ(point.low, 1);
  EXPECT_EQ(point.high, 9);
  EXPECT_EQ(summarise(PerfCase::send_latency, 64, 1, {3}).high, 3);
}

TEST(points, point_timer__leaves_the_warm_up_out) {
  PointTimer timer(PerfCase::read_latency, 64, 3000);
  timer.start(0);
  std::uint64_t now = 0;
  for (int i = 0; i < 16; ++i) timer.complete(now += 5000, 5000);
  EXPECT_FALSE(timer.done());
  while (!timer.done()) timer.complete(now += 100, 100);
  const PerfPoint point = timer.result();
  EXPECT_EQ(point.high, 100);
  EXPECT_EQ(point.messages, 30U);
}

TEST(points, point_timer__one_stall_does_not_decide_the_median) {
  PointTimer timer(PerfCase::read_latency, 64, 1000);
  timer.start(0);
  std::uint64_t now = 0;
  for (int i = 0; i < 16; ++i) timer.complete(now += 100, 100);
  timer.complete(now += 1'000'000, 1'000'000);
  while (!timer.done()) timer.complete(now += 100, 100);
  EXPECT_EQ(timer.result().median, 100);
}

TEST(points, point_timer__bandwidth_is_bytes_over_slices_of_time) {
  PointTimer timer(PerfCase::write_bandwidth, 1000, 900'000);
  timer.start(0);
  std::uint64_t now = 0;
  while (!timer.done()) timer.complete(now += 1000, 0);
  const PerfPoint point = timer.result();
  EXPECT_DOUBLE_EQ(point.median, 1e9) << "1000 bytes each microsecond";
  EXPECT_DOUBLE_EQ(point.low, point.high);
}

TEST(raw_message, decode__is_what_was_encoded) {
  RawMessage message;
  message.kind = RawMessage::Kind::point;
  message.which = PerfCase::read_bandwidth;
  message.size = 65536;
  message.address = {.gid = {1, 2, 3}, .qp = fabric::QpNum{77}, .psn = 0xabcdef};
  message.memory = 0x123456789abcdef0ULL;
  message.rkey = 9;
  message.mtu_max = 1024;
  message.rd_atomic_max = 16;
  const auto back = decode(encode(message));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, message.kind);
  EXPECT_EQ(back->which, message.which);
  EXPECT_EQ(back->size, message.size);
  EXPECT_EQ(back->address, message.address);
  EXPECT_EQ(back->memory, message.memory);
  EXPECT_EQ(back->rkey, message.rkey);
  EXPECT_EQ(back->mtu_max, message.mtu_max);
  EXPECT_EQ(back->rd_atomic_max, message.rd_atomic_max);
}

TEST(raw_message, decode__refuses_what_is_out_of_range) {
  const RawBytes good = encode({});
  EXPECT_TRUE(decode(good));
  for (const auto& [at, value] : {std::pair{0, 7}, {4, 9}, {5, 200}, {10, 255}}) {
    RawBytes bad = good;
    bad[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    EXPECT_FALSE(decode(bad)) << at;
  }
}

TEST(verbs_perf, measure_perf_here__every_case_and_size) {
  loopback::LoopbackFabric fabric;
  const auto points = measure_perf_here(fabric, all_cases({64, 4096, kLong}));
  ASSERT_TRUE(points) << points.error();
  EXPECT_EQ(points->size(), perf_cases().size() * 3);
  for (const PerfPoint& point : *points) {
    EXPECT_GT(point.median, 0) << spec_of(point.which).name << " " << point.size;
    EXPECT_LE(point.low, point.median);
    EXPECT_GE(point.high, point.median);
  }
}

TEST(verbs_perf, measure_perf_here__is_what_the_provider_was_told_to_take) {
  loopback::LoopbackConfig config;
  config.latency = Duration(50'000);
  config.bytes_per_second = 1'000'000'000;
  loopback::LoopbackFabric fabric(config);
  PerfPlan plan = all_cases({64, kLong});
  plan.point_ns = 20'000'000;
  const auto points = measure_perf_here(fabric, plan);
  ASSERT_TRUE(points) << points.error();
  const double one_way = find(*points, PerfCase::send_latency, 64)->median;
  EXPECT_GE(one_way, 50'000);
  EXPECT_LE(one_way, 52'000);
  EXPECT_GE(find(*points, PerfCase::write_latency, 64)->median, 100'000)
      << "there, and the acknowledgement back";
  for (const PerfCase which : {PerfCase::send_bandwidth, PerfCase::write_bandwidth, PerfCase::read_bandwidth,
                               PerfCase::get_bandwidth, PerfCase::put_bandwidth}) {
    EXPECT_NEAR(find(*points, which, kLong)->median, 1e9, 0.05e9) << spec_of(which).name;
  }
  EXPECT_GE(find(*points, PerfCase::call_latency, 64)->median, one_way * 0.98) << "the library is not faster";
}

// A path that holds more than the library's windows are by default: what it may have under way is what raw
// verbs may.
TEST(verbs_perf, measure_perf_here__no_window_bounds_the_library_below_raw_verbs) {
  loopback::LoopbackConfig config;
  config.latency = Duration(1'000'000);
  config.bytes_per_second = 100'000'000'000;
  loopback::LoopbackFabric fabric(config);
  PerfPlan plan{.cases = {PerfCase::write_bandwidth, PerfCase::read_bandwidth, PerfCase::get_bandwidth,
                          PerfCase::put_bandwidth},
                .sizes = {65'536},
                .point_ns = 100'000'000};
  const auto points = measure_perf_here(fabric, plan);
  ASSERT_TRUE(points) << points.error();
  const auto median = [&](PerfCase which) { return find(*points, which, 65'536)->median; };
  EXPECT_GE(median(PerfCase::get_bandwidth), 0.95 * median(PerfCase::read_bandwidth));
  EXPECT_GE(median(PerfCase::put_bandwidth), 0.95 * median(PerfCase::write_bandwidth));
}

TEST(verbs_perf, measure_perf_here__only_the_cases_asked_for) {
  loopback::LoopbackFabric fabric;
  PerfPlan plan{.cases = {PerfCase::call_latency}, .sizes = {64}, .point_ns = 100'000};
  const auto points = measure_perf_here(fabric, plan);
  ASSERT_TRUE(points) << points.error();
  ASSERT_EQ(points->size(), 1U);
  EXPECT_EQ(points->front().which, PerfCase::call_latency);
}

TEST(verbs_perf, points_json__and_table) {
  const std::vector<PerfPoint> points{summarise(PerfCase::read_bandwidth, 65536, 100, {1e8}),
                                      summarise(PerfCase::fetch_bandwidth, 65536, 100, {9.5e7})};
  const auto json = nlohmann::json::parse(points_json(points, "verbs"));
  ASSERT_EQ(json.at("points").size(), 2U);
  EXPECT_EQ(json.at("points")[0].at("case"), "read-bandwidth");
  EXPECT_EQ(json.at("points")[0].at("unit"), "bytes/s");
  EXPECT_EQ(json.at("points")[1].at("median"), 9.5e7);
  EXPECT_NE(render_points(points).find("95 %"), std::string::npos) << render_points(points);
}

TEST(calibration, nic_latency_ns__is_half_of_what_is_not_the_processor_s) {
  const Calibration costs{.completion_ns = 20, .send_ns = 30, .doorbell_ns = 50};
  EXPECT_EQ(nic_latency_ns(costs, {summarise(PerfCase::write_latency, 64, 1, {2100})}), 1000);
  EXPECT_EQ(nic_latency_ns(costs, {summarise(PerfCase::write_latency, 64, 1, {50})}), 0);
  EXPECT_EQ(nic_latency_ns(costs, {}), 0);
}

class HostFile : public ::testing::Test {
 protected:
  // The first variant of a scenario with these lines in [fabric].
  std::optional<Settings> load(const std::string& lines) {
    Diagnostics diagnostics;
    const auto scenario =
        parse_scenario("name = 'x'\n[fabric]\nhosts = 2\n" + lines +
                           "\n[[workload]]\nkind = 'incast'\nclients = 0\nservers = '1'\nanswer = '4KiB'\n",
                       machine.view().path("/s.toml"), {}, diagnostics);
    errors = diagnostics.text();
    return scenario ? std::optional(scenario->variants.front().settings) : std::nullopt;
  }
  FakeMachine machine;
  std::string errors;
};

TEST_F(HostFile, load_host_file__is_what_calibration_writes) {
  const Calibration costs{.turn_ns = 120,
                          .completion_ns = 31.4,
                          .empty_poll_ns = 12,
                          .send_ns = 41,
                          .doorbell_ns = 77,
                          .receive_ns = 19,
                          .copy_bytes_per_second = 4e9,
                          .nic_ns = 850};
  machine.put("host.toml", host_file_text(costs, "a machine"));
  const auto settings = load("host_file = 'host.toml'");
  ASSERT_TRUE(settings) << errors;
  EXPECT_EQ(settings->fabric.cpu.turn, Duration(120));
  EXPECT_EQ(settings->fabric.cpu.completion, Duration(31));
  EXPECT_EQ(settings->fabric.cpu.doorbell, Duration(77));
  EXPECT_EQ(settings->copy_rate_bps, 32'000'000'000U);
  EXPECT_EQ(settings->fabric.nic_tx_latency_ns, 850U);
  EXPECT_EQ(settings->fabric.nic_rx_latency_ns, 850U);
  EXPECT_EQ(settings->fabric.cpu.handler, virtual_time::HostCpuCosts{}.handler) << "not measured";
}

TEST_F(HostFile, load_host_file__the_scenario_wins) {
  machine.put("host.toml", "[fabric.cpu]\nturn = '5us'\nsend = '6us'");
  const auto settings = load("host_file = 'host.toml'\ncpu.turn = '7us'");
  ASSERT_TRUE(settings) << errors;
  EXPECT_EQ(settings->fabric.cpu.turn, Duration(7000));
  EXPECT_EQ(settings->fabric.cpu.send, Duration(6000));
}

TEST_F(HostFile, load_host_file__mistakes_are_named_with_their_place) {
  EXPECT_FALSE(load("host_file = 'nowhere.toml'"));
  EXPECT_NE(errors.find("nowhere.toml"), std::string::npos);
  machine.put("host.toml", "[fabric]\nrate = '1Gbps'");
  EXPECT_FALSE(load("host_file = 'host.toml'"));
  EXPECT_NE(errors.find("host.toml:2:8: error: 'fabric.rate' is not about a host"), std::string::npos)
      << errors;
  machine.put("host.toml", "[fabric.cpu]\ntrun = '1us'");
  EXPECT_FALSE(load("host_file = 'host.toml'"));
  EXPECT_NE(errors.find("host.toml:2:1: error: unknown key 'fabric.cpu.trun'"), std::string::npos) << errors;
}

TEST_F(HostFile, load_host_file__is_not_a_variant_s) {
  machine.put("host.toml", "[fabric.cpu]\nturn = '5us'");
  EXPECT_FALSE(load("[[variant]]\nname = 'a'\nfabric.host_file = 'host.toml'"));
  EXPECT_NE(errors.find("a variant may set fabric.cpu.* itself"), std::string::npos) << errors;
}

}  // namespace
}  // namespace bx::harness
