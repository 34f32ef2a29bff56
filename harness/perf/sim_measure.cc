// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/sim_measure.h"

#include <malloc.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "harness/base/child_process.h"
#include "harness/base/stopwatch.h"
#include "sim/provider/network_plan.h"

namespace bx::harness {
namespace {

double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Allocated and not freed, with what the allocator keeps for each block.
double allocated_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

// What was allocated since it was made, for each of so many things.
class Allocated {
 public:
  [[nodiscard]] double for_each_of(std::size_t things) const {
    return things == 0 ? 0 : (allocated_bytes() - before_) / static_cast<double>(things);
  }

 private:
  double before_ = allocated_bytes();
};

tl::unexpected<Error> broken(const char* detail) {
  return fail(ErrorCode::device, ErrorScope::operation, detail);
}

// Time and events from when it is made to stop().
class Meter {
 public:
  explicit Meter(const sim::SimNetwork& network)
      : network_(network), events_before_(network.events()), cpu_before_(cpu_seconds()) {}
  void stop(SimMeasurement& result) const {
    result.seconds = stopwatch_.seconds();
    result.cpu_seconds = cpu_seconds() - cpu_before_;
    result.events = network_.events() - events_before_;
    result.digest = network_.topology().digest().value();
    result.peak_mib = peak_mib();
  }

 private:
  const sim::SimNetwork& network_;
  std::uint64_t events_before_;
  double cpu_before_;
  Stopwatch stopwatch_;
};

// The case's switches alone: no NICs, no traffic.
Result<double> switch_port_bytes(const sim::SimConfig& config) {
  // What the C library maps for one block counts with what aligning it to a huge page leaves unused.
  constexpr int kMapFrom = 32 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kMapFrom);
  const Result<sim::NetworkPlan> plan = sim::plan_network(config);
  if (!plan) return tl::unexpected<Error>(plan.error());
  sim::Engine engine(config.engine);
  sim::FramePool frames;
  const Allocated allocated;
  const sim::Topology topology(engine, frames, plan->topology, Prng(config.seed));
  std::size_t ports = 0;
  for (std::size_t i = 0; i < topology.switches(); ++i) ports += topology.switch_at(i).ports();
  return allocated.for_each_of(ports);
}

Result<SimMeasurement> measure_flows(const SimCase& measured) {
  Result<std::unique_ptr<sim::RawTraffic>> made = sim::RawTraffic::create(measured.config);
  if (!made) return tl::unexpected<Error>(made.error());
  sim::RawTraffic& traffic = **made;
  SimMeasurement result;
  if (measured.idle_pairs > 0) {
    const Allocated allocated;
    traffic.open_idle(0, 1, measured.idle_pairs);
    result.queue_pair_bytes = allocated.for_each_of(2 * measured.idle_pairs);
  }
  if (measured.idle_before.count() > 0) traffic.idle(measured.idle_before);
  const Meter meter(traffic.network());
  traffic.post(measured.flows);
  if (!traffic.run()) return broken("a flow did not complete");
  meter.stop(result);
  for (const sim::RawFlow& flow : measured.flows) {
    result.packets += (flow.bytes + measured.config.mtu - 1) / measured.config.mtu;
  }
  return result;
}

Result<SimMeasurement> measure_sessions(const sim::SessionTrafficConfig& config) {
  Result<std::unique_ptr<sim::SessionTraffic>> made = sim::SessionTraffic::create(config);
  if (!made) return tl::unexpected<Error>(made.error());
  sim::SessionTraffic& traffic = **made;
  SimMeasurement result;
  const Allocated of_queue_pairs;
  traffic.open_queue_pairs();
  result.queue_pair_bytes = of_queue_pairs.for_each_of(std::size_t{2} * config.queue_pairs);
  const Allocated of_sessions;
  traffic.open_sessions();
  result.session_bytes = of_sessions.for_each_of(config.sessions);
  const Meter meter(traffic.network());
  if (!traffic.run()) return broken("not every message of every session was seen once and as it should be");
  meter.stop(result);
  result.packets = traffic.totals().packets;
  return result;
}

}  // namespace

Result<SimMeasurement> measure_here(const SimCase& measured) {
  const Result<double> port_bytes = switch_port_bytes(measured.config);
  if (!port_bytes) return tl::unexpected<Error>(port_bytes.error());
  Result<SimMeasurement> result =
      measured.sessions ? measure_sessions(*measured.sessions) : measure_flows(measured);
  if (result) result->switch_port_bytes = *port_bytes;
  return result;
}

Result<SimMeasurement> measure(const SimCase& measured) {
  const Result<ChildProcess> child = start_child([&](int fd) {
    const Result<SimMeasurement> result = measure_here(measured);
    if (!result) {
      std::fprintf(stderr, "bx perf: %s: %s\n", std::string(measured.name).c_str(), result.error().detail);
      return false;
    }
    return write_all(fd, {reinterpret_cast<const char*>(&*result), sizeof *result});
  });
  if (!child) return tl::unexpected<Error>(child.error());
  const std::string told = read_all(child->fd);
  if (!end_child(*child).empty() || told.size() != sizeof(SimMeasurement)) {
    return broken("the case did not end as it must");
  }
  SimMeasurement result;
  std::memcpy(&result, told.data(), sizeof result);
  return result;
}

}  // namespace bx::harness
