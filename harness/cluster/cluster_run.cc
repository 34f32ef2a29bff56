// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/cluster_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "harness/base/stopwatch.h"
#include "harness/cluster/merge.h"
#include "harness/run/expectations.h"
#include "harness/run/hang_watch.h"
#include "harness/run/rxe_backend.h"
#include "harness/run/world.h"
#include "harness/workload/outcome.h"

namespace bx::harness {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLimitMin = 60 * kSecond;   // longer than any default deadline of the library
constexpr std::int64_t kLimitFactor = 100;         // of the expected duration, before a run is given up
constexpr std::int64_t kHangMin = 15 * kSecond;    // a machine that others use may stand still for a while
constexpr std::int64_t kHeadStart = 50'000'000;    // ns, for the word of the start to reach everybody
constexpr std::int64_t kIntervalMin = 20'000'000;  // ns between rows of the series
constexpr std::int64_t kSamplesWanted = 400;
constexpr std::int64_t kReportLimit = 30 * kSecond;  // for reports to come
constexpr int kTick = 5;                             // ms between looks

class ClusterRun {
 public:
  ClusterRun(const Scenario& scenario, const Variant& variant, BackendKind kind, ClusterHosts hosts,
             RunObserver& observer)
      : settings_(variant.settings),
        kind_(kind),
        hosts_(std::move(hosts)),
        observer_(observer),
        plan_(make_plan(settings_)),
        expectations_(scenario, variant, kind),
        merge_(settings_, plan_, oracle_),
        steps_(plan_fault_steps(settings_)),
        links_(settings_, {.hosts = settings_.fabric.hosts,
                           .rate_bps = settings_.fabric.rate_bps,
                           .delay_ns = settings_.fabric.delay_ns,
                           .mtu = static_cast<std::uint32_t>(settings_.fabric.mtu)}),
        coordinator_(hosts_.coordinator, processes(), hosts_.launch,
                     [this](std::uint32_t host) { return setup_for(host); }) {
    result_.name = variant.name;
    result_.seed = settings_.fabric.seed;
    result_.taken_as_given = keys_taken_as_given(kind, settings_);
    result_.settings = settings_in_force(settings_);
    const auto expected = static_cast<std::int64_t>(expected_duration_ns(plan_, settings_));
    limit_ = settings_.measure.limit_ns != 0 ? static_cast<std::int64_t>(settings_.measure.limit_ns)
                                             : std::max(kLimitMin, kLimitFactor * expected);
    const auto interval = static_cast<std::int64_t>(settings_.measure.series_interval_ns);
    interval_ = std::max(kIntervalMin, interval != 0 ? interval : expected / kSamplesWanted);
    const std::uint64_t window = hang_window_ns(settings_, static_cast<std::uint64_t>(limit_));
    watch_ = HangWatch(settings_.measure.hang_ns != 0 ? window : std::max<std::uint64_t>(kHangMin, window));
    for (std::size_t i = 0; i < settings_.faults.size(); ++i) {
      const FaultEntry& fault = settings_.faults[i];
      if (fault.enabled)
        faults_[i] = {fault.kind, fault.target, fault.at_ns, fault.duration_ns, false, false, 0};
    }
  }

  VariantResult run() {
    const Stopwatch stopwatch;
    if (Parsed<void> started = coordinator_.start(); !started) {
      result_.status = RunStatus::refused;
      result_.message = started.error();
    } else {
      began_ns_ = coordinator_.now_ns();
      play();
    }
    result_.wall_seconds = stopwatch.seconds();
    return std::move(result_);
  }

 private:
  [[nodiscard]] HostList processes() const {
    if (!hosts_.processes.empty()) return hosts_.processes;
    std::set<std::uint32_t> named;
    for (const WorkloadSpec& workload : settings_.workloads) {
      named.insert(workload.clients.begin(), workload.clients.end());
      named.insert(workload.servers.begin(), workload.servers.end());
    }
    return {named.begin(), named.end()};
  }

