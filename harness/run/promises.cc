// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/promises.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/workload/outcome.h"

namespace bx::harness {
namespace {

constexpr Duration kWindDown = std::chrono::seconds{10};  // simulated; longer than any default timer lasts
constexpr Duration kLookAfter = std::chrono::seconds{1};

}  // namespace

void check_idle(World& world, Oracle& oracle) {
  for (const std::uint32_t host : world.busy_hosts()) {
    const WorkerGauges gauges = world.worker(host).gauges();
    oracle.breach(
        promise::kIdle,
        fmt::format("host{} still has {} calls, {} queued messages, {} bytes in flight in and {} out", host,
                    gauges.calls_outstanding, gauges.messages_queued, gauges.bytes_in_flight_in,
                    gauges.bytes_in_flight_out));
  }
}

void check_promises(const Traffic& traffic, const Settings& settings, RanOut ran_out, Oracle& oracle) {
  const World& world = traffic.world();
  if (world.backend().has_closed_form()) {
    const PathModel paths(settings);
    check_closed_form(traffic.plan(), traffic.ledger(), paths, oracle);
    check_flows(traffic.flows(), paths, oracle);
  }
  const sim::Audit audit = world.backend().audit();
  if (audit.lossless_drops != 0) {
    oracle.breach(promise::kLosslessDrop,
                  fmt::format("{} packets of a lossless class were dropped", audit.lossless_drops));
  }
  if (ran_out == RanOut::yes) {
    for (const std::string& breach : audit.breaches) oracle.breach(promise::kNetwork, breach);
  }
  const double naks = world.counters().value_or("nic.rnr_naks", 0);
  if (naks != 0 && settings.library.path_rnr_retry == 0) {
    oracle.breach(promise::kReceiverReady,
                  fmt::format("{} receiver-not-ready NAKs: a message was sent without a credit", naks));
  }
}

void check_event_queue(World& world, Oracle& oracle) {
  if (!world.backend().has_virtual_time()) return;
  // A fault that is still to come, or goes on, is a reason for events.
  const std::vector<sim::FaultRecord> faults = world.backend().faults();
  if (!std::ranges::all_of(faults, &sim::FaultRecord::ended)) return;
  const Instant begin = world.now();
  if (world.run(begin + kWindDown - kLookAfter) == fabric::RunEnd::idle) return;
  const std::uint64_t before = world.backend().events();
  if (world.run(begin + kWindDown) == fabric::RunEnd::idle) return;
  // One void timer of a far deadline is no activity.
  const std::uint64_t events = world.backend().events() - before;
  if (events == 0) return;
  oracle.breach(
      promise::kNetwork,
      fmt::format("{} events in a second although nothing has been left to do for {} s", events,
                  std::chrono::duration_cast<std::chrono::seconds>(kWindDown - kLookAfter).count()));
}

}  // namespace bx::harness
