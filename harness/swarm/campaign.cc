// SPDX-License-Identifier: GPL-2.0-only
#include "harness/swarm/campaign.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <sstream>

#include "harness/base/child_process.h"

namespace bx::harness {
namespace {

constexpr rlim_t kCpuSeconds = 60;  // of both runs; the slowest seeds take about one
constexpr std::string_view kDigestLine = "swarm-digest ";
constexpr std::string_view kCountsLine = "swarm-counts";
constexpr std::string_view kFaultLine = "swarm-fault ";

std::string write_report(const SwarmReport& report) {
  std::string text = fmt::format("{}{}\n{}", kDigestLine, report.digest, kCountsLine);
  for (const auto count : kSwarmCounts) text += fmt::format(" {}", report.*count);
  text += '\n';
  for (const SwarmFault& fault : report.faults) {
    text += fmt::format("{}{} {}\n", kFaultLine, fault.checker, fault.what);
  }
  return text;
}

SeedResult read_report(std::uint64_t seed, const std::string& text) {
  SeedResult result;
  result.seed = seed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    if (line.starts_with(kDigestLine)) {
      words >> first >> result.report.digest;
    } else if (line.starts_with(kCountsLine)) {
      words >> first;
      for (const auto count : kSwarmCounts) words >> result.report.*count;
    } else if (line.starts_with(kFaultLine)) {
      SwarmFault fault;
      words >> first >> fault.checker;
      std::getline(words >> std::ws, fault.what);
      result.report.faults.push_back(fault);
    } else if (result.said.size() < Swarm::kFaultsMax) {
      result.said.push_back(line);
    }
  }
  return result;
}

Result<ChildProcess> start_seed(std::uint64_t seed, const SwarmOptions& options,
                                std::span<const int> not_for_child) {
  return start_child(
      [&](int fd) {
        ::dup2(fd, STDERR_FILENO);  // the sentence of a broken invariant belongs to the seed
        const rlimit cpu{kCpuSeconds, kCpuSeconds + 1};
        ::setrlimit(RLIMIT_CPU, &cpu);
        const rlimit core{0, 0};
        ::setrlimit(RLIMIT_CORE, &core);
        const std::string text = write_report(run_seed(seed, options).report);
        return write_all(fd, text);
      },
      not_for_child);
}

SeedResult end_seed(std::uint64_t seed, const Result<ChildProcess>& child) {
  SeedResult result;
  result.seed = seed;
  if (!child) {
    result.report.faults.push_back({"process", child.error().detail});
    return result;
  }
  result = read_report(seed, read_all(child->fd));
  const std::string end = end_child(*child);
  if (!end.empty()) result.report.faults.push_back({"process", "the process " + end});
  return result;
}

}  // namespace

SeedResult run_seed(std::uint64_t seed, const SwarmOptions& options) {
  const SwarmPlan plan = plan_swarm(seed, options);
  SeedResult result;
  result.seed = seed;
  result.report = Swarm(plan).run();
  const std::uint64_t spoilt = options.sabotage == SwarmSabotage::digest ? 1 : 0;
  const std::uint64_t second = Swarm(plan).run().digest ^ spoilt;
  if (second != result.report.digest) {
    result.report.faults.push_back(
        {"digest", fmt::format("two runs differ: {:016x} and {:016x}", result.report.digest, second)});
  }
  return result;
}

SeedResult run_seed_apart(std::uint64_t seed, const SwarmOptions& options) {
  return end_seed(seed, start_seed(seed, options, {}));
}

std::uint64_t run_campaign(const SeedRange& seeds, const SwarmOptions& options, std::size_t jobs,
                           const std::function<void(const SeedResult&)>& on_result) {
  struct Running {
    std::uint64_t seed;
    Result<ChildProcess> child;
  };
  std::deque<Running> running;  // at most `jobs`; a report fits in a pipe, so nobody waits to be read
  std::uint64_t bad = 0;
  std::uint64_t started = 0;
  while (started < seeds.count() || !running.empty()) {
    while (started < seeds.count() && running.size() < jobs) {
      std::vector<int> others;
      for (const Running& one : running) {
        if (one.child) others.push_back(one.child->fd);
      }
      const std::uint64_t seed = seeds.first + started++;
      running.push_back({seed, start_seed(seed, options, others)});
    }
    const SeedResult result = end_seed(running.front().seed, running.front().child);
    running.pop_front();
    if (!result.good()) ++bad;
    on_result(result);
  }
  return bad;
}

std::string replay_command(std::uint64_t seed, const SwarmOptions& options) {
  std::string command =
      fmt::format("bx swarm --seeds {}..{} --on {}", seed, seed, to_string(options.backend));
  if (options.mode != SwarmMode::drawn) command += fmt::format(" --mode {}", to_string(options.mode));
  if (options.sabotage != SwarmSabotage::none) {
    command += fmt::format(" --sabotage {}", to_string(options.sabotage));
  }
  return command;
}

std::string describe_failure(const SeedResult& result, const SwarmOptions& options) {
  std::string text = fmt::format("seed {} failed\n", result.seed);
  for (const SwarmFault& fault : result.report.faults) {
    text += fmt::format("  checker {}: {}\n", fault.checker, fault.what);
  }
  for (const std::string& line : result.said) text += fmt::format("  it said: {}\n", line);
  std::istringstream lines(describe(plan_swarm(result.seed, options)));
  for (std::string line; std::getline(lines, line);) text += fmt::format("  {}\n", line);
  return text + fmt::format("  again: {}\n", replay_command(result.seed, options));
}

}  // namespace bx::harness
