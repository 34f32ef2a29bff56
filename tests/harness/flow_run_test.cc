// SPDX-License-Identifier: GPL-2.0-only
// Runs of the workload "flows": what they may lack, how long they may take, and what their digest sees.
#include <gtest/gtest.h>

#include "harness/measure/oracle.h"
#include "harness/run/variant_run.h"

namespace bx::harness {
namespace {

class Quiet final : public RunObserver {
 public:
  void on_progress(const Progress& /*progress*/) override {}
  bool interrupted() override { return false; }
};

VariantResult run(const std::string& fabric, const std::string& size = "1MiB", const std::string& more = "") {
  Diagnostics diagnostics;
  auto scenario = parse_scenario("name = 'x'\n[fabric]\nhosts = 5\n" + fabric +
                                     "\n[[workload]]\nkind = 'flows'\nsources = '1..4'\nsinks = 0\nsize = '" +
                                     size + "'\n" + more,
                                 "s.toml", {}, diagnostics);
  EXPECT_TRUE(scenario) << diagnostics.text();
  Quiet observer;
  return run_variant(*scenario, scenario->variants.front(), {.kind = BackendKind::sim}, observer);
}

std::string first_breach(const VariantResult& result) {
  return result.breaches.empty() ? "" : result.breaches[0].promise + ": " + result.breaches[0].detail;
}

TEST(flow_run, lengths_only__asks_for_no_bytes) {
  EXPECT_EQ(first_breach(run("payload = 'lengths'")), "");
}

TEST(flow_run, limit__follows_the_slowest_link) {
  // 64 MiB over 10 Mb/s take 54 s of simulated time; over the hosts' own links it were milliseconds.
  const VariantResult result =
      run("topology = 'dumbbell'\nuplink_rate = '10Mbps'\npayload = 'lengths'", "32MiB",
          "[library]\npath.ack_timeout = 24\n");  // the queue takes seconds
  EXPECT_EQ(first_breach(result), "");
  EXPECT_GT(result.simulated_ns, 30'000'000'000U);
}

TEST(flow_run, settle__waits_for_what_a_slow_link_still_carries) {
  // The flows give up while minutes of retransmissions stand in front of the uplink: no breach of the
  // network.
  const VariantResult result = run("topology = 'dumbbell'\nuplink_rate = '1Mbps'", "4MiB");
  EXPECT_FALSE(result.breaches.empty());
  for (const Breach& breach : result.breaches) {
    EXPECT_NE(breach.promise, promise::kNetwork) << breach.detail;
  }
}

TEST(flow_run, delayed_links__excuse_what_the_headroom_was_not_made_for) {
  const VariantResult result = run(
      "buffer = '1MiB'", "4MiB", "[[fault]]\nkind = 'delay'\ntarget = 'host1'\nat = '0us'\ndelay = '20us'\n");
  EXPECT_EQ(first_breach(result), "");
}

TEST(flow_run, digest__sees_frames_that_reached_no_host) {
  const std::string lossy = "buffer = '2MiB'\npfc.enabled = false\n";
  const VariantResult back = run(lossy, "4MiB");
  const VariantResult again = run(lossy, "4MiB");
  const VariantResult selective = run(lossy + "nic.loss_recovery = 'selective-repeat'\n", "4MiB");
  EXPECT_EQ(back.digest, again.digest);
  EXPECT_NE(back.digest, selective.digest);
}

}  // namespace
}  // namespace bx::harness
