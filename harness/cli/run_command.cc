// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "harness/base/stopwatch.h"
#include "harness/base/text.h"
#include "harness/cli/commands.h"
#include "harness/cluster/hosts_file.h"
#include "harness/report/progress.h"
#include "harness/report/result_file.h"
#include "harness/report/table.h"
#include "harness/run/expectations.h"
#include "harness/run/run_set.h"
#include "harness/run/rxe_backend.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSeedsMax = 10'000;

// One file with one seed: one result.
struct Experiment {
  std::unique_ptr<Scenario> scenario;
  std::string directory;  // empty: nothing is written
  RunInfo info;
};

int refuse(std::string_view message, int status = kExitUsage) {
  fmt::print(stderr, "bx: error: {}\n", message);
  return status;
}

class RunCommand {
 public:
  explicit RunCommand(const RunOptions& options) : options_(options), date_(date_and_time()) {}

  int run() {
    if (const int status = read_backend(); status != kExitGood) return status;
    if (const int status = read_seeds(); status != kExitGood) return status;
    Diagnostics diagnostics;
    if (!load(diagnostics)) return usage_error(diagnostics);
    if (choice_.kind == BackendKind::verbs && !load_hosts_file(choice_.hosts_file, diagnostics)) {
      return usage_error(diagnostics);
    }
    if (const int status = check_captures(); status != kExitGood) return status;
    if (choice_.kind == BackendKind::rxe && !inside_rxe()) return run_inside_rxe();
    for (Experiment& experiment : experiments_) {
      if (experiment.directory.empty()) continue;
      if (Parsed<void> ready = prepare_directory(experiment.directory); !ready) return refuse(ready.error());
    }
    return run_experiments();
  }

 private:
  int read_backend() {
    choice_.kind = BackendKind::sim;
    for (const BackendKind kind : {BackendKind::loopback, BackendKind::rxe, BackendKind::verbs}) {
      if (options_.backend == to_string(kind)) choice_.kind = kind;
    }
    const bool real = choice_.kind == BackendKind::rxe || choice_.kind == BackendKind::verbs;
    if (real && (options_.twice || options_.jobs > 1)) {
      return refuse(
          fmt::format("backend {} has real time: no digest that --twice could compare, and one run at a time",
                      options_.backend));
    }
    if (options_.hosts.empty() == (choice_.kind == BackendKind::verbs)) {
      return refuse(options_.hosts.empty()
                        ? "backend verbs needs --hosts FILE, which names its machines (docs/verbs.md)"
                        : "--hosts is for --on verbs");
    }
    choice_.hosts_file = options_.hosts;
    if (!options_.capture.empty() && (options_.no_out || choice_.kind != BackendKind::sim)) {
      return refuse("--capture needs the backend sim and a directory to write to");
    }
    choice_.capture_ports = options_.capture;
    choice_.engine = options_.engine == "stock" ? sim::EngineKind::stock : sim::EngineKind::fast;
    return kExitGood;
  }

  // A misspelt port must not cost a run.
  int check_captures() {
    for (const Experiment& experiment : experiments_) {
      for (const Variant& variant : experiment.scenario->variants) {
        const std::string why = why_no_capture(options_.capture, variant.settings);
        if (!why.empty()) return refuse(fmt::format("--capture: {}: {}", experiment.scenario->file, why));
      }
    }
    return kExitGood;
  }

  // The same command again, where the hosts are. What it writes must be under a folder that is shared.
  int run_inside_rxe() {
    std::uint32_t hosts = 1;
    for (const Experiment& experiment : experiments_) {
      for (const Variant& variant : experiment.scenario->variants) {
        hosts = std::max<std::uint32_t>(hosts, static_cast<std::uint32_t>(variant.settings.fabric.hosts));
      }
    }
    if (hosts > kRxeHostsMax) {
      return refuse(fmt::format("backend rxe has at most {} hosts, the scenario {}", kRxeHostsMax, hosts));
    }
    std::string writable;
    if (!options_.no_out) {
      writable = options_.out.empty() ? "results/runs" : options_.out;
      if (Parsed<void> ready = prepare_directory(writable); !ready) return refuse(ready.error());
    }
    return refuse(enter_rxe(hosts, writable), kExitNoBackend);
  }

