// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/verbs_perf.h"

#include <bx/bx.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/perf/library_perf.h"
#include "harness/perf/raw_client.h"
#include "harness/perf/raw_server.h"

namespace bx::harness {
namespace {

constexpr Duration kPatience{30'000'000'000};

tl::unexpected<std::string> sentence(std::string_view who, const Error& error) {
  return tl::unexpected(fmt::format("{}: {}", who, error.detail));
}

// The library may have as much under way as raw verbs has: what its windows spare a switch is not measured
// here.
Config library_config() {
  Config config;
  config.window_per_peer = kPerfDepth * kPerfSizeMax;
  config.window_receiver = config.window_per_peer;
  return config;
}

bool wants(const PerfPlan& plan, bool raw) {
  return std::ranges::any_of(plan.cases, [raw](PerfCase which) { return spec_of(which).raw == raw; });
}

Parsed<std::vector<PerfPoint>> measure_library(Context& context, const std::string& peer,
                                               const PerfPlan& plan) {
  context.worker().set_log(nullptr);  // that the server is not there yet is no news
  LibraryClient client(context.worker(), peer, plan);
  const Result<bool> done = block_on(context.worker(), client.run(context.worker(), kPatience));
  if (!client.error().empty()) return tl::unexpected(client.error());
  if (!done) return sentence("the library", done.error());
  return client.points();
}

}  // namespace

Parsed<void> serve_perf(fabric::Host& host) {
  {
    RawServer server(host);
    if (server.listen()) host.reactor().run(kNever);
    if (!server.finished()) return tl::unexpected(server.error());
  }
  Result<std::unique_ptr<Context>> context = Context::create(host, library_config());
  if (!context) return sentence(host.name(), context.error());
  PerfService service((*context)->worker(), AtEnd::stop_reactor);
  if (Result<> serving = (*context)->worker().serve(kLibraryPort, service); !serving) {
    return sentence(host.name(), serving.error());
  }
  while (!service.finished()) host.reactor().run(kNever);
  // The last answer leaves, and is acknowledged, in the turns after it was given.
  constexpr Duration kFarewell{500'000'000};
  host.reactor().run(host.reactor().now() + kFarewell);
  return {};
}

Parsed<std::vector<PerfPoint>> measure_perf(fabric::Host& host, const std::string& peer,
                                            const PerfPlan& plan) {
  std::vector<PerfPoint> points;
  {
    RawClient client(host, peer, plan);
    if (client.start(kPatience)) host.reactor().run(kNever);
    if (!client.finished()) return tl::unexpected(client.error());
    points = client.points();
    // What was said last leaves before the stream is closed.
    constexpr Duration kFarewell{100'000'000};
    host.reactor().run(host.reactor().now() + kFarewell);
  }
  Result<std::unique_ptr<Context>> context = Context::create(host, library_config());
  if (!context) return sentence(host.name(), context.error());
  Parsed<std::vector<PerfPoint>> more = measure_library(**context, peer, plan);
  if (!more) return more;
  points.insert(points.end(), more->begin(), more->end());
  return points;
}

Parsed<std::vector<PerfPoint>> measure_perf_here(fabric::Fabric& fabric, const PerfPlan& plan) {
  Result<std::unique_ptr<fabric::Host>> near = fabric.open_host("client");
  if (!near) return sentence("client", near.error());
  Result<std::unique_ptr<fabric::Host>> far = fabric.open_host("server");
  if (!far) return sentence("server", far.error());
  std::vector<PerfPoint> points;
  if (wants(plan, true)) {
    RawServer server(**far);
    RawClient client(**near, "server", plan);
    if (server.listen() && client.start(kPatience)) (*near)->reactor().run(kNever);
    if (!server.error().empty()) return tl::unexpected(server.error());
    if (!client.finished()) return tl::unexpected(client.error());
    points = client.points();
  }
  if (!wants(plan, false)) return points;
  Result<std::unique_ptr<Context>> server = Context::create(**far, library_config());
  if (!server) return sentence("server", server.error());
  Result<std::unique_ptr<Context>> client = Context::create(**near, library_config());
  if (!client) return sentence("client", client.error());
  PerfService service((*server)->worker(), AtEnd::carry_on);
  if (Result<> serving = (*server)->worker().serve(kLibraryPort, service); !serving) {
    return sentence("server", serving.error());
  }
  Parsed<std::vector<PerfPoint>> more = measure_library(**client, "server", plan);
  if (!more) return more;
  points.insert(points.end(), more->begin(), more->end());
  return points;
}

}  // namespace bx::harness
