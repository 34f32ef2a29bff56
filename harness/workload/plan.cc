// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace bx::harness {
namespace {

ClientPlan plan_client(const WorkloadSpec& spec, std::uint32_t workload, std::size_t client, Prng prng) {
  const bool rpc = spec.workload_kind() == WorkloadKind::rpc;
  ClientPlan plan;
  plan.host = spec.clients[client];
  plan.workload = workload;
  plan.service = spec.service == 0 ? workload : static_cast<std::uint32_t>(spec.service) - 1;
  plan.sessions = static_cast<std::uint32_t>(spec.sessions);
  plan.fan_out = rpc ? 1 : static_cast<std::uint32_t>(spec.servers.size());
  plan.warm_up_rounds = static_cast<std::uint32_t>(spec.warm_up);
  plan.rounds = static_cast<std::uint32_t>(spec.calls);
  plan.concurrency = static_cast<std::uint32_t>(std::min(spec.concurrency, spec.calls + spec.warm_up));
  plan.think_time_ns = spec.think_time_ns;
  const std::uint64_t rounds = spec.warm_up + spec.calls;
  plan.calls.reserve(rounds * plan.fan_out);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::uint32_t k = 0; k < plan.fan_out; ++k) {
      // rpc: one server after the other, the clients not all beginning with the same one.
      const std::size_t server = rpc ? (round + client) % spec.servers.size() : k;
      plan.calls.push_back({spec.servers[server], static_cast<std::uint32_t>(spec.request.draw(prng)),
                            static_cast<std::uint32_t>(spec.answer.draw(prng))});
    }
  }
  return plan;
}

bool is_among(const HostList& hosts, std::uint32_t host) {
  return std::ranges::binary_search(hosts, host);
}

std::uint64_t fan_out_of(const WorkloadSpec& spec) {
  return spec.workload_kind() == WorkloadKind::rpc ? 1 : spec.servers.size();
}

}  // namespace

Plan make_plan(const Settings& settings) {
  Plan plan;
  const Prng root(settings.fabric.seed);
  for (std::size_t w = 0; w < settings.workloads.size(); ++w) {
    const WorkloadSpec& spec = settings.workloads[w];
    if (spec.is_flows()) continue;
    for (std::size_t c = 0; c < spec.clients.size(); ++c) {
      ClientPlan client = plan_client(spec, static_cast<std::uint32_t>(w), c,
                                      root.fork(fmt::format("workload{}.host{}", w, spec.clients[c])));
      client.first_call = plan.calls;
      plan.calls += client.calls.size();
      plan.measured_calls += std::uint64_t{client.rounds} * client.fan_out;
      for (std::uint32_t round = 0; round < client.rounds; ++round) {
        for (const CallPlan& call : client.round(client.warm_up_rounds + round))
          plan.answer_bytes += call.answer_bytes;
      }
      plan.clients.push_back(std::move(client));
    }
  }
  return plan;
}

LinkModel link_model(const Settings& settings) {
  LinkModel link{settings.fabric.rate_bps, settings.fabric.delay_ns * 1000,
                 std::min<std::uint64_t>(settings.fabric.mtu, settings.library.path_mtu)};
  if (settings.fabric.topology.shape != "file") return link;
  // A lower bound whatever host is meant; PathModel tells them apart.
  link.rate_bps = 1;
  link.delay_ps = UINT64_MAX;
  for (const sim::LinkPlan& each : settings.fabric.topology.plan.links) {
    link.rate_bps = std::max(link.rate_bps, each.speed.rate.bits_per_second);
    link.delay_ps = std::min(link.delay_ps, static_cast<std::uint64_t>(each.speed.delay.count()));
  }
  return link;
}

