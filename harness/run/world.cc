// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/scenario/key_table.h"
#include "harness/workload/plan.h"

namespace bx::harness {
namespace {

std::string sentence(std::string_view what, const Error& error) {
  std::string text = fmt::format("{}: {}: {}", what, to_string(error.code), error.detail);
  if (error.sys != 0) text += fmt::format(" (system error {})", error.sys);
  return text;
}

}  // namespace

Parsed<std::unique_ptr<World>> World::create(const BackendChoice& choice, const Settings& settings) {
  Result<std::unique_ptr<Backend>> backend = make_backend(choice, settings);
  if (!backend) {
    return tl::unexpected(sentence(fmt::format("backend {}", to_string(choice.kind)), backend.error()));
  }
  return create(std::move(*backend), settings, {});
}

Parsed<std::unique_ptr<World>> World::create(std::unique_ptr<Backend> backend, const Settings& settings,
                                             const HostList& only) {
  std::unique_ptr<World> world(new World);
  world->backend_ = std::move(backend);
  std::map<std::uint32_t, Node> nodes;
  for (const WorkloadSpec& workload : settings.workloads) {
    for (const std::uint32_t host : workload.clients) nodes[host].client = true;
    for (const std::uint32_t host : workload.servers) nodes[host].server = true;
    for (const std::uint32_t host : workload.sources) nodes[host];
    for (const std::uint32_t host : workload.sinks) nodes[host];
  }
  for (auto& [number, node] : nodes) {
    if (!only.empty() && std::ranges::find(only, number) == only.end()) continue;
    if (Parsed<void> opened = world->open(number, std::move(node), settings); !opened) {
      return tl::unexpected(opened.error());
    }
  }
  if (!only.empty() && world->nodes_.empty())
    return tl::unexpected(std::string("no workload names a host that is played here"));
  return world;
}

Parsed<void> World::open(std::uint32_t number, Node node, const Settings& settings) {
  node.number = number;
  const std::string name = fmt::format("host{}", number);
  Result<std::unique_ptr<fabric::Host>> host = backend_->fabric().open_host(name);
  if (!host) return tl::unexpected(sentence(name, host.error()));
  node.host = std::move(*host);
  if (node.client || node.server) {
    Result<std::unique_ptr<Context>> context = Context::create(*node.host, config_for(settings, number));
    if (!context) return tl::unexpected(sentence(name, context.error()));
    node.context = std::move(*context);
    node.context->worker().set_log(nullptr);  // what fails here is meant to, and counted
  }
  nodes_.push_back(std::move(node));
  return {};
}

bool World::has(std::uint32_t host) const noexcept {
  return std::ranges::binary_search(nodes_, host, {}, &Node::number);
}

Worker World::worker(std::uint32_t host) noexcept {
  return std::ranges::lower_bound(nodes_, host, {}, &Node::number)->context->worker();
}

fabric::Host& World::host(std::uint32_t number) noexcept {
  return *std::ranges::lower_bound(nodes_, number, {}, &Node::number)->host;
}

MetricSet World::counters() const {
  MetricSet metrics;
  backend_->report(metrics);
  for (const Node& node : workers()) node.context->worker().report(metrics);
  for (const Metric& metric : of_the_dead_.all()) {
    if (metric.level) {
      metrics.level(metric.name, metric.value, metric.unit);
    } else {
      metrics.metric(metric.name, metric.value, metric.unit);
    }
  }
  return metrics;
}

std::uint64_t World::cpu_time_ns(bool clients) const {
  std::uint64_t sum = 0;
  for (const Node& node : nodes_) {
    if (node.client == clients) sum += static_cast<std::uint64_t>(node.host->reactor().cpu_time().count());
  }
  return sum;
}

std::uint64_t World::hosts(bool clients) const {
  return static_cast<std::uint64_t>(std::ranges::count(nodes_, clients, &Node::client));
}

std::uint64_t World::client_bytes() const {
  std::uint64_t sum = 0;
  for (const Node& node : nodes_) {
    if (node.client && node.context != nullptr) sum += node.context->worker().gauges().bytes_received;
  }
  return sum;
}

SeriesRow World::sample() const {
  WorkerGauges all;
  for (const Node& node : workers()) {
    const WorkerGauges gauges = node.context->worker().gauges();
    all.bytes_in_flight_in += gauges.bytes_in_flight_in;
    all.bytes_in_flight_out += gauges.bytes_in_flight_out;
    all.credits_available += gauges.credits_available;
    all.messages_queued += gauges.messages_queued;
    all.calls_outstanding += gauges.calls_outstanding;
  }
  const sim::NetworkSample network = backend_->sample();
  return {{static_cast<std::uint64_t>(now().time_since_epoch().count()), network.switch_bytes,
           network.egress_queue_bytes_max, network.ports_paused, network.pause_frames, network.ecn_marks,
           all.bytes_in_flight_in, all.bytes_in_flight_out, all.credits_available, all.messages_queued,
           all.calls_outstanding, 0}};
}

bool World::idle() const {
  return std::ranges::all_of(workers(), [](const Node& node) { return node.context->worker().idle(); });
}

std::vector<std::uint32_t> World::busy_hosts() const {
  std::vector<std::uint32_t> busy;
  for (const Node& node : workers()) {
    if (!node.context->worker().idle()) busy.push_back(node.number);
  }
  return busy;
}

void World::check_invariants() const {
  for (const Node& node : workers()) node.context->worker().check_invariants();
}

void World::kill(std::uint32_t host) {
  Node& node = *std::ranges::lower_bound(nodes_, host, {}, &Node::number);
  if (node.context == nullptr) return;
  node.context->worker().report(of_the_dead_);
  node.context.reset();
}

Parsed<void> World::revive(std::uint32_t host, const Settings& settings) {
  Node& node = *std::ranges::lower_bound(nodes_, host, {}, &Node::number);
  Result<std::unique_ptr<Context>> context = Context::create(*node.host, config_for(settings, host));
  if (!context) return tl::unexpected(sentence(fmt::format("host{}", host), context.error()));
  node.context = std::move(*context);
  node.context->worker().set_log(nullptr);
  return {};
}

std::uint64_t World::progress() const {
  std::uint64_t sum = backend_->progress();
  for (const Node& node : workers()) sum += node.context->worker().gauges().bytes_received;
  return sum;
}

std::vector<std::string> World::describe_stall() const {
  constexpr std::size_t kHostsShown = 16;
  std::vector<std::string> lines;
  const std::vector<std::uint32_t> busy = busy_hosts();
  for (std::size_t i = 0; i < std::min(kHostsShown, busy.size()); ++i) {
    const Node& node = *std::ranges::lower_bound(nodes_, busy[i], {}, &Node::number);
    const WorkerGauges gauges = node.context->worker().gauges();
    lines.push_back(fmt::format(
        "host{}: {} calls outstanding, {} messages queued, {} credits, {} bytes in flight in and {} out",
        node.number, gauges.calls_outstanding, gauges.messages_queued, gauges.credits_available,
        gauges.bytes_in_flight_in, gauges.bytes_in_flight_out));
  }
  if (busy.size() > kHostsShown) lines.push_back(fmt::format("and {} more hosts", busy.size() - kHostsShown));
  for (std::string& line : backend_->describe_stall()) lines.push_back(std::move(line));
  return lines;
}

std::vector<Config> World::configs() const {
  std::vector<Config> configs;
  for (const Node& node : workers()) configs.push_back(node.context->worker().config());
  return configs;
}

std::vector<KnobInForce> knobs_in_force(const Settings& settings, std::span<const Config> configs) {
  std::vector<KnobInForce> knobs_in_force;
  for (const KnobSpec& knob : knobs()) {
    const std::string key = "library." + std::string(knob.name);
    Settings shown = settings;
    bool first = true;
    for (const Config& config : configs) {
      std::uint64_t& value = shown.library.*knob.member;
      const std::uint64_t here = config.*knob.member;
      value = first ? here : std::max(value, here);
      first = false;
    }
    Origin origin = settings.origin(key);
    if (origin == Origin::default_value && shown.library.*knob.member != knob.default_value)
      origin = Origin::workload;
    knobs_in_force.push_back(
        {std::string(knob.name), find_key(key)->get(shown), std::string(to_string(origin))});
  }
  return knobs_in_force;
}

std::vector<KnobInForce> settings_in_force(const Settings& settings) {
  std::vector<KnobInForce> in_force;
  for (const KeySpec& key : scenario_keys()) {
    if (!key.of_settings() || key.name.starts_with("library.")) continue;
    in_force.push_back({key.name, key.get(settings), std::string(to_string(settings.origin(key.name)))});
  }
  for (std::size_t i = 0; i < settings.faults.size(); ++i) {
    const FaultEntry& fault = settings.faults[i];
    for (const KeySpec& key : scenario_keys()) {
      if (!key.of_fault() || !fault.given.contains(key.last_word())) continue;
      in_force.push_back({fmt::format("fault[{}].{}", i, key.last_word()), key.get_fault(fault),
                          std::string(to_string(settings.origin(key.name)))});
    }
  }
  for (std::size_t i = 0; i < settings.workloads.size(); ++i) {
    for (const KeySpec& key : scenario_keys()) {
      if (!key.of_workload() || !key.is_for(settings.workloads[i].kind)) continue;
      in_force.push_back({fmt::format("workload[{}].{}", i, key.last_word()),
                          key.get_workload(settings.workloads[i]),
                          std::string(to_string(settings.origin(key.name)))});
    }
  }
  return in_force;
}

}  // namespace bx::harness
