// SPDX-License-Identifier: GPL-2.0-only
// Runs random verbs programs on two fabrics and prints where they differ: the seed, the program as small as
// it gets, both outcomes. Exit status 0: they agree.
//
//   scripts/rxe build/release/tests/differential/differential --programs 200
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "tests/differential/backend.h"
#include "tests/differential/expectation.h"
#include "tests/differential/generator.h"
#include "tests/differential/shrink.h"

namespace bx::differential {
namespace {

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t programs = 200;
  std::string against = "rxe";
  std::uint64_t differences_max = 5;
  std::size_t shrink_max = 150;
  bool print = false;
};

constexpr std::uint64_t kProgressInterval = 500;  // programs

struct Tally {
  std::uint64_t programs = 0;
  std::uint64_t differ = 0;
  std::uint64_t unsteady = 0;
  std::uint64_t completions = 0;
  std::map<std::string, std::uint64_t> statuses{};
};

void count(Tally& tally, const Outcome& outcome) {
  for (const StepOutcome& step : outcome) {
    for (const auto& [stream, events] : step.streams) {
      tally.completions += events.size();
      for (const Event& event : events) ++tally.statuses[std::string(fabric::to_string(event.status))];
    }
  }
}

class Tester {
 public:
  explicit Tester(const Options& options)
      : options_(options),
        ours_(options.against == "sim" ? loopback_backend() : sim_backend()),
        theirs_(options.against == "sim" ? sim_backend() : rxe_backend()) {}

  int run() {
    for (std::uint64_t seed = options_.seed; seed < options_.seed + options_.programs; ++seed) {
      test(seed);
      if (tally_.programs % kProgressInterval == 0) tell_progress();
      if (tally_.differ >= options_.differences_max) break;
    }
    summarise();
    // A device that runs under an emulator misses a timer now and then; more than that is a difference.
    const bool steady = tally_.unsteady * 50 <= tally_.programs;
    return tally_.differ == 0 && steady ? 0 : 1;
  }

 private:
  Trial differs(const Program& program) {
    return try_both(program, ours_, theirs_, options_.against == "sim" ? nullptr : &known_);
  }

  void test(std::uint64_t seed) {
    const Program program = generate({.seed = seed, .for_device = options_.against != "sim"});
    if (options_.print) std::printf("%s\n", to_string(program).c_str());
    ++tally_.programs;
    const Trial trial = differs(program);
    count(tally_, trial.ours);
    if (!trial.difference) return;
    if (agrees_again(program)) {
      ++tally_.unsteady;
      std::printf("seed %llu: differed once and not again: step %zu, %s\n",
                  static_cast<unsigned long long>(seed), trial.difference->step,
                  trial.difference->what.c_str());
      return;
    }
    ++tally_.differ;
    const std::string kind = trial.difference->kind();
    const auto shows = [&](const Program& smaller) {
      const auto difference = differs(smaller).difference;
      return difference && difference->kind() == kind;
    };
    std::printf("\nseed %llu differs: step %zu, %s\n", static_cast<unsigned long long>(seed),
                trial.difference->step, trial.difference->what.c_str());
    std::fflush(stdout);
    report(shrink(program, shows, options_.shrink_max));
  }

  // Under a real clock a machine that stood still may have made the difference; then it does not come every
  // time.
  bool agrees_again(const Program& program) {
    const int attempts = theirs_.clock == Clock::real ? 3 : 1;
    for (int i = 0; i < attempts; ++i) {
      if (!differs(program).difference) return true;
    }
    return false;
  }

  void report(const Program& program) {
    const Trial trial = differs(program);
    std::printf("shrunk: %s\n%s", trial.difference ? trial.difference->what.c_str() : "(not this time)",
                to_string(program).c_str());
    if (!trial.difference) return;
    for (std::size_t i = 0; i < trial.ours.size(); ++i) {
      std::printf("step %zu on %s\n%sstep %zu on %s\n%s", i, ours_.name.c_str(),
                  to_string(trial.ours[i]).c_str(), i, theirs_.name.c_str(),
                  to_string(trial.theirs[i]).c_str());
    }
    std::fflush(stdout);
  }

  void tell_progress() const {
    std::printf("%llu programs\n", static_cast<unsigned long long>(tally_.programs));
    std::fflush(stdout);
  }

  void summarise() const {
    std::printf(
        "%llu programs on %s and %s, %llu completions: %llu differ, %llu differed once and not again\n",
        static_cast<unsigned long long>(tally_.programs), ours_.name.c_str(), theirs_.name.c_str(),
        static_cast<unsigned long long>(tally_.completions), static_cast<unsigned long long>(tally_.differ),
        static_cast<unsigned long long>(tally_.unsteady));
    for (const auto& [status, times] : tally_.statuses) {
      std::printf("  %-28s %llu\n", status.c_str(), static_cast<unsigned long long>(times));
    }
    for (std::size_t i = 0; i < known_.used().size(); ++i) {
      std::printf("  known: %-50s %llu\n", expectations()[i].name,
                  static_cast<unsigned long long>(known_.used()[i]));
    }
    std::printf("  known: %-50s %llu\n", "a receive that a refused WRITE_WITH_IMM takes with it",
                static_cast<unsigned long long>(known_.surplus()));
  }

  Options options_;
  Backend ours_;
  Backend theirs_;
  KnownDifferences known_;
  Tally tally_{};
};

}  // namespace
}  // namespace bx::differential

int main(int argc, char** argv) {
  bx::differential::Options options;
  CLI::App app{"Random verbs programs on two fabrics, which must agree"};
  app.add_option("--seed", options.seed, "of the first program");
  app.add_option("--programs", options.programs, "how many, of consecutive seeds");
  app.add_option("--against", options.against, "rxe: sim against SoftRoCE; sim: loopback against sim")
      ->check(CLI::IsMember({"rxe", "sim"}));
  app.add_option("--differences", options.differences_max, "end after so many");
  app.add_option("--shrink", options.shrink_max, "how many smaller programs to try for each");
  app.add_flag("--print", options.print, "print each program");
  CLI11_PARSE(app, argc, argv);
  return bx::differential::Tester(options).run();
}
