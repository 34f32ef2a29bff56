// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace bx::harness {
namespace {

constexpr Duration kEndSlice{100'000};  // ns, in which what was closed completes

ByteChecks byte_checks(const Settings& settings) {
  return settings.fabric.payload == "lengths" ? ByteChecks::off : ByteChecks::on;
}

}  // namespace

Traffic::Traffic(const Settings& settings, Oracle& oracle, LedgerScope scope)
    : settings_(settings),
      oracle_(oracle),
      scope_(scope),
      plan_(make_plan(settings)),
      ledger_(plan_.calls, oracle, byte_checks(settings), scope) {}

std::string Traffic::open(std::unique_ptr<World> world) {
  world_ = std::move(world);
  for (std::size_t w = 0; w < settings_.workloads.size(); ++w) {
    if (settings_.workloads[w].service != 0) continue;  // another's
    for (const std::uint32_t host : settings_.workloads[w].servers) {
      if (!world_->has(host)) continue;
      servers_.push_back({host, static_cast<std::uint16_t>(kFirstPort + w), {host, ledger_, oracle_}});
    }
  }
  for (Serving& serving : servers_) {
    if (std::string wrong = serve(serving); !wrong.empty()) return wrong;
  }
  ClientListener& listener = *this;
  for (const ClientPlan& client : plan_.clients) {
    if (!world_->has(client.host)) continue;
    clients_.emplace_back(client, world_->worker(client.host), ledger_, oracle_, listener);
  }
  return scope_ == LedgerScope::whole ? open_flows() : std::string();
}

std::string Traffic::serve(Serving& serving) {
  serving.server.set_clock(world_->host(serving.host).reactor());
  const Result<> served = world_->worker(serving.host).serve(serving.port, serving.server);
  if (served) return {};
  return fmt::format("host{} cannot serve port {}: {}", serving.host, serving.port, served.error().detail);
}

std::string Traffic::open_flows() {
  ClientListener& listener = *this;
  const Config& library = settings_.library;
  const fabric::PathConfig standard{.mtu_bytes = static_cast<std::uint32_t>(link_model(settings_).mtu),
                                    .ack_timeout = static_cast<std::uint8_t>(library.path_ack_timeout),
                                    .retry_cnt = static_cast<std::uint8_t>(library.path_retry_cnt),
                                    .rnr_retry = static_cast<std::uint8_t>(library.path_rnr_retry),
                                    .min_rnr_timer = static_cast<std::uint8_t>(library.path_min_rnr_timer),
                                    .traffic_class = static_cast<std::uint8_t>(library.path_traffic_class)};
  for (const FlowSpec& spec : plan_flows(settings_)) {
    fabric::PathConfig path = standard;
    path.traffic_class = spec.traffic_class.value_or(standard.traffic_class);
    flows_.push_back(std::make_unique<Flow>(spec, oracle_, listener));
    const Result<> opened = flows_.back()->open(world_->host(spec.source), world_->host(spec.sink), path);
    if (!opened) {
      return fmt::format("flow {} from host{} to host{}: {}", spec.number, spec.source, spec.sink,
                         opened.error().detail);
    }
  }
  return {};
}

void Traffic::begin_connecting() {
  pending_ = clients_.size();
  for (Client& client : clients_) client.start_connecting();
}

void Traffic::begin_warm_up() {
  for (const Client& client : clients_) pending_ += client.plan().warm_up_rounds != 0 ? 1 : 0;
  for (Client& client : clients_) {
    if (client.plan().warm_up_rounds != 0) client.start_rounds(0, client.plan().warm_up_rounds);
  }
}

void Traffic::begin_measured() {
  pending_ = clients_.size() + flows_.size();
  world_->backend().start_faults(this);
  for (Client& client : clients_) client.start_rounds(client.plan().warm_up_rounds, client.plan().rounds);
  for (const auto& flow : flows_) flow->start();
}

std::int64_t Traffic::flows_unfinished() const {
  return std::ranges::count_if(flows_, [](const auto& flow) { return !flow->done(); });
}

std::uint64_t Traffic::bytes() const {
  std::uint64_t sum = world_->client_bytes();
  for (const auto& flow : flows_) sum += flow->acknowledged();
  return sum;
}

void Traffic::judge() {
  ledger_.close();
  for (const auto& flow : flows_) flow->close(byte_checks(settings_));
}

void Traffic::end() {
  closing_ = true;
  for (Client& client : clients_) client.give_up();
  if (ledger_.started() == ledger_.completed()) return;
  for (Node& node : world_->nodes()) {
    if (node.context != nullptr) node.context->worker().close();
  }
  world_->run(world_->now() + kEndSlice);
}

void Traffic::on_client_done() noexcept {
  if (pending_ > 0 && --pending_ == 0 && !closing_) world_->stop();
}

void Traffic::on_host_fault(std::uint16_t host, sim::FaultKind /*kind*/, bool begins) {
  if (closing_) return;
  if (begins) return world_->kill(host);
  std::string wrong;
  if (const Parsed<void> revived = world_->revive(host, settings_); !revived) wrong = revived.error();
  for (Serving& serving : servers_) {
    if (serving.host == host && wrong.empty()) wrong = serve(serving);
  }
  if (!wrong.empty()) {
    oracle_.breach(promise::kAlive, fmt::format("host{} cannot restart: {}", host, wrong));
  }
}

}  // namespace bx::harness
