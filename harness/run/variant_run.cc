// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/variant_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/base/stopwatch.h"
#include "harness/cluster/cluster_run.h"
#include "harness/run/expectations.h"
#include "harness/run/hang_watch.h"
#include "harness/run/promises.h"
#include "harness/run/sampler.h"
#include "harness/run/traffic.h"
#include "harness/run/world.h"
#include "harness/workload/flows.h"
#include "harness/workload/outcome.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kConnectSlice = 1'000'000;  // ns between looks at a phase that is not sampled
constexpr std::uint64_t kSettleSlice = 100'000;     // ns
constexpr std::uint64_t kSettleLimit = kSecond;     // for acknowledgements and credits to come home
constexpr std::uint64_t kLimitFactor = 100;         // of the expected duration, before a run is given up
constexpr std::uint64_t kLimitMin = 30 * kSecond;   // longer than any default deadline of the library

std::uint64_t to_ns(Instant instant) {
  return static_cast<std::uint64_t>(instant.time_since_epoch().count());
}
// Of the largest frame, rounded up.
std::uint64_t frame_time_ns(const LinkModel& link) {
  return wire_bytes(link.mtu, link.mtu) * 8 * kSecond / link.rate_bps + 1;
}
Instant later(Instant now, std::uint64_t ns) {
  return now + Duration(static_cast<std::int64_t>(ns));
}

// The phases of a run, one after the other: connect, warm-up, measure, settle; and what is read before and
// after the measured one.
class VariantRun final {
 public:
  VariantRun(const Scenario& scenario, const Variant& variant, const BackendChoice& choice,
             RunObserver& observer)
      : settings_(variant.settings),
        choice_(choice),
        observer_(observer),
        traffic_(settings_, oracle_),
        expectations_(scenario, variant, choice.kind),
        sampler_(traffic_, observer) {
    result_.name = variant.name;
    result_.seed = settings_.fabric.seed;
    result_.taken_as_given = keys_taken_as_given(choice.kind, settings_);
  }

  VariantResult run() {
    const Stopwatch stopwatch;
    if (std::string why = prepare(); !why.empty()) {
      result_.status = RunStatus::refused;
      result_.message = std::move(why);
    } else {
      const bool finished = run_phases();
      if (finished) settle();
      finish(finished);
    }
    result_.wall_seconds = stopwatch.seconds();
    return std::move(result_);
  }

 private:
  // What can be measured in `world`.
  static Visible visible(const World& world) {
    const Backend& backend = world.backend();
    return {world.counters(), backend.has_closed_form(), backend.has_virtual_time()};
  }
  // Why the run cannot be, or nothing.
  std::string prepare() {
    if (std::string why = why_no_faults(choice_.kind, settings_); !why.empty()) return why;
    Parsed<std::unique_ptr<World>> made = World::create(choice_, settings_);
    if (!made) return made.error();
    if (std::string wrong = expectations_.check(visible(**made)); !wrong.empty()) return wrong;
    expectations_.tolerate(traffic_.ledger());
    if (std::string wrong = traffic_.open(std::move(*made)); !wrong.empty()) return wrong;
    result_.settings = settings_in_force(settings_);
    result_.knobs = knobs_in_force(settings_, world().configs());
    return {};
  }

  bool run_phases() {
    const std::uint64_t expected =
        std::max(expected_duration_ns(traffic_.plan(), settings_),
                 flows_bound_ns(plan_flows(settings_), PathModel(slowest_link(settings_))));
    limit_ = settings_.measure.limit_ns != 0 ? settings_.measure.limit_ns
                                             : std::max(kLimitMin, kLimitFactor * expected);
    watch_ = HangWatch(hang_window_ns(settings_, limit_));
    traffic_.begin_connecting();
    if (!drive("connect", kConnectSlice) || !oracle_.ok()) return false;
    traffic_.begin_warm_up();
    if (!drive("warm-up", kConnectSlice)) return false;

    before_ = world().counters();
    cpu_before_ = cpu_times();
    const Instant started = world().now();
    sampler_.start(settings_.measure.series_interval_ns, expected);
    traffic_.begin_measured();
    const bool finished = drive("measure", 0);
    sampler_.stop();
    cpu_after_ = cpu_times();
    measured_ns_ = to_ns(world().now()) - to_ns(started);
    return finished;
  }