  // Several seeds give several results of the same scenario.
  int read_seeds() {
    seeds_ = {options_.overrides.seed};
    if (options_.seeds.empty()) return kExitGood;
    const std::string form = "--seeds is of the form A..B, for example 1..10";
    if (options_.overrides.seed) return refuse("--seed and --seeds exclude each other");
    const std::size_t dots = options_.seeds.find("..");
    if (dots == std::string::npos) return refuse(form);
    const Parsed<std::uint64_t> first = parse_count(std::string_view(options_.seeds).substr(0, dots));
    const Parsed<std::uint64_t> last = parse_count(std::string_view(options_.seeds).substr(dots + 2));
    if (!first || !last || *first > *last) return refuse(form);
    if (*last - *first >= kSeedsMax)
      return refuse(fmt::format("--seeds names more than {} seeds", kSeedsMax));
    seeds_.clear();
    for (std::uint64_t seed = *first; seed <= *last; ++seed) seeds_.emplace_back(seed);
    return kExitGood;
  }

  bool load(Diagnostics& diagnostics) {
    for (const auto& seed : seeds_) {
      OverrideOptions overrides = options_.overrides;
      overrides.seed = seed;
      const std::vector<Assignment> assignments = read_override_options(overrides, diagnostics);
      for (const std::string& file : options_.files) {
        if (auto scenario = load_scenario(file, assignments, diagnostics)) add(std::move(*scenario));
      }
    }
    return diagnostics.ok();
  }

  void add(Scenario scenario) {
    Experiment experiment;
    experiment.scenario = std::make_unique<Scenario>(std::move(scenario));
    experiment.info = {experiment.scenario.get(), choice_,
                       experiment.scenario->variants.front().settings.fabric.seed, date_, false};
    if (!options_.no_out) experiment.directory = directory_of(experiment.info);
    print_warnings(*experiment.scenario);
    for (const std::string& note : experiment.scenario->notes) {
      fmt::print(stderr, "bx: note: {}: {}\n", experiment.scenario->name, note);
    }
    experiments_.push_back(std::move(experiment));
  }

  std::string directory_of(const RunInfo& info) const {
    if (options_.out.empty()) return default_directory(info);
    std::string directory = options_.out;
    if (options_.files.size() > 1) directory += "/" + info.scenario->name;
    if (seeds_.size() > 1) directory += fmt::format("/seed-{}", info.seed);
    return directory;
  }

  std::vector<RunJob> jobs() const {
    std::vector<RunJob> jobs;
    for (const Experiment& experiment : experiments_) {
      for (const Variant& variant : experiment.scenario->variants) {
        std::string label = fmt::format("{} {}", experiment.scenario->name, variant.name);
        if (seeds_.size() > 1) label += fmt::format(" seed {}", experiment.info.seed);
        std::string capture;
        if (!options_.capture.empty())
          capture = fmt::format("{}/{}.pcapng", experiment.directory, variant.name);
        jobs.push_back({experiment.scenario.get(), &variant, label, capture});
        if (options_.twice) jobs.push_back({experiment.scenario.get(), &variant, label + " again", ""});
      }
    }
    return jobs;
  }

  int run_experiments() {
    ProgressStyle style = ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::terminal : ProgressStyle::plain;
    if (options_.quiet) style = ProgressStyle::quiet;
    RunSetOutcome outcome;
    {
      ProgressDisplay display(style, stderr);
      outcome = run_all(jobs(), choice_, options_.jobs, display);
    }
    int status = outcome.interrupted ? kExitInterrupted : kExitGood;
    auto next = outcome.results.begin();
    for (Experiment& experiment : experiments_) {
      experiment.info.interrupted = outcome.interrupted;
      std::vector<VariantResult> results;
      for (const Variant& variant : experiment.scenario->variants) {
        if (next == outcome.results.end() || next->name != variant.name) break;
        results.push_back(std::move(*next++));
        if (!options_.twice || next == outcome.results.end()) continue;
        compare_digests(results.back(), *next++);
      }
      judge_across(*experiment.scenario, choice_.kind, results);
      status = worse(status, report(experiment, results));
    }
    return status;
  }

