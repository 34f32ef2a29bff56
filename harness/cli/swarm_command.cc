// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "harness/base/units.h"
#include "harness/cli/commands.h"
#include "harness/swarm/campaign.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSeedsMax = 10'000'000;

std::optional<SeedRange> read_seeds(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const Parsed<std::uint64_t> first = parse_count(text.substr(0, dots));
  const Parsed<std::uint64_t> last = parse_count(text.substr(dots + 2));
  if (!first || !last || *first > *last || *last - *first >= kSeedsMax) return std::nullopt;
  return SeedRange{*first, *last};
}

template <class Enum>
Enum read_word(std::string_view word, std::initializer_list<Enum> values) {
  for (const Enum value : values) {
    if (to_string(value) == word) return value;
  }
  return *values.begin();  // the command line has been checked
}

SwarmOptions read_options(const SwarmCommandOptions& options) {
  SwarmOptions read;
  read.backend = read_word(options.backend, {SwarmBackend::loopback, SwarmBackend::sim});
  read.mode = read_word(options.mode, {SwarmMode::drawn, SwarmMode::honest, SwarmMode::faulty});
  read.sabotage =
      read_word(options.sabotage, {SwarmSabotage::none, SwarmSabotage::bytes, SwarmSabotage::memory,
                                   SwarmSabotage::silence, SwarmSabotage::check, SwarmSabotage::digest});
  return read;
}

// One line, redrawn, on a terminal only.
class SwarmProgress {
 public:
  explicit SwarmProgress(std::uint64_t seeds) : seeds_(seeds), on_(::isatty(STDERR_FILENO) == 1) {}
  ~SwarmProgress() { clear(); }
  void clear() const {
    if (on_) fmt::print(stderr, "\r\x1b[K");
  }
  void show(std::uint64_t done, std::uint64_t bad) const {
    if (!on_) return;
    fmt::print(stderr, "\r\x1b[K{} of {} seeds, {} failed", done, seeds_, bad);
    std::fflush(stderr);
  }

 private:
  std::uint64_t seeds_;
  bool on_;
};

}  // namespace

int swarm_command(const SwarmCommandOptions& options) {
  const std::optional<SeedRange> seeds = read_seeds(options.seeds);
  if (!seeds) {
    fmt::print(stderr,
               "bx: error: --seeds is of the form A..B, for example 1..1000, and of at most {} seeds\n",
               kSeedsMax);
    return kExitUsage;
  }
  const SwarmOptions swarm = read_options(options);
  const SwarmProgress progress(seeds->count());
  SwarmReport total;
  std::uint64_t done = 0;
  std::uint64_t bad = 0;
  const auto on_result = [&](const SeedResult& result) {
    ++done;
    if (!result.good()) {
      ++bad;
      progress.clear();
      fmt::print("{}", describe_failure(result, swarm));
      std::fflush(stdout);
    }
    total.add_counts(result.report);
    progress.show(done, bad);
  };
  run_campaign(*seeds, swarm, options.jobs, on_result);
  progress.clear();
  fmt::print(
      "{} seeds on {}, each twice: {} failed. Calls: {} started, {} answered, {} refused, {} cancelled, {} "
      "expired, {} abandoned, {} lost with their session; {} puts read back; {} from user memory; "
      "{} parts of streams read.\n",
      done, to_string(swarm.backend), bad, total.calls, total.answered, total.refused, total.cancelled,
      total.expired, total.abandoned, total.failed, total.one_sided, total.user_memory, total.parts);
  return bad == 0 ? kExitGood : kExitNotGood;
}

}  // namespace bx::harness