  AgentSetup setup_for(std::uint32_t host) {
    AgentSetup setup{
        .settings = settings_, .hosts = hosts_.entries, .own = {host}, .backend = hosts_.agent_backend};
    // Pinning memory page by page is dear under emulation: no more than the workload needs, for which
    // config_for() sees.
    if (kind_ == BackendKind::rxe && settings_.origin("library.memory.arena") == Origin::default_value) {
      setup.settings.library.memory_arena = find_knob("memory.arena")->minimum;
    }
    if (hosts_.device) setup.device = hosts_.device(host);
    if (hosts_.plays) setup.own = hosts_.plays(host);
    setup.tolerated = tolerated_;
    setup.beat_ns = static_cast<std::uint64_t>(interval_);
    return setup;
  }

  void play() {
    find_tolerated();
    const bool finished = open() && run_phases();
    if (result_.status != RunStatus::refused) finish(finished);
    if (Parsed<void> restored = links_.restore(); !restored) {
      result_.breaches.push_back({std::string(promise::kNetwork), restored.error()});
    }
  }

  // Agents judge their own calls, so they must know what the scenario excuses.
  void find_tolerated() {
    Oracle nobody;
    Ledger ledger(0, nobody);
    expectations_.tolerate(ledger);
    for (const ErrorCode code : all_error_codes()) {
      if (ledger.is_tolerated(code)) tolerated_.push_back(code);
    }
  }

  bool open() {
    if (!drive("open", false, [&] { return coordinator_.all_ready(); })) return false;
    std::vector<Config> configs;
    for (const AgentState& agent : coordinator_.agents()) {
      configs.insert(configs.end(), agent.ready.configs.begin(), agent.ready.configs.end());
    }
    result_.knobs = knobs_in_force(settings_, configs);
    if (std::string wrong = expectations_.check(merge_.visible(coordinator_.agents())); !wrong.empty()) {
      result_.status = RunStatus::refused;
      result_.message = std::move(wrong);
      return false;
    }
    open_ns_ = coordinator_.now_ns() - began_ns_;
    // Again, now that nobody is busy with registering memory.
    coordinator_.measure_clocks();
    return drive("open", false, [&] { return coordinator_.all_ready(); });
  }

  bool run_phases() {
    for (const Phase phase : {Phase::connect, Phase::warm_up, Phase::measure, Phase::settle}) {
      const bool measured = phase == Phase::measure;
      if (measured) impair_from_the_start();
      coordinator_.begin(phase, measured ? kHeadStart : 0);
      watch_.restart(instant(coordinator_.now_ns()));
      if (measured) {
        measured_from_ = coordinator_.now_ns() + kHeadStart;
        series_ = Series(static_cast<std::uint64_t>(interval_));
        sampled_ns_ = measured_from_;
        bytes_before_ = bytes_sampled_ = total(&Beat::bytes);
      }
      const std::int64_t from = coordinator_.now_ns();
      if (!drive(to_string(phase), measured, [&] { return coordinator_.all_done(phase); })) return false;
      if (phase == Phase::connect) connect_ns_ = coordinator_.now_ns() - from;
      if (measured) measured_ns_ = coordinator_.now_ns() - measured_from_;
    }
    return true;
  }

  // Until `over`; false if the run is to end before.
  template <class Over>
  bool drive(std::string_view phase, bool measuring, Over over) {
    while (!over()) {
      coordinator_.pump(kTick);
      if (observer_.interrupted()) {
        result_.status = RunStatus::interrupted;
        return false;
      }
      if (const std::vector<std::string> losses = coordinator_.losses(); !losses.empty()) return false;
      if (const std::optional<Phase> current = phase_from(phase)) join_restarted(*current);
      if (measuring) {
        take_fault_steps();
        sample();
      }
      const std::int64_t now = coordinator_.now_ns();
      observer_.on_progress({phase, static_cast<std::uint64_t>(now - began_ns_), 0, fraction()});
      if (now - began_ns_ >= limit_) {
        return give_up_because(fmt::format("the limit of {} is reached in phase {}",
                                           format_duration_ns(static_cast<std::uint64_t>(limit_)), phase));
      }
      const bool busy = total(&Beat::started) != total(&Beat::completed);
      const bool excused = !busy || next_step_ < steps_.size();
      if (measuring && watch_.hung(instant(now), total(&Beat::progress) + total(&Beat::completed), excused)) {
        return give_up_because(
            fmt::format("nothing has got done for {} in phase {}: {} calls are unfinished",
                        format_duration_ns(static_cast<std::uint64_t>(watch_.window().count())), phase,
                        total(&Beat::started) - total(&Beat::completed)));
      }
    }
    return true;
  }

