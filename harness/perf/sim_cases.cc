// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/sim_cases.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "harness/base/stopwatch.h"
#include "libbx/base/prng.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

std::vector<sim::RawFlow> incast(std::uint16_t senders, std::uint64_t bytes) {
  std::vector<sim::RawFlow> flows;
  for (std::uint16_t from = 1; from <= senders; ++from) flows.push_back({from, 0, bytes});
  return flows;
}

// Every host sends to one other and receives from one other: a random cycle through all of them.
std::vector<sim::RawFlow> permutation(std::uint16_t hosts, std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::uint16_t> order(hosts);
  for (std::uint16_t h = 0; h < hosts; ++h) order[h] = h;
  Prng random(seed);
  for (std::size_t i = hosts; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<sim::RawFlow> flows;
  for (std::size_t i = 0; i < hosts; ++i) flows.push_back({order[i], order[(i + 1) % hosts], bytes});
  return flows;
}

SimCase incast_16(std::string_view name, std::string_view sentence) {
  SimCase made{.name = name, .sentence = sentence, .flows = incast(16, kMiB)};
  made.config.hosts = 17;
  made.config.mtu = 1024;
  made.config.buffer.bytes =
      1024 * kMiB;  // for 1024 ports; nothing is paused, so that idle ports change nothing
  return made;
}

SimCase fat_tree_1024(std::string_view name, std::string_view sentence, std::uint32_t mtu) {
  SimCase made{.name = name, .sentence = sentence, .flows = permutation(1024, 2 * kMiB, 1)};
  made.config.hosts = 1024;
  made.config.mtu = mtu;
  made.config.topology.shape = "fat-tree";
  made.config.payload = "lengths";
  return made;
}

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

tl::unexpected<Error> broken(const char* detail) {
  return fail(ErrorCode::device, ErrorScope::operation, detail);
}

}  // namespace

std::vector<SimCase> sim_cases() {
  std::vector<SimCase> cases;
  cases.push_back(incast_16("incast-16", "16 hosts send 1 MiB each to a seventeenth, 1024 B packets"));
  cases.push_back(incast_16("stock-engine", "the same on ns-3's own event queue"));
  cases.back().config.engine = sim::EngineKind::stock;
  cases.push_back(incast_16("idle-hosts", "the same with 1007 more hosts on the switch"));
  cases.back().config.hosts = 1024;
  cases.push_back(incast_16("idle-qps", "the same with 50000 more connections between two of the hosts"));
  cases.back().idle_pairs = 100'000;
  cases.push_back(incast_16("idle-time", "the same after 1000 s in which nothing happens"));
  cases.back().idle_before = std::chrono::seconds{1000};
  cases.push_back(fat_tree_1024(
      "permutation-1024", "1024 hosts of a fat tree send 2 MiB each, lengths only, 4096 B packets", 4096));
  cases.push_back(fat_tree_1024("permutation-1024-small", "the same in 1024 B packets", 1024));
  return cases;
}

Result<SimMeasurement> measure_here(const SimCase& measured) {
  Result<std::unique_ptr<sim::RawTraffic>> made = sim::RawTraffic::create(measured.config);
  if (!made) return tl::unexpected<Error>(made.error());
  sim::RawTraffic& traffic = **made;
  if (measured.idle_pairs > 0) traffic.open_idle(0, 1, measured.idle_pairs);
  if (measured.idle_before.count() > 0) traffic.idle(measured.idle_before);
  SimMeasurement result;
  const std::uint64_t events_before = traffic.network().engine().events();
  const Stopwatch stopwatch;
  const double cpu_before = cpu_seconds();
  traffic.post(measured.flows);
  if (!traffic.run()) return broken("a flow did not complete");
  result.seconds = stopwatch.seconds();
  result.cpu_seconds = cpu_seconds() - cpu_before;
  result.events = traffic.network().engine().events() - events_before;
  result.digest = traffic.network().topology().digest().value();
  result.peak_mib = peak_mib();
  for (const sim::RawFlow& flow : measured.flows) {
    result.packets += (flow.bytes + measured.config.mtu - 1) / measured.config.mtu;
  }
  return result;
}

Result<SimMeasurement> measure(const SimCase& measured) {
  int ends[2];
  std::fflush(nullptr);  // or the child would print it again
  if (::pipe(ends) != 0) return broken("no pipe could be made");
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]), ::close(ends[1]);
    return broken("no process could be started");
  }
  if (pid == 0) {
    ::close(ends[0]);
    const Result<SimMeasurement> result = measure_here(measured);
    const bool told = result && ::write(ends[1], &*result, sizeof *result) == sizeof *result;
    if (!result)
      std::fprintf(stderr, "bx perf: %s: %s\n", std::string(measured.name).c_str(), result.error().detail);
    std::exit(told ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  ::close(ends[1]);
  SimMeasurement result;
  const bool heard = ::read(ends[0], &result, sizeof result) == sizeof result;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!heard || !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS) {
    return broken("the case did not end as it must");
  }
  return result;
}

}  // namespace bx::harness