LinkModel slowest_link(const Settings& settings) {
  LinkModel link = link_model(settings);
  const sim::TopologySpec& topology = settings.fabric.topology;
  if (topology.uplink_rate_bps != 0) link.rate_bps = std::min(link.rate_bps, topology.uplink_rate_bps);
  link.delay_ps = std::max(link.delay_ps, topology.uplink_delay_ns * 1000);
  if (topology.shape != "file") return link;
  for (const sim::LinkPlan& each : topology.plan.links) {
    link.rate_bps = std::min(link.rate_bps, each.speed.rate.bits_per_second);
    link.delay_ps = std::max(link.delay_ps, static_cast<std::uint64_t>(each.speed.delay.count()));
  }
  return link;
}

std::vector<std::uint64_t> round_bounds_ps(const ClientPlan& client, const PathModel& paths) {
  std::vector<std::uint64_t> bounds;
  std::vector<std::uint64_t> answers;
  std::vector<std::uint32_t> servers;
  for (std::uint32_t round = 0; round < client.rounds; ++round) {
    answers.clear();
    servers.clear();
    for (const CallPlan& call : client.round(client.warm_up_rounds + round)) {
      answers.push_back(call.answer_bytes);
      servers.push_back(call.server);
    }
    bounds.push_back(incast_bound_ps(paths.to(client.host, servers), answers));
  }
  return bounds;
}

std::uint64_t expected_duration_ns(const Plan& plan, const Settings& settings) {
  const LinkModel link = slowest_link(settings);
  // What a call costs beyond its bytes: two ways through the fabric, NICs and software.
  const std::uint64_t round_trip_ns = 4 * (link.delay_ps / 1000) + 5000;
  std::uint64_t longest = 0;
  for (const ClientPlan& client : plan.clients) {
    std::uint64_t bytes_ps = 0;
    for (const std::uint64_t bound : round_bounds_ps(client, PathModel(link))) bytes_ps += bound;
    const std::uint64_t pauses = (round_trip_ns + client.think_time_ns) * client.rounds / client.concurrency;
    longest = std::max(longest, bytes_ps / 1000 + pauses);
  }
  return longest;
}

std::uint32_t peers_of(const Settings& settings, std::uint32_t host) {
  std::set<std::uint32_t> peers;
  for (const WorkloadSpec& spec : settings.workloads) {
    if (is_among(spec.clients, host)) peers.insert(spec.servers.begin(), spec.servers.end());
    if (is_among(spec.servers, host)) peers.insert(spec.clients.begin(), spec.clients.end());
  }
  return static_cast<std::uint32_t>(peers.size());
}

Config config_for(const Settings& settings, std::uint32_t host) {
  Config config = settings.library;
  std::uint64_t calls = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  for (const WorkloadSpec& spec : settings.workloads) {
    const std::uint64_t each = spec.request.largest() + spec.answer.largest();
    const std::uint64_t under_way = spec.concurrency * fan_out_of(spec);
    if (is_among(spec.clients, host)) {
      calls += under_way;
      bytes += under_way * each;
    }
    if (is_among(spec.servers, host)) {
      requests += spec.concurrency * spec.clients.size();
      bytes += spec.concurrency * spec.clients.size() * each;
    }
  }
  const auto at_least = [&](std::uint64_t Config::*knob, std::string_view name, std::uint64_t needed) {
    if (settings.origin("library." + std::string(name)) != Origin::default_value) return;
    config.*knob = std::max(config.*knob, std::min(needed, find_knob(name)->maximum));
  };
  // Exactly what is needed: the completion queue is sized for every peer there may be.
  if (settings.origin("library.peers.max") == Origin::default_value) {
    config.peers_max = std::max<std::uint64_t>(1, peers_of(settings, host));
  }
  at_least(&Config::calls_max, "calls.max", calls);
  at_least(&Config::requests_max, "requests.max", requests);
  // Twice, because pieces are rounded up to powers of two; and room for slots and headers.
  at_least(&Config::memory_arena, "memory.arena", 2 * bytes + (std::uint64_t{64} << 20U));
  return config;
}

}  // namespace bx::harness
