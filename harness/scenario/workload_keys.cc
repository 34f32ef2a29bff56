// SPDX-License-Identifier: GPL-2.0-only
// The keys of [[workload]] and [measure].
#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

void add_measure_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add<Settings>(
      keys,
      {.name = "measure.series",
       .kind = duration,
       .sentence = "Interval of the time series; auto gives some hundred samples.",
       .minimum = 1,
       .maximum = 1000 * kSecond,
       .zero_is_auto = true},
      [](auto& s) -> auto& { return s.measure.series_interval_ns; });
  add<Settings>(
      keys,
      {.name = "measure.limit",
       .kind = duration,
       .sentence = "Simulated time after which the run is given up as stuck; auto is a generous multiple of "
                   "the bound.",
       .minimum = 1,
       .maximum = 100'000 * kSecond,
       .zero_is_auto = true},
      [](auto& s) -> auto& { return s.measure.limit_ns; });
  add<Settings>(
      keys,
      {.name = "measure.hang",
       .kind = duration,
       .sentence =
           "Simulated time in which nothing gets done, although calls are under way, after which the run "
           "is given up with a report of who waits for what; auto is 1s or four ACK timeouts.",
       .minimum = 1,
       .maximum = 100'000 * kSecond,
       .zero_is_auto = true},
      [](auto& s) -> auto& { return s.measure.hang_ns; });
}

void add_flow_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  constexpr std::uint64_t kMessageMax = 64ULL << 20U;
  const auto add_hosts = [&](std::string name, std::string sentence, auto access) {
    add<WorkloadSpec>(keys,
                      {.name = std::move(name),
                       .kind = hosts,
                       .sentence = std::move(sentence),
                       .minimum = 0,
                       .maximum = kHostNumberMax,
                       .required = true,
                       .use = KeyUse::flows},
                      access);
  };
  add_hosts(
      "workload.sources", "flows: hosts that write, each to every sink.",
      [](auto& s) -> auto& { return s.sources; });
  add_hosts(
      "workload.sinks", "flows: hosts that are written to.", [](auto& s) -> auto& { return s.sinks; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.size",
       .kind = bytes,
       .sentence = "flows: payload of each flow.",
       .minimum = 1,
       .maximum = 1ULL << 40U,
       .required = true,
       .use = KeyUse::flows},
      [](auto& s) -> auto& { return s.size; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.message",
       .kind = bytes,
       .sentence = "flows: payload of each WRITE, of which up to 32 are under way.",
       .minimum = 1,
       .maximum = kMessageMax,
       .use = KeyUse::flows},
      [](auto& s) -> auto& { return s.message; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.traffic_class",
       .kind = count,
       .sentence =
           "flows: IP traffic class of the packets, DSCP << 2; its top three bits are their priority. "
           "auto is library.path.traffic_class.",
       .maximum = 255,
       .zero_is_auto = true,
       .use = KeyUse::flows},
      [](auto& s) -> auto& { return s.traffic_class; });
}

}  // namespace

void add_workload_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add_measure_keys(keys);
  constexpr std::uint64_t kSizeMax = 64ULL << 20U;
  add<WorkloadSpec>(
      keys,
      {.name = "workload.kind",
       .kind = choice,
       .sentence =
           "ps-fetch: each client calls all servers at once, round after round. incast: the same with "
           "one client. rpc: each client calls one server after the other. flows: each source writes to each "
           "sink, without the library.",
       .choices = {"ps-fetch", "incast", "rpc", "flows"},
       .required = true},
      [](auto& s) -> auto& { return s.kind; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.servers",
       .kind = hosts,
       .sentence = "Hosts that answer.",
       .minimum = 0,
       .maximum = kHostNumberMax,
       .required = true,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.servers; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.clients",
       .kind = hosts,
       .sentence = "Hosts that call.",
       .minimum = 0,
       .maximum = kHostNumberMax,
       .required = true,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.clients; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.request",
       .kind = sizes,
       .sentence = "Payload of a request; at least 16 bytes, which say what is asked for.",
       .minimum = 16,
       .maximum = kSizeMax,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.request; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.answer",
       .kind = sizes,
       .sentence = "Payload of an answer.",
       .minimum = 0,
       .maximum = kSizeMax,
       .required = true,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.answer; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.calls",
       .kind = count,
       .sentence = "Measured rounds of each client (rpc: calls of each client).",
       .minimum = 1,
       .maximum = 1'000'000,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.calls; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.warm_up",
       .kind = count,
       .sentence = "Rounds (rpc: calls) before measuring begins.",
       .minimum = 0,
       .maximum = 1'000'000,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.warm_up; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.concurrency",
       .kind = count,
       .sentence = "Rounds (rpc: calls) of one client under way at once.",
       .minimum = 1,
       .maximum = 4096,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.concurrency; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.think_time",
       .kind = duration,
       .sentence = "Pause of a client between its rounds (rpc: calls).",
       .minimum = 0,
       .maximum = 1000 * kSecond,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.think_time_ns; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.sessions",
       .kind = count,
       .sentence = "Sessions of a client to each server; its rounds (rpc: calls) use them in turn.",
       .minimum = 1,
       .maximum = 4096,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.sessions; });
  add<WorkloadSpec>(
      keys,
      {.name = "workload.service",
       .kind = count,
       .sentence =
           "Which [[workload]], counted from 1, has the service that is called: sessions of both then "
           "share their lanes. auto is its own.",
       .maximum = 64,
       .zero_is_auto = true,
       .use = KeyUse::calls},
      [](auto& s) -> auto& { return s.service; });
  add_flow_keys(keys);
}

}  // namespace bx::harness
