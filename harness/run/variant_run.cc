// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/variant_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "harness/base/stopwatch.h"
#include "harness/run/hang_watch.h"
#include "harness/run/world.h"
#include "harness/workload/client.h"
#include "harness/workload/flows.h"
#include "harness/workload/outcome.h"
#include "harness/workload/server.h"
#include "libbx/base/check.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kSamplesWanted = 400;
constexpr std::uint64_t kIntervalMin = 500;         // ns; below it sampling costs more than the run
constexpr std::uint64_t kConnectSlice = 1'000'000;  // ns between looks at a phase that is not sampled
constexpr std::uint64_t kSettleSlice = 100'000;     // ns
constexpr std::uint64_t kSettleLimit = kSecond;     // for acknowledgements and credits to come home
constexpr std::uint64_t kLimitFactor = 100;         // of the expected duration, before a run is given up
constexpr std::uint64_t kLimitMin = 30 * kSecond;   // longer than any default deadline of the library
constexpr double kPredictedMax = 0.95;
constexpr std::string_view kHungMetric = "run.hung";
constexpr std::uint64_t kInvariantsEvery = 16;  // samples; each walks all tables of all workers

std::uint64_t to_ns(Instant instant) {
  return static_cast<std::uint64_t>(instant.time_since_epoch().count());
}
Instant later(Instant now, std::uint64_t ns) {
  return now + Duration(static_cast<std::int64_t>(ns));
}

class VariantRun final : private ClientListener, private sim::HostFaultListener {
 public:
  VariantRun(const Scenario& scenario, const Variant& variant, const BackendChoice& choice,
             RunObserver& observer)
      : scenario_(scenario),
        variant_(variant),
        settings_(variant.settings),
        choice_(choice),
        observer_(observer),
        plan_(make_plan(settings_)),
        ledger_(plan_.calls, oracle_,
                settings_.fabric.payload == "lengths" ? ByteChecks::off : ByteChecks::on) {
    result_.name = variant.name;
    result_.seed = settings_.fabric.seed;
    result_.taken_as_given = keys_taken_as_given(choice.kind, settings_);
  }

  VariantResult run() {
    const Stopwatch stopwatch;
    if (prepare()) {
      const bool finished = run_phases();
      if (finished) settle();
      finish(finished);
    }
    result_.wall_seconds = stopwatch.seconds();
    return std::move(result_);
  }

 private:
  bool refuse(std::string message) {
    result_.status = RunStatus::refused;
    result_.message = std::move(message);
    return false;
  }

  bool prepare() {
    if (std::string why = why_no_faults(choice_.kind, settings_); !why.empty()) return refuse(std::move(why));
    Parsed<std::unique_ptr<World>> world = World::create(choice_, settings_);
    if (!world) return refuse(world.error());
    world_ = std::move(*world);
    if (!check_expectations()) return false;
    tolerate_what_is_expected();
    for (std::size_t w = 0; w < settings_.workloads.size(); ++w) {
      for (const std::uint32_t host : settings_.workloads[w].servers) {
        servers_.push_back({host, static_cast<std::uint16_t>(kFirstPort + w), {host, ledger_, oracle_}});
      }
    }
    for (Serving& serving : servers_) {
      if (const std::string wrong = serve(serving); !wrong.empty()) return refuse(wrong);
    }
    ClientListener& listener = *this;
    for (const ClientPlan& client : plan_.clients) {
      clients_.emplace_back(client, world_->worker(client.host), ledger_, oracle_, listener);
    }
    if (!open_flows()) return false;
    result_.settings = settings_in_force(settings_);
    result_.knobs = world_->knobs_in_force(settings_);
    return true;
  }

