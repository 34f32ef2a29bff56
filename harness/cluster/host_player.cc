// SPDX-License-Identifier: GPL-2.0-only
// make_host_player() of player.h: the world of a run, reduced to this agent's hosts.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "harness/cluster/player.h"
#include "harness/run/promises.h"
#include "harness/run/traffic.h"
#include "harness/run/verbs_backend.h"
#include "harness/run/world.h"

namespace bx::harness {
namespace {

constexpr std::int64_t kSettlePatience = 1'000'000'000;  // ns without anything done, for credits to come home
constexpr std::uint64_t kInvariantsEvery = 64;           // runs; each walks all tables

class HostPlayer final : public Player {
 public:
  ~HostPlayer() override {
    if (open_) traffic_->end();
  }

  Parsed<void> open(const AgentSetup& setup) override {
    setup_ = setup;
    Parsed<std::unique_ptr<World>> world = make_world();
    if (!world) return tl::unexpected(world.error());
    traffic_ = std::make_unique<Traffic>(setup_.settings, oracle_, LedgerScope::part);
    for (const ErrorCode code : setup_.tolerated) traffic_->ledger().tolerate(code);
    std::string wrong = traffic_->open(std::move(*world));
    open_ = true;
    if (!wrong.empty()) return tl::unexpected(std::move(wrong));
    return {};
  }

  ReadyReport ready() override { return {world().counters(), world().configs()}; }
  [[nodiscard]] std::int64_t now_ns() const override {
    return traffic_->world().now().time_since_epoch().count();
  }

  void begin(Phase phase) override {
    phase_ = phase;
    switch (phase) {
      case Phase::connect:
        return traffic_->begin_connecting();
      case Phase::warm_up:
        return traffic_->begin_warm_up();
      case Phase::measure:
        before_ = world().counters();
        cpu_before_ = cpu_ns();
        return traffic_->begin_measured();
      case Phase::settle:
        measured_ = world().counters().since(before_);
        cpu_measured_ = cpu_ns() - cpu_before_;
        settle_until_ = now_ns() + kSettlePatience;
        return;
    }
  }

  bool done() override {
    if (phase_ != Phase::settle) return traffic_->done();
    if (settled_) return true;
    if (world().progress() != progress_) settle_until_ = now_ns() + kSettlePatience;
    progress_ = world().progress();
    settled_ = world().idle() || now_ns() >= settle_until_;
    return settled_;
  }

  void run(std::int64_t ns) override {
    if (runs_++ % kInvariantsEvery == 0) world().check_invariants();
    world().run(world().now() + Duration(ns));
  }

  Beat beat() override {
    const SeriesRow row = world().sample();
    Beat beat{.now_ns = now_ns(),
              .bytes = world().client_bytes(),
              .started = traffic_->ledger().started(),
              .completed = traffic_->ledger().completed(),
              .progress = world().progress()};
    for (std::size_t i = 0; i < beat.gauges.size(); ++i) beat.gauges[i] = row.values[kFirstGauge + i];
    return beat;
  }

  HostReport report() override {
    world().check_invariants();
    HostReport report;
    if (phase_ == Phase::measure) begin(Phase::settle);  // it was cut short
    if (settled_) check_idle(world(), oracle_);
    report.metrics = measured_;
    report.cpu_ns = cpu_measured_;
    report.breaches = oracle_.breaches();
    report.waits = world().describe_stall();
    for (std::uint64_t call = 0; call < traffic_->plan().calls; ++call) {
      const CallRecord& record = traffic_->ledger().record(call);
      if (record.state != CallState::planned) {
        report.calls.push_back({call, record, traffic_->ledger().code_of(call)});
      }
      if (record.served) {
        report.requests.push_back({call, server_of(call), record.served_at.time_since_epoch().count()});
      }
    }
    return report;
  }

 private:
  static constexpr std::size_t kFirstGauge = 6;  // bytes_in_flight_in, of SeriesRow::kColumns

  Parsed<std::unique_ptr<World>> make_world() {
    if (setup_.backend == "loopback") return World::create({.kind = BackendKind::loopback}, setup_.settings);
    verbs::VerbsConfig config{
        .hosts = setup_.hosts, .device = setup_.device, .seed = setup_.settings.fabric.seed};
    std::vector<CountedPort> ports;
    for (const std::uint32_t own : setup_.own) {
      const native::HostTable table(setup_.hosts);
      const native::HostEntry* entry = table.find(fmt::format("host{}", own));
      if (entry == nullptr) continue;
      if (const auto port = find_device_port(entry->address, setup_.device)) ports.push_back(*port);
    }
    Result<std::unique_ptr<Backend>> backend = make_verbs_backend(config, std::move(ports));
    if (!backend) return tl::unexpected(std::string(backend.error().detail));
    return World::create(std::move(*backend), setup_.settings, setup_.own);
  }

  // Requests are noted by the server that had them, which need not be the one that was meant.
  [[nodiscard]] std::uint32_t server_of(std::uint64_t call) const {
    return traffic_->ledger().record(call).served_by;
  }
  [[nodiscard]] World& world() const noexcept { return traffic_->world(); }
  [[nodiscard]] std::uint64_t cpu_ns() const {
    // One thread: each reactor tells the thread's time.
    std::uint64_t longest = 0;
    for (const bool clients : {true, false}) {
      longest = std::max(longest, world().hosts(clients) == 0 ? 0 : world().cpu_time_ns(clients));
    }
    return longest;
  }

  AgentSetup setup_;
  Oracle oracle_;
  std::unique_ptr<Traffic> traffic_;
  Phase phase_ = Phase::connect;
  MetricSet before_;
  MetricSet measured_;
  std::uint64_t cpu_before_ = 0;
  std::uint64_t cpu_measured_ = 0;
  std::uint64_t progress_ = 0;
  std::uint64_t runs_ = 0;
  std::int64_t settle_until_ = 0;
  bool settled_ = false;
  bool open_ = false;
};

}  // namespace

std::unique_ptr<Player> make_host_player() {
  return std::make_unique<HostPlayer>();
}

}  // namespace bx::harness
