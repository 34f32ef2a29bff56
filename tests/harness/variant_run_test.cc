// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/variant_run.h"

#include <gtest/gtest.h>

#include "sim/provider/sim_network.h"

namespace bx::harness {
namespace {

// Interrupts the run at the n-th time it asks.
class Observer final : public RunObserver {
 public:
  explicit Observer(std::size_t interrupt_at) : interrupt_at_(interrupt_at) {}
  void on_progress(const Progress& progress) override {
    EXPECT_GE(progress.simulated_ns, last_ns_);
    EXPECT_LE(progress.fraction, 1.0);
    last_ns_ = progress.simulated_ns;
    last_phase = progress.phase;
  }
  bool interrupted() override { return asked++ >= interrupt_at_; }

  std::size_t asked = 0;
  std::string last_phase;

 private:
  std::size_t interrupt_at_;
  std::uint64_t last_ns_ = 0;
};

constexpr std::size_t kNever = static_cast<std::size_t>(-1);

Scenario scenario(const std::string& more = "") {
  Diagnostics diagnostics;
  auto parsed = parse_scenario(
      "name = 'x'\n[fabric]\nhosts = 5\n[measure]\nseries = '20us'\n[[workload]]\nkind = "
      "'incast'\nclients = 0\nservers = '1..4'\nanswer = ['64B', '256KiB']\nwarm_up = "
      "1\ncalls = 3\n" +
          more,
      "s.toml", {}, diagnostics);
  EXPECT_TRUE(parsed) << diagnostics.text();
  return std::move(*parsed);
}

VariantResult run(const Scenario& what, BackendKind kind, Observer& observer) {
  return run_variant(what, what.variants.front(), {.kind = kind}, observer);
}

class VariantRunTest : public ::testing::TestWithParam<BackendKind> {};

TEST_P(VariantRunTest, run_variant__completes_and_measures_the_measured_part_only) {
  Observer observer(kNever);
  const VariantResult result = run(scenario(), GetParam(), observer);
  EXPECT_EQ(result.status, RunStatus::completed);
  EXPECT_TRUE(result.good());
  for (const Breach& breach : result.breaches) ADD_FAILURE() << breach.promise << ": " << breach.detail;
  EXPECT_EQ(result.metrics.value_or("workload.calls", 0), 12);
  EXPECT_EQ(result.metrics.value_or("calls.completed", 0),
            12);  // the library's own count, without the warm-up's
  EXPECT_GT(result.metrics.value_or("cpu.clients.time", 0), 0);
  EXPECT_EQ(result.metrics.find("bound.line_rate") != nullptr, GetParam() == BackendKind::sim);
  EXPECT_FALSE(result.series.rows().empty());
  for (std::size_t i = 1; i < result.series.rows().size(); ++i) {
    EXPECT_GT(result.series.rows()[i].values[0], result.series.rows()[i - 1].values[0]);
  }
}

// Lengths only: the library's messages go as they go with bytes, calls and packets at the same instants.
TEST(VariantRun, run_variant__lengths_only_is_the_same_run) {
  for (const std::string policy : {"pull", "granted-write"}) {
    Scenario what = scenario("[library]\nrendezvous.policy = '" + policy + "'\n");
    Observer observer(kNever);
    const VariantResult moved = run(what, BackendKind::sim, observer);
    what.variants.front().settings.fabric.payload = "lengths";
    Observer again(kNever);
    const VariantResult lengths = run(what, BackendKind::sim, again);
    EXPECT_TRUE(moved.good());
    EXPECT_TRUE(lengths.good());
    EXPECT_EQ(lengths.digest, moved.digest);
    EXPECT_EQ(lengths.metrics.value_or("sim.lengths_only", 0), 1);
    EXPECT_EQ(moved.metrics.find("sim.lengths_only"), nullptr);
  }
}

TEST(VariantRun, run_variant__nic_costs_slow_calls_and_are_counted) {
  Scenario what = scenario();
  Observer observer(kNever);
  const VariantResult free = run(what, BackendKind::sim, observer);
  what.variants.front().settings.fabric.nic.profile = "connectx5";
  Observer again(kNever);
  const VariantResult costly = run(what, BackendKind::sim, again);
  EXPECT_TRUE(costly.good());
  EXPECT_NE(costly.digest, free.digest);
  EXPECT_GT(costly.metrics.value_or("nic.qpc_hits", 0), 0);
  EXPECT_GT(costly.metrics.value_or("nic.mtt_misses", 0), 0);
  EXPECT_EQ(costly.metrics.value_or("nic.receive_drops", 1), 0);
  EXPECT_EQ(free.metrics.find("nic.qpc_hits"), nullptr);
}

// A switch that forgets to give back one frame's buffer: the run ends as ever, and is no good.
TEST(VariantRun, run_variant__a_leak_of_switch_buffer_is_a_breach_that_names_its_place) {
  const Scenario what = scenario();
  Observer observer(kNever);
  BackendChoice choice;
  choice.spoil = [](sim::SimNetwork& network) {
    auto& buffer = const_cast<sim::SharedBuffer&>(network.topology().switch_at(0).buffer());
    EXPECT_EQ(buffer.admit(4, 3, 1107, 0), sim::Admission::kept);
  };
  const VariantResult result = run_variant(what, what.variants.front(), choice, observer);
  EXPECT_EQ(result.status, RunStatus::completed);
  EXPECT_FALSE(result.good());
  ASSERT_EQ(result.breaches.size(), 2U);
  EXPECT_EQ(result.breaches[0].promise, "network");
  EXPECT_EQ(result.breaches[0].detail,
            "switch switch0 port 4 priority 3: 1107 bytes of buffer (0 of headroom) never given back");
}

// Something schedules itself for ever: no run that ends would show it.
struct Ticker {
  sim::Engine* engine = nullptr;
  static void tick(void* self, void* /*unused*/) {
    static_cast<Ticker*>(self)->engine->post(sim::milliseconds{1}, &tick, self);
  }
};

TEST(VariantRun, run_variant__an_event_queue_that_never_falls_silent_is_a_breach) {
  const Scenario what = scenario();
  Observer observer(kNever);
  BackendChoice choice;
  Ticker ticker;
  choice.spoil = [&](sim::SimNetwork& network) {
    ticker.engine = &network.engine();
    Ticker::tick(&ticker, nullptr);
  };
  const VariantResult result = run_variant(what, what.variants.front(), choice, observer);
  EXPECT_EQ(result.status, RunStatus::completed);
  ASSERT_EQ(result.breaches.size(), 1U);
  EXPECT_EQ(result.breaches[0].promise, "network");
  EXPECT_EQ(result.breaches[0].detail,
            "1000 events in a second although nothing has been left to do for 9 s");
}

TEST_P(VariantRunTest, run_variant__can_be_interrupted_at_any_moment) {
  Observer whole(kNever);
  run(scenario(), GetParam(), whole);
  ASSERT_GT(whole.asked, 4U);
  for (std::size_t at = 0; at < whole.asked; ++at) {
    Observer observer(at);
    const VariantResult result = run(scenario(), GetParam(), observer);
    // While it settles everything is measured already, and the run counts as complete.
    if (observer.last_phase == "settle") continue;
    if (result.status == RunStatus::completed) continue;
    EXPECT_EQ(result.status, RunStatus::interrupted);
    EXPECT_TRUE(result.breaches.empty()) << result.breaches[0].detail;
    EXPECT_TRUE(result.verdicts.empty());
    EXPECT_LE(result.metrics.value_or("workload.calls", 0), 12);
  }
  Observer first(0);
  EXPECT_EQ(run(scenario(), GetParam(), first).status, RunStatus::interrupted);
}

TEST_P(VariantRunTest, run_variant__refuses_a_metric_that_will_not_exist) {
  Observer observer(kNever);
  const VariantResult result =
      run(scenario("[[expect]]\nmetric = 'call.latency.p98'\nat_most = '1s'\n"), GetParam(), observer);
  EXPECT_EQ(result.status, RunStatus::refused);
  EXPECT_EQ(result.message,
            "s.toml:13:1: error: there is no metric 'call.latency.p98'; did you mean 'call.latency.p90'?");
  EXPECT_EQ(observer.asked, 0U);
}

TEST_P(VariantRunTest, run_variant__too_few_peers_is_a_breach_that_names_them) {
  Observer observer(kNever);
  const VariantResult result = run(scenario("[library]\npeers.max = 3\n"), GetParam(), observer);
  EXPECT_FALSE(result.good());
  ASSERT_FALSE(result.breaches.empty());
  EXPECT_EQ(result.breaches[0].promise, "connected");
  EXPECT_NE(result.breaches[0].detail.find("host0 to host4: "), std::string::npos)
      << result.breaches[0].detail;
}

TEST_P(VariantRunTest, run_variant__a_deadline_that_cannot_be_met_is_named_call_by_call) {
  Observer observer(kNever);
  const VariantResult result = run(scenario("[library]\ncalls.deadline = '2us'\n"), GetParam(), observer);
  EXPECT_EQ(result.status, RunStatus::completed);
  ASSERT_FALSE(result.breaches.empty());
  EXPECT_EQ(result.breaches[0].promise, "call-failed");
  EXPECT_NE(result.breaches[0].detail.find("deadline"), std::string::npos) << result.breaches[0].detail;
}

TEST_P(VariantRunTest, run_variant__flows_complete_and_are_verified) {
  Diagnostics diagnostics;
  const auto parsed = parse_scenario(
      "name = 'x'\n[fabric]\nhosts = 5\nmtu = 1024\n[[workload]]\nkind = 'flows'\nsources = '1..4'\nsinks = "
      "0\nsize = 300000\nmessage = '64KiB'\n",
      "s.toml", {}, diagnostics);
  ASSERT_TRUE(parsed) << diagnostics.text();
  Observer observer(kNever);
  const VariantResult result = run(*parsed, GetParam(), observer);
  EXPECT_TRUE(result.good());
  for (const Breach& breach : result.breaches) ADD_FAILURE() << breach.promise << ": " << breach.detail;
  EXPECT_EQ(result.metrics.value_or("flow.count", 0), 4);
  EXPECT_EQ(result.metrics.value_or("flow.bytes", 0), 4 * 300'000);
  if (GetParam() == BackendKind::loopback) return;
  // All of the bottleneck, plus the way there and back, two PCIe crossings and the last acknowledgement.
  const double bound = result.metrics.value_or("flow.bound", 0);
  EXPECT_GE(result.metrics.value_or("flow.time.max", 0), bound);
  EXPECT_LT(result.metrics.value_or("flow.time.max", 0), bound + 5000);
  EXPECT_EQ(result.metrics.find("fetch.time"), nullptr);
}

TEST_P(VariantRunTest, run_variant__flows_that_fail_are_named) {
  Diagnostics diagnostics;
  // No PFC and a buffer of a few packets: what is lost comes again until retry_cnt is used up.
  const auto parsed = parse_scenario(
      "name = 'x'\n[fabric]\nhosts = 5\nmtu = 1024\nbuffer = '128KiB'\nreserved = 0\npfc.enabled = false\n"
      "[library]\npath.retry_cnt = 0\n[[workload]]\nkind = 'flows'\nsources = '1..4'\nsinks = 0\nsize = "
      "'4MiB'\n",
      "s.toml", {}, diagnostics);
  ASSERT_TRUE(parsed) << diagnostics.text();
  if (GetParam() == BackendKind::loopback) return;
  Observer observer(kNever);
  const VariantResult result = run(*parsed, GetParam(), observer);
  EXPECT_FALSE(result.good());
  ASSERT_FALSE(result.breaches.empty());
  EXPECT_EQ(result.breaches[0].promise, "call-failed");
  EXPECT_NE(result.breaches[0].detail.find("to host0 failed after"), std::string::npos)
      << result.breaches[0].detail;
}

INSTANTIATE_TEST_SUITE_P(Backends, VariantRunTest, ::testing::Values(BackendKind::sim, BackendKind::loopback),
                         [](const auto& param) { return std::string(to_string(param.param)); });

// Hosts 0 and 1 are processes on the ports of one NIC, and so are 2 and 3, 4 and 5.
TEST(variant_run, nic_ports__processes_that_share_a_nic_call_and_serve) {
  Diagnostics diagnostics;
  const auto two_ports = parse_scenario(
      "name = 'x'\n[fabric]\nhosts = 6\nnic.ports = 2\nnic.profile = 'connectx5'\n"
      "[[workload]]\nkind = 'ps-fetch'\nclients = '0..1'\nservers = '2..5'\nanswer = '64KiB'\ncalls = 2\n"
      "[[workload]]\nkind = 'rpc'\nclients = 3\nservers = 2\nanswer = '4KiB'\ncalls = 5\n",
      "s.toml", {}, diagnostics);
  ASSERT_TRUE(two_ports) << diagnostics.text();
  Observer observer(kNever);
  const VariantResult result = run(*two_ports, BackendKind::sim, observer);
  for (const Breach& breach : result.breaches) ADD_FAILURE() << breach.promise << ": " << breach.detail;
  EXPECT_EQ(result.metrics.value_or("workload.calls", 0), 2 * 2 * 4 + 5);
  Observer again(kNever);
  EXPECT_EQ(run(*two_ports, BackendKind::sim, again).digest, result.digest);
}

}  // namespace
}  // namespace bx::harness
