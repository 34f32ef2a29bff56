// SPDX-License-Identifier: GPL-2.0-only
#include "harness/swarm/plan.h"

#include <fmt/format.h>

#include <array>

#include "libbx/base/prng.h"

namespace bx::harness {

namespace {

constexpr std::uint64_t kForEver = 1'000'000'000'000;  // a deadline that only a call which is stuck reaches
constexpr std::size_t kHostsMax = 5;
constexpr std::uint64_t kMicrosecond = 1'000'000;  // in picoseconds

Config random_config(Prng& prng) {
  Config config;
  config.peers_max = 24;  // everybody both ways, itself, and those that fail and are not gone yet
  config.calls_max = prng.between(1, 40);
  config.requests_max = prng.between(1, 6);
  config.transfers_max = prng.between(1, 4);
  config.call_deadline = kForEver;
  config.send_control_reserve = prng.between(1, 4);
  config.send_depth = prng.between(8, 24);
  config.eager_max = prng.between(256, 4096);
  config.inline_max = prng.chance(0.3) ? 0 : prng.between(28, 220);
  config.coalesce_max = prng.chance(0.4) ? 0 : prng.between(64, 2048);
  config.rendezvous_policy = prng.below(2);
  config.rendezvous_chunk = prng.between(4096, 32'768);
  config.rendezvous_reads_max = prng.between(1, 4);
  config.credits_per_peer = prng.chance(0.4) ? 2 : prng.between(2, 8);
  config.receive_spare = prng.chance(0.3) ? 0 : prng.below(10);
  config.window_enabled = prng.below(2);
  config.window_per_peer = prng.between(4096, 65'536);
  config.window_receiver = prng.between(4096, 65'536);
  config.memory_arena = 256U << 20U;
  config.path_ack_timeout = 10;
  config.turn_completions_max = prng.chance(0.3) ? 1 : prng.between(1, 64);
  config.connect_deadline = 50'000'000;
  return config;
}

// What bounds bytes and shares receives other than by default, in half of the hosts.
void vary_windows(Config& config, Prng& prng) {
  if (prng.chance(0.5)) return;
  config.window_per_session = prng.chance(0.5) ? 0 : prng.between(1, 32'768);
  config.window_nic_high = prng.chance(0.5) ? 0 : prng.between(1, 65'536);
  const std::uint64_t high = config.window_nic_high != 0 ? config.window_nic_high : 65'536;
  config.window_nic_low = prng.chance(0.5) ? 0 : prng.between(1, high);
  config.window_mode = prng.below(2);
  config.window_adaptive_min = prng.between(4096, 32'768);
  config.window_adaptive_max = config.window_adaptive_min + prng.below(200'000);
  config.window_target_delay = prng.between(1000, 50'000);
  config.window_division = prng.below(2);
  config.window_share_min = prng.between(4096, 32'768);
  config.window_weight = prng.between(1, 8);
  config.credits_mode = prng.below(2);
  config.credits_floor = prng.between(2, config.credits_per_peer);
  config.credits_pool = config.peers_max * config.credits_floor + prng.below(24);
  config.credits_ask = prng.below(2);
}

// More lanes to a peer than one, in half of the hosts.
void vary_lanes(Config& config, Prng& prng) {
  if (prng.chance(0.5)) return;
  config.lanes_per_peer = prng.between(1, 4);
  config.lanes_control = prng.below(2);
  config.lanes_fair = prng.below(2);
}

void set_chance(fabric::FaultPlan& faults, fabric::FaultKind kind, double chance) {
  faults.chances[static_cast<std::size_t>(kind)] = chance;
}

// Packets that are lost now and then, and a link that goes down a few times; both end with the traffic.
void plan_network_faults(SwarmPlan& plan, Prng& prng) {
  sim::FaultSpec loss;
  loss.kind = sim::FaultKind::loss;
  loss.target = "host0";
  loss.at = sim::Picoseconds(static_cast<std::int64_t>(prng.between(1, 500) * kMicrosecond));
  loss.duration = sim::Picoseconds(static_cast<std::int64_t>(3000 * kMicrosecond));
  loss.probability = prng.uniform() * 0.01;
  loss.given = sim::fault_field::kDuration | sim::fault_field::kProbability;
  plan.sim.faults.push_back(loss);
  sim::FaultSpec flap;
  flap.kind = sim::FaultKind::link_flap;
  flap.target = "host1";
  flap.at = sim::Picoseconds(static_cast<std::int64_t>(prng.between(1, 1000) * kMicrosecond));
  flap.duration = sim::Picoseconds(static_cast<std::int64_t>(prng.between(5, 100) * kMicrosecond));
  flap.period = sim::Picoseconds(static_cast<std::int64_t>(prng.between(200, 800) * kMicrosecond));
  flap.count = static_cast<std::uint32_t>(prng.between(1, 4));
  flap.given = sim::fault_field::kDuration | sim::fault_field::kPeriod | sim::fault_field::kCount;
  plan.sim.faults.push_back(flap);
}

}  // namespace

SwarmPlan plan_swarm(std::uint64_t seed, const SwarmOptions& options) {
  using fabric::FaultKind;
  SwarmPlan plan;
  plan.seed = seed;
  plan.options = options;
  Prng prng = Prng(seed).fork("plan");
  const bool honest = prng.chance(0.5);
  if (options.mode == SwarmMode::drawn) plan.options.mode = honest ? SwarmMode::honest : SwarmMode::faulty;
  plan.loopback.seed = seed;
  plan.loopback.latency = Duration(static_cast<std::int64_t>(prng.between(100, 5000)));
  plan.loopback.bytes_per_second = prng.between(1'000'000'000, 50'000'000'000);
  const std::uint64_t hosts = prng.between(2, kHostsMax);
  plan.sim.seed = seed;
  plan.sim.hosts = static_cast<std::uint32_t>(hosts);
  plan.sim.delay_ns = prng.between(100, 2000);
  plan.sim.rate_bps = prng.chance(0.5) ? 100'000'000'000 : 25'000'000'000;
  plan.faults.seed = seed;
  set_chance(plan.faults, FaultKind::completion_delay, prng.uniform() * 0.1);
  set_chance(plan.faults, FaultKind::short_post, prng.uniform() * 0.1);
  const double errors = prng.uniform() * 0.001;
  const double failures = prng.uniform() * 0.001;
  const double refusals = prng.uniform() * 0.02;
  if (!plan.honest()) {
    set_chance(plan.faults, FaultKind::completion_error, errors);
    set_chance(plan.faults, FaultKind::queue_pair_failure, failures);
    set_chance(plan.faults, FaultKind::creation_refused, refusals);
    plan_network_faults(plan, prng);
  }
  Prng knobs = Prng(seed).fork("knobs");
  for (std::uint64_t i = 0; i < hosts; ++i) plan.hosts.push_back(random_config(knobs));
  Prng windows = Prng(seed).fork("windows");
  for (Config& host : plan.hosts) vary_windows(host, windows);
  Prng lanes = Prng(seed).fork("lanes");
  for (Config& host : plan.hosts) vary_lanes(host, lanes);
  return plan;
}

std::string describe(const SwarmPlan& plan) {
  std::string text = fmt::format("{} hosts, {}, ", plan.hosts.size(), to_string(plan.options.mode));
  if (plan.options.backend == SwarmBackend::sim) {
    text += fmt::format("sim: {} bit/s, links of {} ns", plan.sim.rate_bps, plan.sim.delay_ns);
    for (const sim::FaultSpec& fault : plan.sim.faults) {
      text += fmt::format(", {} at {}", sim::to_string(fault.kind), fault.target);
    }
  } else {
    text += fmt::format("loopback: {} bytes/s, latency {} ns", plan.loopback.bytes_per_second,
                        plan.loopback.latency.count());
  }
  constexpr std::array<std::string_view, fabric::kFaultKinds> kNames{"completion error", "completion delay",
                                                                     "lost wake-up",     "failing queue pair",
                                                                     "refused creation", "short post"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (plan.faults.chances[i] > 0) text += fmt::format(", {} {:.5f}", kNames[i], plan.faults.chances[i]);
  }
  for (std::size_t i = 0; i < plan.hosts.size(); ++i) {
    text += fmt::format("\nhost{}:", i);
    for (const KnobSpec& knob : knobs()) {
      const std::uint64_t value = plan.hosts[i].*knob.member;
      if (value != knob.default_value) text += fmt::format(" {}={}", knob.name, value);
    }
  }
  return text;
}

std::string_view to_string(SwarmBackend backend) noexcept {
  return backend == SwarmBackend::sim ? "sim" : "loopback";
}

std::string_view to_string(SwarmMode mode) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"drawn", "honest", "faulty"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::string_view to_string(SwarmSabotage sabotage) noexcept {
  constexpr std::array<std::string_view, 6> kNames{"none", "bytes", "memory", "silence", "check", "digest"};
  return kNames[static_cast<std::size_t>(sabotage)];
}

}  // namespace bx::harness