  bool open_flows() {
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
        return refuse(fmt::format("flow {} from host{} to host{}: {}", spec.number, spec.source, spec.sink,
                                  opened.error().detail));
      }
    }
    return true;
  }

  struct Serving {
    std::uint32_t host = 0;
    std::uint16_t port = 0;
    Server server;
  };
  // What went wrong, or nothing.
  std::string serve(Serving& serving) {
    const Result<> served = world_->worker(serving.host).serve(serving.port, serving.server);
    if (served) return {};
    return fmt::format("host{} cannot serve port {}: {}", serving.host, serving.port, served.error().detail);
  }

  // What an expectation of the scenario speaks about is for that to judge: it is no breach.
  void tolerate_what_is_expected() {
    for (const Expectation& expectation : scenario_.expectations) {
      if (!applies(expectation)) continue;
      if (expectation.metric == kHungMetric) hang_tolerated_ = true;
      for (const ErrorCode code : all_error_codes()) {
        if (expectation.metric == kErrorMetric || expectation.metric == error_metric(code))
          ledger_.tolerate(code);
      }
    }
  }

  [[nodiscard]] std::optional<LinkModel> link() const {
    return world_->backend().has_closed_form() ? std::optional(link_model(settings_)) : std::nullopt;
  }

  // Before anything runs: a misspelt metric must not cost a long run, nor pass unseen.
  bool check_expectations() {
    known_ = world_->counters();
    if (plan_.calls != 0) declare_outcome(link().has_value(), known_);
    if (!plan_flows(settings_).empty()) declare_flows(link().has_value(), known_);
    known_.set(kHungMetric, 0, "count");
    for (const char* role : {"clients", "servers"}) {
      known_.set(fmt::format("cpu.{}.time", role), 0, "ns");
      known_.set(fmt::format("cpu.{}.utilisation", role), 0, "ratio");
    }
    for (const Expectation& expectation : scenario_.expectations) {
      if (!applies(expectation)) continue;
      const std::string fault = find_fault(expectation, known_);
      if (!fault.empty()) {
        return refuse(fmt::format("{}:{}:{}: error: {}", scenario_.file, expectation.place.line,
                                  expectation.place.column, fault));
      }
    }
    return true;
  }

  bool applies(const Expectation& expectation) const {
    return expectation.applies_to(to_string(choice_.kind), variant_.name) &&
           is_visible(choice_.kind, expectation.metric) && is_visible(choice_.kind, expectation.of);
  }

  bool run_phases() {
    expected_ = std::max(expected_duration_ns(plan_, settings_),
                         flows_bound_ns(plan_flows(settings_), link_model(settings_)));
    limit_ = settings_.measure.limit_ns != 0 ? settings_.measure.limit_ns
                                             : std::max(kLimitMin, kLimitFactor * expected_);
    watch_ = HangWatch(hang_window_ns(settings_, limit_));
    pending_ = clients_.size();
    for (Client& client : clients_) client.start_connecting();
    if (!drive("connect", kConnectSlice) || !oracle_.ok()) return false;

    for (Client& client : clients_) pending_ += client.plan().warm_up_rounds != 0 ? 1 : 0;
    for (Client& client : clients_) {
      if (client.plan().warm_up_rounds != 0) client.start_rounds(0, client.plan().warm_up_rounds);
    }
    if (!drive("warm-up", kConnectSlice)) return false;

    before_ = world_->counters();
    cpu_before_ = {world_->cpu_time_ns(true), world_->cpu_time_ns(false)};
    bytes_before_ = bytes_sampled_ = bytes_now();
    started_ = world_->now();
    result_.series = Series(settings_.measure.series_interval_ns != 0
                                ? settings_.measure.series_interval_ns
                                : std::max(kIntervalMin, expected_ / kSamplesWanted));
    sampling_ = true;
    pending_ = clients_.size() + flows_.size();
    world_->backend().start_faults(this);
    for (Client& client : clients_) client.start_rounds(client.plan().warm_up_rounds, client.plan().rounds);
    for (const auto& flow : flows_) flow->start();
    const bool finished = drive("measure", 0);
    sampling_ = false;
    cpu_after_ = {world_->cpu_time_ns(true), world_->cpu_time_ns(false)};
    measured_ns_ = to_ns(world_->now()) - to_ns(started_);
    return finished;
  }

  // Runs until every client has done its part. `slice` 0 means the interval of the series, which may grow.
  bool drive(std::string_view phase, std::uint64_t slice) {
    const Instant give_up = later(Instant{}, limit_);
    watch_.restart(world_->now());
    while (pending_ > 0) {
      if (observer_.interrupted()) {
        result_.status = RunStatus::interrupted;
        return false;
      }
      if (world_->now() >= give_up) {
        return give_up_because(fmt::format("the limit of {} simulated time is reached in phase {}",
                                           format_duration_ns(limit_), phase));
      }
      const Instant until = later(world_->now(), slice == 0 ? result_.series.interval_ns() : slice);
      const fabric::RunEnd end = world_->run(std::min(until, give_up));
      look(phase);
      if (end == fabric::RunEnd::idle && pending_ > 0) {
        return give_up_because(
            fmt::format("nothing is left that could happen in phase {}: {} calls and {} flows are unfinished",
                        phase, under_way(), flows_unfinished()));
      }
      const bool idle = under_way() == 0 && (!sampling_ || flows_unfinished() == 0);
      const bool excused = idle || world_->backend().faults_pending() > 0;
      if (pending_ > 0 && watch_.hung(world_->now(), world_->progress() + ledger_.completed(), excused)) {
        return give_up_because(fmt::format(
            "nothing has got done for {} in phase {}: {} calls and {} flows are unfinished",
            format_duration_ns(to_ns(Instant{} + watch_.window())), phase, under_way(), flows_unfinished()));
      }
    }
    return true;
  }

  [[nodiscard]] std::int64_t flows_unfinished() const {
    return std::ranges::count_if(flows_, [](const auto& flow) { return !flow->done(); });
  }
  // Payload that clients have received and flows have seen acknowledged.
  [[nodiscard]] std::uint64_t bytes_now() const {
    std::uint64_t sum = world_->client_bytes();
    for (const auto& flow : flows_) sum += flow->acknowledged();
    return sum;
  }
  [[nodiscard]] std::uint64_t under_way() const { return ledger_.started() - ledger_.completed(); }

  // Ends the run with a report of who waits for what.
  bool give_up_because(std::string reason) {
    result_.hang = {reason, to_ns(world_->now()), world_->describe_stall()};
    if (hang_tolerated_) return false;
    oracle_.breach(promise::kFinished, std::move(reason));
    for (const std::string& line : result_.hang.waits) oracle_.breach(promise::kFinished, line);
    return false;
  }

  // In an event of no host: the process of a server dies, or starts again.
  void on_host_fault(std::uint16_t host, sim::FaultKind /*kind*/, bool begins) override {
    if (closing_) return;
    if (begins) return world_->kill(host);
    std::string wrong;
    if (const Parsed<void> revived = world_->revive(host, settings_); !revived) wrong = revived.error();
    for (Serving& serving : servers_) {
      if (serving.host == host && wrong.empty()) wrong = serve(serving);
    }
    if (!wrong.empty())
      oracle_.breach(promise::kAlive, fmt::format("host{} cannot restart: {}", host, wrong));
  }

  void report_faults() {
    const auto ns = [](sim::Picoseconds time) { return static_cast<std::uint64_t>(time.count() / 1000); };
    for (const sim::FaultRecord& fault : world_->backend().faults()) {
      result_.faults.push_back({std::string(sim::to_string(fault.spec.kind)), fault.spec.target,
                                ns(fault.spec.at), ns(fault.spec.duration), fault.began, fault.ended,
                                fault.hits});
    }
  }

  void look(std::string_view phase) {
    if (looks_++ % kInvariantsEvery == 0) world_->check_invariants();
    const std::uint64_t bytes = bytes_now();
    if (sampling_) {
      SeriesRow row = world_->sample();
      const std::uint64_t now = row.values.front();
      const std::uint64_t elapsed = now - (sampled_at_ == 0 ? to_ns(started_) : sampled_at_);
      row.values.back() = elapsed == 0 ? 0 : (bytes - bytes_sampled_) * 8 * kSecond / elapsed;
      result_.series.add(row);
      sampled_at_ = now;
      bytes_sampled_ = bytes;
    }
    observer_.on_progress({phase, to_ns(world_->now()), world_->backend().events(), fraction(bytes)});
  }

  // Of the measured part. Only whole messages are counted as received, and in an incast all of them become
  // whole near the end; until then the closed form says how far the run must be.
  double fraction(std::uint64_t bytes) const {
    if (!sampling_) return 0;
    double part = static_cast<double>(ledger_.completed()) /
                  static_cast<double>(std::max<std::uint64_t>(1, plan_.calls));
    if (plan_.answer_bytes != 0) {
      part = static_cast<double>(bytes - bytes_before_) / static_cast<double>(plan_.answer_bytes);
    }
    const double elapsed = static_cast<double>(to_ns(world_->now()) - to_ns(started_));
    const double predicted =
        std::min(kPredictedMax, elapsed / static_cast<double>(std::max<std::uint64_t>(1, expected_)));
    return std::min(1.0, std::max(part, predicted));
  }

  // Acknowledgements and credits come home after the last answer.
  void settle() {
    const Instant give_up = later(world_->now(), kSettleLimit);
    while (!(world_->idle() && world_->backend().audit().breaches.empty()) && world_->now() < give_up &&
           !observer_.interrupted()) {
      const fabric::RunEnd end = world_->run(later(world_->now(), kSettleSlice));
      look("settle");
      if (end == fabric::RunEnd::idle) break;
    }
    for (const std::uint32_t host : world_->busy_hosts()) {
      const WorkerGauges gauges = world_->worker(host).gauges();
      oracle_.breach(
          promise::kIdle,
          fmt::format("host{} still has {} calls, {} queued messages, {} bytes in flight in and {} out", host,
                      gauges.calls_outstanding, gauges.messages_queued, gauges.bytes_in_flight_in,
                      gauges.bytes_in_flight_out));
    }
  }

  void finish(bool finished) {
    world_->check_invariants();
    result_.simulated_ns = to_ns(world_->now());
    result_.events = world_->backend().events();
    Digest digest;
    digest.add(world_->backend().digest());
    digest.add(ledger_.digest());
    if (!flows_.empty()) add_flows(flows_, digest);
    result_.digest = digest.value();
    measure();
    report_faults();
    if (result_.status != RunStatus::interrupted) {
      if (result_.hang.reason.empty() || !hang_tolerated_) {
        ledger_.close();
        for (const auto& flow : flows_) flow->close();
      }
      check_promises(finished);
      judge_expectations();
    }
    if (const Result<> ended = world_->backend().end_capture(); !ended) {
      oracle_.breach(promise::kNetwork,
                     fmt::format("{} (system error {})", ended.error().detail, ended.error().sys));
    }
    result_.breaches = oracle_.breaches();
    end_world();
  }

  void measure() {
    if (plan_.calls != 0) report_outcome(plan_, ledger_, link(), result_.metrics);
    report_flows(flows_, link(), result_.metrics);
    result_.metrics.set(kHungMetric, result_.hang.reason.empty() ? 0 : 1, "count");
    const auto report_cpu = [&](std::string_view role, bool clients, std::uint64_t before,
                                std::uint64_t after) {
      const double used = static_cast<double>(after - before);
      const double available =
          static_cast<double>(measured_ns_ * std::max<std::uint64_t>(1, world_->hosts(clients)));
      result_.metrics.set(fmt::format("cpu.{}.time", role), used, "ns");
      result_.metrics.set(fmt::format("cpu.{}.utilisation", role), available == 0 ? 0 : used / available,
                          "ratio");
    };
    report_cpu("clients", true, cpu_before_.clients, cpu_after_.clients);
    report_cpu("servers", false, cpu_before_.servers, cpu_after_.servers);
    const MetricSet counters = world_->counters().since(before_);
    for (const Metric& metric : counters.all()) result_.metrics.set(metric.name, metric.value, metric.unit);
    for (const Metric& metric : result_.metrics.all()) {
      BX_CHECK(known_.find(metric.name) != nullptr, "a metric was reported that was not declared");
    }
  }

  void check_promises(bool finished) {
    if (const auto model = link()) {
      check_closed_form(plan_, ledger_, *model, oracle_);
      check_flows(flows_, *model, oracle_);
    }
    const sim::Audit audit = world_->backend().audit();
    if (audit.lossless_drops != 0) {
      oracle_.breach(promise::kLosslessDrop,
                     fmt::format("{} packets of a lossless class were dropped", audit.lossless_drops));
    }
    // A run that did not end has frames under way; that is said already.
    if (finished) {
      for (const std::string& breach : audit.breaches) oracle_.breach(promise::kNetwork, breach);
    }
    const double naks = world_->counters().value_or("nic.rnr_naks", 0);
    if (naks != 0 && settings_.library.path_rnr_retry == 0) {
      oracle_.breach(promise::kReceiverReady,
                     fmt::format("{} receiver-not-ready NAKs: a message was sent without a "
                                 "credit",
                                 naks));
    }
  }

  void judge_expectations() {
    for (const Expectation& expectation : scenario_.expectations) {
      if (!expectation.applies_to(to_string(choice_.kind), variant_.name)) continue;
      if (applies(expectation)) {
        result_.verdicts.push_back(judge(expectation, result_.metrics));
      } else {
        result_.skipped.push_back(
            {expectation.metric, fmt::format("backend {} cannot see it", to_string(choice_.kind))});
      }
    }
  }

  // Calls still under way complete with `closed` before the memory they use goes.
  void end_world() {
    closing_ = true;
    for (Client& client : clients_) client.give_up();
    if (ledger_.started() == ledger_.completed()) return;
    for (Node& node : world_->nodes()) {
      if (node.context != nullptr) node.context->worker().close();
    }
    world_->run(later(world_->now(), kSettleSlice));
  }

  void on_client_done() noexcept override {
    if (pending_ > 0 && --pending_ == 0 && !closing_) world_->stop();
  }

  struct CpuTimes {
    std::uint64_t clients = 0;
    std::uint64_t servers = 0;
  };

  const Scenario& scenario_;
  const Variant& variant_;
  const Settings& settings_;
  BackendChoice choice_;
  RunObserver& observer_;
  VariantResult result_;
  Oracle oracle_;
  Plan plan_;
  Ledger ledger_;
  std::deque<Serving> servers_;  // deques, because workers and coroutines point at the elements
  std::deque<Client> clients_;
  std::unique_ptr<World> world_;              // destroyed next: its workers hold coroutines of the clients
  std::vector<std::unique_ptr<Flow>> flows_;  // destroyed first: they are made of objects of the hosts
  MetricSet known_;
  MetricSet before_;
  CpuTimes cpu_before_;
  CpuTimes cpu_after_;
  Instant started_{};
  std::uint64_t measured_ns_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t expected_ = 0;  // duration of the measured part, ns
  std::uint64_t bytes_before_ = 0;
  std::uint64_t bytes_sampled_ = 0;
  std::uint64_t sampled_at_ = 0;
  std::uint64_t looks_ = 0;
  std::size_t pending_ = 0;
  HangWatch watch_{1};
  bool hang_tolerated_ = false;
  bool sampling_ = false;
  bool closing_ = false;
};

}  // namespace

VariantResult run_variant(const Scenario& scenario, const Variant& variant, const BackendChoice& choice,
                          RunObserver& observer) {
  return VariantRun(scenario, variant, choice, observer).run();
}

}  // namespace bx::harness