  // Runs until every client has done its part. `slice` 0 means the interval of the series, which may grow.
  bool drive(std::string_view phase, std::uint64_t slice) {
    const Instant give_up = later(Instant{}, limit_);
    watch_.restart(world().now());
    while (!traffic_.done()) {
      if (observer_.interrupted()) {
        result_.status = RunStatus::interrupted;
        return false;
      }
      if (world().now() >= give_up) {
        return give_up_because(fmt::format("the limit of {} simulated time is reached in phase {}",
                                           format_duration_ns(limit_), phase));
      }
      const Instant until = later(world().now(), slice == 0 ? sampler_.interval_ns() : slice);
      const fabric::RunEnd end = world().run(std::min(until, give_up));
      sampler_.look(phase);
      if (traffic_.done()) break;
      if (end == fabric::RunEnd::idle) {
        return give_up_because(
            fmt::format("nothing is left that could happen in phase {}: {}", phase, unfinished()));
      }
      if (hung()) {
        return give_up_because(fmt::format("nothing has got done for {} in phase {}: {}",
                                           format_duration_ns(to_ns(Instant{} + watch_.window())), phase,
                                           unfinished()));
      }
    }
    return true;
  }

  [[nodiscard]] bool hung() {
    const bool idle =
        traffic_.calls_under_way() == 0 && (!sampler_.sampling() || traffic_.flows_unfinished() == 0);
    const bool excused = idle || world().backend().faults_pending() > 0;
    return watch_.hung(world().now(), world().progress() + traffic_.ledger().completed(), excused);
  }
  [[nodiscard]] std::string unfinished() const {
    return fmt::format("{} calls and {} flows are unfinished", traffic_.calls_under_way(),
                       traffic_.flows_unfinished());
  }

  // Ends the run with a report of who waits for what.
  bool give_up_because(std::string reason) {
    result_.hang = {reason, to_ns(world().now()), world().describe_stall()};
    if (expectations_.hang_tolerated()) return false;
    oracle_.breach(promise::kFinished, std::move(reason));
    for (const std::string& line : result_.hang.waits) oracle_.breach(promise::kFinished, line);
    return false;
  }

  // Acknowledgements and credits come home after the last answer.
  void settle() {
    // As long as anything still arrives: a slow or long link takes its time.
    const std::uint64_t patience = settle_patience();
    Instant give_up = later(world().now(), patience);
    const std::uint64_t slice = std::max(kSettleSlice, frame_time_ns(slowest_link(settings_)));
    std::uint64_t progress = world().progress();
    while (!(world().idle() && world().backend().audit().breaches.empty()) && world().now() < give_up &&
           !observer_.interrupted()) {
      const fabric::RunEnd end = world().run(later(world().now(), slice));
      if (world().progress() != progress) give_up = later(world().now(), patience);
      progress = world().progress();
      sampler_.look("settle");
      if (end == fabric::RunEnd::idle) break;
    }
    check_idle(world(), oracle_);
  }

  // What is under way when the clients have done may all have to cross the slowest link, one frame after the
  // other. It may be what nobody waits for any more (retransmissions of calls that failed), so its arrival is
  // no progress.
  [[nodiscard]] std::uint64_t settle_patience() {
    const LinkModel link = slowest_link(settings_);
    const std::uint64_t frames = world().backend().audit().frames_under_way;
    return std::max(kSettleLimit, 8 * link.delay_ps / 1000) + frames * frame_time_ns(link);
  }

  void finish(bool finished) {
    world().check_invariants();
    result_.simulated_ns = to_ns(world().now());
    result_.events = world().backend().events();
    Digest digest;
    digest.add(world().backend().digest());
    digest.add(traffic_.ledger().digest());
    if (!traffic_.flows().empty()) add_flows(traffic_.flows(), digest);
    add_network(digest);
    result_.digest = digest.value();
    result_.series = sampler_.take_series();
    measure();
    report_faults();
    if (result_.status != RunStatus::interrupted) {
      if (result_.hang.reason.empty() || !expectations_.hang_tolerated()) traffic_.judge();
      check_promises(traffic_, settings_, finished ? RanOut::yes : RanOut::no, oracle_);
      expectations_.judge(result_);
    }
    if (const Result<> ended = world().backend().end_capture(); !ended) {
      oracle_.breach(promise::kNetwork,
                     fmt::format("{} (system error {})", ended.error().detail, ended.error().sys));
    }
    if (finished && result_.status != RunStatus::interrupted) check_event_queue(world(), oracle_);
    result_.breaches = oracle_.breaches();
    traffic_.end();
  }