  bool give_up_because(std::string reason) {
    result_.hang = {std::move(reason), static_cast<std::uint64_t>(coordinator_.now_ns() - began_ns_), {}};
    return false;
  }

  // A command takes its time: what is to be so from the beginning must be so before it.
  void impair_from_the_start() {
    for (; next_step_ < steps_.size() && steps_[next_step_].at_ns == 0 &&
           steps_[next_step_].deed == FaultDeed::impair;
         ++next_step_) {
      take(steps_[next_step_]);
    }
  }

  // A host that was started again takes part in the phase that the others are in by then.
  void join_restarted(Phase phase) {
    std::erase_if(restarted_, [&](std::uint32_t host) {
      const AgentState& agent = state_of(host);
      const bool back = agent.stage == AgentStage::ready && agent.clock.known();
      if (back) coordinator_.join(host, phase);
      return back;
    });
  }

  void take_fault_steps() {
    const std::int64_t now = coordinator_.now_ns() - measured_from_;
    for (; next_step_ < steps_.size() && static_cast<std::int64_t>(steps_[next_step_].at_ns) <= now;
         ++next_step_) {
      take(steps_[next_step_]);
    }
  }

  void take(const FaultStep& step) {
    FaultOutcome& outcome = faults_[step.fault];
    outcome.began = true;
    outcome.ended = step.last;
    switch (step.deed) {
      case FaultDeed::kill:
        killed_.insert(step.host);
        ++outcome.hits;
        return coordinator_.kill(step.host);
      case FaultDeed::restart:
        coordinator_.launch(step.host);
        restarted_.push_back(step.host);
        return;
      case FaultDeed::cut_link:
        ++outcome.hits;
        break;
      default:
        break;
    }
    if (Parsed<void> done = links_.apply(step); !done) oracle_.breach(promise::kNetwork, done.error());
  }

  void sample() {
    const std::int64_t now = coordinator_.now_ns();
    if (now - sampled_ns_ < static_cast<std::int64_t>(series_.interval_ns())) return;
    const std::uint64_t bytes = total(&Beat::bytes);
    SeriesRow row;
    row.values[0] = static_cast<std::uint64_t>(now - began_ns_);
    for (const AgentState& agent : coordinator_.agents()) {
      for (std::size_t i = 0; i < agent.beat.gauges.size(); ++i) row.values[6 + i] += agent.beat.gauges[i];
    }
    row.values.back() = (bytes - std::min(bytes, bytes_sampled_)) * 8 * kSecond /
                        static_cast<std::uint64_t>(now - sampled_ns_);
    series_.add(row);
    sampled_ns_ = now;
    bytes_sampled_ = bytes;
  }

  void finish(bool finished) {
    coordinator_.ask_for_reports();
    const std::int64_t give_up = coordinator_.now_ns() + kReportLimit;
    while (!coordinator_.all_reported() && coordinator_.now_ns() < give_up) {
      coordinator_.pump(kTick);
      if (result_.status != RunStatus::interrupted && observer_.interrupted()) break;
    }
    for (auto& [index, fault] : faults_) {
      if (const std::uint64_t drops = links_.drops(index); drops != 0) fault.hits = drops;
      result_.faults.push_back(fault);
    }
    coordinator_.dismiss();
    result_.simulated_ns = static_cast<std::uint64_t>(coordinator_.now_ns() - began_ns_);
    result_.series = std::move(series_);
    merge_.take(coordinator_.agents(), killed_, measured_ns_, result_);
    result_.metrics.set(kOpenTimeMetric, static_cast<double>(open_ns_), "ns");
    result_.metrics.set(kConnectTimeMetric, static_cast<double>(connect_ns_), "ns");
    result_.metrics.set(kHungMetric, result_.hang.reason.empty() ? 0 : 1, "count");
    judge(finished);
    result_.breaches = oracle_.breaches();
  }

