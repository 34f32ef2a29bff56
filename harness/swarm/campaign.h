// SPDX-License-Identifier: GPL-2.0-only
// Many seeds, each run twice in a process of its own, so that a broken invariant or a hang ends no other seed
// and is reported with the seed that it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/swarm/swarm.h"

namespace bx::harness {

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
  [[nodiscard]] std::uint64_t count() const noexcept { return last - first + 1; }
};

struct SeedResult {
  std::uint64_t seed = 0;
  SwarmReport report;
  std::vector<std::string> said;  // what the process printed, at most Swarm::kFaultsMax lines
  [[nodiscard]] bool good() const noexcept { return report.faults.empty(); }
};

// Runs the seed twice, here. A second run with another digest is a fault of the checker "digest".
SeedResult run_seed(std::uint64_t seed, const SwarmOptions& options);
// The same in a process of its own. That it ends by itself, within a minute of CPU time, is the checker
// "process".
SeedResult run_seed_apart(std::uint64_t seed, const SwarmOptions& options);

// All seeds, `jobs` at once; `on_result` hears of each, in the order of the seeds, as soon as it is known.
// Returns how many were not good.
std::uint64_t run_campaign(const SeedRange& seeds, const SwarmOptions& options, std::size_t jobs,
                           const std::function<void(const SeedResult&)>& on_result);

// The command that runs the seed again.
std::string replay_command(std::uint64_t seed, const SwarmOptions& options);
// What a person needs of a seed that is not good: checkers, configuration, and how to run it again.
std::string describe_failure(const SeedResult& result, const SwarmOptions& options);

}  // namespace bx::harness
