// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/cli/commands.h"
#include "harness/machine/rdma_port.h"
#include "harness/perf/calibration.h"
#include "harness/perf/verbs_perf.h"
#include "harness/report/result_file.h"
#include "libbx/providers/loopback/loopback_fabric.h"
#include "libbx/providers/verbs/verbs_fabric.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

int refuse(std::string_view message, int status = kExitUsage) {
  fmt::print(stderr, "bx: error: {}\n", message);
  return status;
}

// "64B..1MiB" is each power of two from the first to the last; else one size.
Parsed<std::vector<std::uint64_t>> read_sizes(const std::string& text) {
  const std::size_t dots = text.find("..");
  const Parsed<std::uint64_t> first = parse_bytes(std::string_view(text).substr(0, dots));
  const Parsed<std::uint64_t> last =
      dots == std::string::npos ? first : parse_bytes(std::string_view(text).substr(dots + 2));
  if (!first || !last || *first == 0 || *first > *last || *last > kPerfSizeMax) {
    return tl::unexpected(
        fmt::format("--sizes {} is no range of sizes from 1B to {}; write for example 64B..1MiB", text,
                    format_bytes(kPerfSizeMax)));
  }
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = *first; size <= *last; size *= 2) sizes.push_back(size);
  return sizes;
}

Parsed<PerfPlan> read_plan(const PerfVerbsOptions& options) {
  PerfPlan plan;
  std::vector<std::string> names;
  for (const PerfCaseSpec& spec : perf_cases()) {
    names.emplace_back(spec.name);
    if (options.only.empty() || std::ranges::count(options.only, spec.name) != 0)
      plan.cases.push_back(spec.which);
  }
  for (const std::string& name : options.only) {
    if (std::ranges::count(names, name) != 0) continue;
    return tl::unexpected(fmt::format("perf verbs has no case '{}'; the cases are: {}", name, join(names)));
  }
  Parsed<std::vector<std::uint64_t>> sizes = read_sizes(options.sizes);
  if (!sizes) return tl::unexpected(sizes.error());
  plan.sizes = std::move(*sizes);
  plan.point_ns = options.milliseconds * kNsPerMs;
  return plan;
}

// The address of the first port that RoCE v2 can be had from.
std::string own_address() {
  for (const RdmaPort& port : read_rdma_ports(SystemView())) {
    for (const PortGid& gid : port.gids) {
      if (gid.roce_v2() && !gid.link_local) return gid.address;
    }
  }
  return {};
}

int report(const PerfVerbsOptions& options, const std::vector<PerfPoint>& points, std::string_view fabric) {
  fmt::print("{}", options.json ? points_json(points, fabric) : render_points(points));
  return kExitGood;
}

std::string machine_text() {
  utsname names{};
  ::uname(&names);
  return fmt::format("{} {} {}", names.sysname, names.release, names.machine);
}

// Without a peer: what the processor costs, from this host alone.
int write_calibration(const PerfVerbsOptions& options, fabric::Host& host,
                      const std::vector<PerfPoint>& points) {
  Parsed<Calibration> costs = calibrate(host);
  if (!costs) return refuse(costs.error(), kExitNotGood);
  costs->nic_ns = nic_latency_ns(*costs, points);
  if (Parsed<void> written = write_file_atomically(options.calibrate, host_file_text(*costs, machine_text()));
      !written) {
    return refuse(written.error());
  }
  fmt::print(stderr, "bx: wrote {}; a scenario includes it by fabric.host_file\n", options.calibrate);
  return kExitGood;
}

int measure_on_devices(const PerfVerbsOptions& options, const PerfPlan& plan) {
  const std::string address = options.address.empty() ? own_address() : options.address;
  if (address.empty()) {
    return refuse("there is no RDMA device with a RoCE v2 address here; see 'bx doctor', or try scripts/rxe",
                  kExitNoBackend);
  }
  verbs::VerbsConfig config{.device = options.device, .wait = {.mode = fabric::WaitMode::polled}};
  config.hosts.push_back({"here", address});
  if (!options.connect.empty()) config.hosts.push_back({"there", options.connect});
  Result<std::unique_ptr<verbs::VerbsFabric>> fabric = verbs::VerbsFabric::create(config);
  if (!fabric) return refuse(fabric.error().detail, kExitNoBackend);
  Result<std::unique_ptr<fabric::Host>> host = (*fabric)->open_host("here");
  if (!host) return refuse(fmt::format("{}: {}", address, host.error().detail), kExitNoBackend);
  if (options.listen) {
    fmt::print(stderr, "bx: waits at {} for 'bx perf verbs --connect {}'\n", address, address);
    const Parsed<void> served = serve_perf(**host);
    return served ? kExitGood : refuse(served.error(), kExitNotGood);
  }
  std::vector<PerfPoint> points;
  if (!options.connect.empty()) {
    Parsed<std::vector<PerfPoint>> measured = measure_perf(**host, "there", plan);
    if (!measured) return refuse(measured.error(), kExitNotGood);
    points = std::move(*measured);
    report(options, points, "verbs");
  }
  return options.calibrate.empty() ? kExitGood : write_calibration(options, **host, points);
}

}  // namespace

int perf_verbs_command(const PerfVerbsOptions& options) {
  const Parsed<PerfPlan> plan = read_plan(options);
  if (!plan) return refuse(plan.error());
  if (options.loopback) {
    if (options.listen || !options.connect.empty() || !options.calibrate.empty()) {
      return refuse(
          "--loopback has both ends in this process and virtual time: leave out --listen, --connect, "
          "--calibrate");
    }
    loopback::LoopbackFabric fabric;
    const Parsed<std::vector<PerfPoint>> points = measure_perf_here(fabric, *plan);
    return points ? report(options, *points, "loopback") : refuse(points.error(), kExitNotGood);
  }
  if (options.listen == !options.connect.empty() &&
      !(options.connect.empty() && !options.calibrate.empty())) {
    return refuse(
        "give one of --listen (at the one host), --connect HOST (at the other), --loopback or --calibrate "
        "FILE");
  }
  return measure_on_devices(options, *plan);
}

}  // namespace bx::harness