  void judge(bool finished) {
    const std::vector<std::string> losses = coordinator_.losses();
    for (const std::string& loss : losses) oracle_.breach(promise::kAlive, loss);
    if (!losses.empty()) {
      result_.status = RunStatus::crashed;
      result_.message = losses.front();
      if (losses.size() > 1)
        result_.message += fmt::format(", and {} more hosts were lost", losses.size() - 1);
    }
    if (!result_.hang.reason.empty() && !expectations_.hang_tolerated()) {
      oracle_.breach(promise::kFinished, result_.hang.reason);
      for (const std::string& line : result_.hang.waits) oracle_.breach(promise::kFinished, line);
    }
    if (result_.status != RunStatus::completed) return;
    if (finished || !expectations_.hang_tolerated()) merge_.ledger().close();
    expectations_.judge(result_);
  }

  [[nodiscard]] const AgentState& state_of(std::uint32_t host) const {
    return *std::ranges::find(coordinator_.agents(), host, &AgentState::host);
  }
  [[nodiscard]] std::uint64_t total(std::uint64_t Beat::*member) const {
    std::uint64_t sum = 0;
    for (const AgentState& agent : coordinator_.agents()) sum += agent.beat.*member;
    return sum;
  }
  [[nodiscard]] double fraction() const {
    if (plan_.answer_bytes == 0 || measured_from_ == 0) return 0;
    const auto bytes =
        static_cast<double>(total(&Beat::bytes) - std::min(total(&Beat::bytes), bytes_before_));
    return std::min(1.0, bytes / static_cast<double>(plan_.answer_bytes));
  }
  static Instant instant(std::int64_t ns) { return Instant{} + Duration(ns); }

  const Settings& settings_;
  BackendKind kind_;
  ClusterHosts hosts_;
  RunObserver& observer_;
  VariantResult result_;
  Oracle oracle_;
  Plan plan_;
  Expectations expectations_;
  Merge merge_;
  std::vector<FaultStep> steps_;
  LinkFaults links_;
  std::vector<ErrorCode> tolerated_;
  std::map<std::size_t, FaultOutcome> faults_;  // by index
  std::set<std::uint32_t> killed_;              // hosts
  HostList restarted_;                          // that are not back yet
  std::size_t next_step_ = 0;
  Series series_;
  HangWatch watch_{1};
  std::int64_t limit_ = 0;
  std::int64_t interval_ = 0;
  std::int64_t began_ns_ = 0;
  std::int64_t open_ns_ = 0;
  std::int64_t connect_ns_ = 0;
  std::int64_t measured_from_ = 0;
  std::int64_t measured_ns_ = 0;
  std::int64_t sampled_ns_ = 0;
  std::uint64_t bytes_before_ = 0;
  std::uint64_t bytes_sampled_ = 0;
  Coordinator coordinator_;  // last: it asks for setups
};

}  // namespace

VariantResult run_on_hosts(const Scenario& scenario, const Variant& variant, BackendKind kind,
                           ClusterHosts hosts, RunObserver& observer) {
  return ClusterRun(scenario, variant, kind, std::move(hosts), observer).run();
}

VariantResult run_on_cluster(const Scenario& scenario, const Variant& variant, const BackendChoice& choice,
                             RunObserver& observer) {
  const Settings& settings = variant.settings;
  std::string why = why_no_faults(choice.kind, settings);
  if (why.empty() && std::ranges::any_of(settings.workloads, &WorkloadSpec::is_flows)) {
    why = fmt::format(
        "backend {} cannot play workloads of kind flows: each host is a process, and a flow needs both ends "
        "in one",
        to_string(choice.kind));
  }
  if (why.empty() && choice.kind == BackendKind::rxe) why = shape_rxe_links(settings);
  if (why.empty()) {
    Parsed<ClusterHosts> hosts =
        choice.kind == BackendKind::rxe ? rxe_hosts(settings) : listed_hosts(choice.hosts_file, settings);
    if (hosts) return run_on_hosts(scenario, variant, choice.kind, std::move(*hosts), observer);
    why = hosts.error();
  }
  VariantResult refused;
  refused.name = variant.name;
  refused.seed = settings.fabric.seed;
  refused.status = RunStatus::refused;
  refused.message = std::move(why);
  return refused;
}

}  // namespace bx::harness