  static int worse(int a, int b) {
    for (const int status : {kExitUsage, kExitInterrupted, kExitNotGood}) {
      if (a == status || b == status) return status;
    }
    return kExitGood;
  }

  static void compare_digests(VariantResult& first, const VariantResult& second) {
    if (first.digest == second.digest || second.status == RunStatus::interrupted) return;
    first.breaches.push_back(
        {std::string(promise::kSameDigest),
         fmt::format("the second run has digest {:016x}, the first {:016x}", second.digest, first.digest)});
  }

  // Kinds of fault that act on packets, so that one that hit none did nothing.
  static constexpr std::array<std::string_view, 9> kOfPackets{
      "loss", "drop", "corrupt", "reorder", "delay", "ecn-mark", "black-hole", "cnp-loss", "pause-loss"};

  // A fault that did nothing is likely a mistake in its target or its time.
  static void note_idle_faults(const Scenario& scenario, const VariantResult& result) {
    if (result.status == RunStatus::interrupted) return;
    for (std::size_t i = 0; i < result.faults.size(); ++i) {
      const FaultOutcome& fault = result.faults[i];
      const bool by_packet = std::ranges::count(kOfPackets, fault.kind) != 0;
      if (fault.began && !(by_packet && fault.hits == 0)) continue;
      fmt::print(stderr, "bx: note: {} {}: [[fault]] number {} ({} of {}) {}\n", scenario.name, result.name,
                 i + 1, fault.kind, fault.target,
                 fault.began ? "hit no packet" : "never began: the run was over before");
    }
  }

  int report(const Experiment& experiment, const std::vector<VariantResult>& results) {
    const Scenario& scenario = *experiment.scenario;
    const bool refused = std::ranges::any_of(
        results, [](const VariantResult& result) { return result.status == RunStatus::refused; });
    if (refused || results.empty()) {
      for (const VariantResult& result : results) {
        if (result.status != RunStatus::refused) continue;
        // What is wrong in the file says so itself; the rest is about the variant.
        const bool placed = result.message.starts_with(scenario.file + ":");
        fmt::print(stderr, "{}\n",
                   placed ? result.message
                          : fmt::format("{}: error: variant '{}' cannot run: {}", scenario.file, result.name,
                                        result.message));
      }
      std::error_code ignored;
      if (!experiment.directory.empty())
        std::filesystem::remove(experiment.directory, ignored);  // only if empty
      return refused ? kExitUsage : kExitGood;
    }
    const TableStyle style{output_is_utf8(), output_width()};
    fmt::print("{}: {} (backend {}, seed {})\n\n{}\n{}", scenario.name, scenario.title,
               to_string(choice_.kind), experiment.info.seed, render_table(results, style),
               render_verdicts(results, style));
    for (const VariantResult& result : results) {
      note_idle_faults(scenario, result);
      for (const Breach& breach : result.breaches) {
        fmt::print(stderr, "bx: {} {}: breach of {}: {}\n", scenario.name, result.name, breach.promise,
                   breach.detail);
      }
    }
    if (!experiment.directory.empty()) {
      if (Parsed<void> written = write_results(experiment.directory, experiment.info, results); !written) {
        return refuse(written.error());
      }
      fmt::print("results: {}/result.json\n", experiment.directory);
    }
    std::fflush(stdout);
    const bool good = std::ranges::all_of(results, [](const VariantResult& result) {
      return result.good() || (result.status == RunStatus::interrupted && result.breaches.empty());
    });
    return good ? kExitGood : kExitNotGood;
  }

  const RunOptions& options_;
  std::string date_;
  BackendChoice choice_;
  std::vector<std::optional<std::uint64_t>> seeds_;
  std::vector<Experiment> experiments_;
};

}  // namespace

int run_command(const RunOptions& options) {
  return RunCommand(options).run();
}

}  // namespace bx::harness
