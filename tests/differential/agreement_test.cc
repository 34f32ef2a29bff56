// SPDX-License-Identifier: GPL-2.0-only
// Random verbs programs have the same outcome on loopback and on the simulated NIC; and a NIC that is broken
// in any of the ways that an outcome can show is noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/provider/sim_fabric.h"
#include "tests/conformance/broken_fabric.h"
#include "tests/differential/backend.h"
#include "tests/differential/generator.h"
#include "tests/differential/shrink.h"

namespace bx::differential {
namespace {

using conformance::Breakage;

constexpr std::uint64_t kProgramsPerTest = 25;
constexpr std::size_t kShrinkMax = 100;

std::string explain(const Program& program, const Trial& trial) {
  std::string text = trial.difference->what + "\n" + to_string(program);
  for (std::size_t i = 0; i < trial.ours.size(); ++i) {
    text += "step " + std::to_string(i) + ", ours\n" + to_string(trial.ours[i]) + "theirs\n" +
            to_string(trial.theirs[i]);
  }
  return text;
}

class Agreement : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Agreement, random_program__has_one_outcome_on_loopback_and_sim) {
  const auto agree = [](const Program& program) {
    return try_both(program, loopback_backend(), sim_backend());
  };
  std::size_t completions = 0;
  for (std::uint64_t i = 0; i < kProgramsPerTest; ++i) {
    const Program program = generate({.seed = GetParam() * kProgramsPerTest + i});
    const Trial trial = agree(program);
    for (const StepOutcome& step : trial.ours) completions += step.completions();
    if (!trial.difference) continue;
    const auto shows = [&](const Program& smaller) {
      const auto difference = agree(smaller).difference;
      return difference && difference->kind() == trial.difference->kind();
    };
    const Program small = shrink(program, shows, kShrinkMax);
    FAIL() << "seed " << program.seed << ": " << explain(small, agree(small));
  }
  EXPECT_GT(completions, kProgramsPerTest * 5) << "the programs do next to nothing";
}
INSTANTIATE_TEST_SUITE_P(seeds, Agreement, testing::Range(std::uint64_t{0}, std::uint64_t{8}));

// What the fabrics that agree have in common is worth something only if the programs reach every way to end.
TEST(Coverage, programs__reach_every_status_and_opcode) {
  std::set<fabric::WcStatus> statuses;
  std::set<fabric::WcOpcode> opcodes;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (const StepOutcome& step : run(generate({.seed = seed}), loopback_backend())) {
      for (const auto& [stream, events] : step.streams) {
        for (const Event& event : events) {
          statuses.insert(event.status);
          if (event.status == fabric::WcStatus::success) opcodes.insert(event.opcode);
        }
      }
    }
  }
  EXPECT_EQ(opcodes.size(), 7U);
  for (const auto status :
       {fabric::WcStatus::success, fabric::WcStatus::local_length, fabric::WcStatus::local_protection,
        fabric::WcStatus::flushed, fabric::WcStatus::remote_invalid_request, fabric::WcStatus::remote_access,
        fabric::WcStatus::remote_operation, fabric::WcStatus::retry_exceeded,
        fabric::WcStatus::rnr_retry_exceeded}) {
    EXPECT_TRUE(statuses.contains(status)) << fabric::to_string(status);
  }
}

// --- Mutants.

Backend broken_sim(Breakage breakage) {
  return {.name = "broken",
          .make =
              [breakage] {
                return std::make_unique<conformance::BrokenFabric>(std::move(*sim::SimFabric::create({})),
                                                                   breakage);
              },
          .hosts = {"host0", "host1"}};
}

class Mutant : public testing::TestWithParam<conformance::BreakageName> {};

// Those of the conformance suite that completions and memory can show; wake-ups, times, events and lifetimes
// are not compared.
constexpr std::array kVisible{
    Breakage::claims_all_accepted, Breakage::reorders_completions, Breakage::loses_completions,
    Breakage::flushes_twice,       Breakage::misses_one_flush,     Breakage::flushes_as_success,
    Breakage::ignores_rnr,         Breakage::retries_for_ever,     Breakage::swallows_faults,
    Breakage::confuses_statuses,   Breakage::drops_last_element,   Breakage::corrupts_mtu_plus_one,
    Breakage::loses_immediates,    Breakage::wrong_byte_count};

std::vector<conformance::BreakageName> visible() {
  std::vector<conformance::BreakageName> names;
  for (const conformance::BreakageName& one : conformance::kBreakages) {
    if (std::ranges::find(kVisible, one.breakage) != kVisible.end()) names.push_back(one);
  }
  return names;
}

TEST_P(Mutant, sim__broken_on_purpose_is_noticed) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = generate({.seed = seed});
    if (try_both(program, loopback_backend(), broken_sim(GetParam().breakage)).difference) return;
  }
  FAIL() << "200 programs did not notice";
}
INSTANTIATE_TEST_SUITE_P(breakage, Mutant, testing::ValuesIn(visible()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Intact, sim__behind_the_same_decorator_unbroken_agrees) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const Program program = generate({.seed = seed});
    const Trial trial = try_both(program, loopback_backend(), broken_sim(Breakage::none));
    ASSERT_FALSE(trial.difference) << explain(program, trial);
  }
}

}  // namespace
}  // namespace bx::differential