  // What became of frames that reached no host, which the network's own digest does not see.
  void add_network(Digest& digest) {
    const MetricSet counters = world().counters();
    for (const char* name : {"switch.drops", "switch.lossless_drops", "link.losses", "pfc.pause_frames",
                             "ecn.marks", "nic.retransmissions"}) {
      if (world().backend().has_virtual_time())
        digest.add(static_cast<std::uint64_t>(counters.value_or(name, 0)));
    }
  }

  void measure() {
    std::optional<PathModel> paths;
    if (world().backend().has_closed_form()) paths.emplace(settings_);
    if (traffic_.plan().calls != 0) {
      report_outcome(traffic_.plan(), traffic_.ledger(), paths ? &*paths : nullptr, result_.metrics);
    }
    report_flows(traffic_.flows(), paths ? &*paths : nullptr, result_.metrics);
    result_.metrics.set(kHungMetric, result_.hang.reason.empty() ? 0 : 1, "count");
    const auto report_cpu = [&](std::string_view role, std::uint64_t used_ns, std::uint64_t hosts) {
      const auto used = static_cast<double>(used_ns);
      const auto available = static_cast<double>(measured_ns_ * std::max<std::uint64_t>(1, hosts));
      result_.metrics.set(fmt::format("cpu.{}.time", role), used, "ns");
      result_.metrics.set(fmt::format("cpu.{}.utilisation", role), available == 0 ? 0 : used / available,
                          "ratio");
    };
    if (world().backend().has_virtual_time()) {
      report_cpu("clients", cpu_after_.clients - cpu_before_.clients, world().hosts(true));
      report_cpu("servers", cpu_after_.servers - cpu_before_.servers, world().hosts(false));
    }
    const MetricSet counters = world().counters().since(before_);
    for (const Metric& metric : counters.all()) result_.metrics.set(metric.name, metric.value, metric.unit);
  }

  void report_faults() {
    const auto ns = [](sim::Picoseconds time) { return static_cast<std::uint64_t>(time.count() / 1000); };
    for (const sim::FaultRecord& fault : world().backend().faults()) {
      result_.faults.push_back({std::string(sim::to_string(fault.spec.kind)), fault.spec.target,
                                ns(fault.spec.at), ns(fault.spec.duration), fault.began, fault.ended,
                                fault.hits});
    }
  }

  struct CpuTimes {
    std::uint64_t clients = 0;
    std::uint64_t servers = 0;
  };
  [[nodiscard]] CpuTimes cpu_times() { return {world().cpu_time_ns(true), world().cpu_time_ns(false)}; }
  [[nodiscard]] World& world() noexcept { return traffic_.world(); }

  const Settings& settings_;
  BackendChoice choice_;
  RunObserver& observer_;
  VariantResult result_;
  Oracle oracle_;
  Traffic traffic_;
  Expectations expectations_;
  Sampler sampler_;
  MetricSet before_;
  CpuTimes cpu_before_;
  CpuTimes cpu_after_;
  std::uint64_t measured_ns_ = 0;
  std::uint64_t limit_ = 0;
  HangWatch watch_{1};
};

}  // namespace

VariantResult run_variant(const Scenario& scenario, const Variant& variant, const BackendChoice& choice,
                          RunObserver& observer) {
  const bool flows = std::ranges::any_of(variant.settings.workloads, &WorkloadSpec::is_flows);
  if (choice.kind == BackendKind::verbs || (choice.kind == BackendKind::rxe && !flows)) {
    return run_on_cluster(scenario, variant, choice, observer);
  }
  return VariantRun(scenario, variant, choice, observer).run();
}

}  // namespace bx::harness
