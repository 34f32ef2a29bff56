// SPDX-License-Identifier: BSD-3-Clause
// The parts of the tester by themselves: what counts as a difference, what is known of SoftRoCE, what a
// generated program may contain, and shrinking.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/differential/expectation.h"
#include "tests/differential/generator.h"
#include "tests/differential/hazards.h"
#include "tests/differential/outcome.h"
#include "tests/differential/shrink.h"

namespace bx::differential {
namespace {

using fabric::WcStatus;

constexpr Stream kSends{.connection = 0, .side = Side::a, .queue = Queue::send};
constexpr Stream kReceives{.connection = 0, .side = Side::b, .queue = Queue::receive};

Outcome outcome_of(const Stream& stream, std::vector<Event> events) {
  StepOutcome step;
  step.streams[stream] = std::move(events);
  return {step};
}

std::optional<Difference> compared(const Outcome& ours, const Outcome& theirs, bool racy = false,
                                   Tolerance* tolerance = nullptr) {
  Program program;
  program.steps.push_back({.racy = racy});
  return compare(program, ours, theirs, tolerance);
}

TEST(Compare, outcomes__that_are_equal_do_not_differ) {
  const Outcome outcome = outcome_of(kSends, {{.id = 1}, {.id = 2, .status = WcStatus::flushed}});
  EXPECT_FALSE(compared(outcome, outcome));
}

TEST(Compare, outcomes__differ_in_each_field_of_a_completion) {
  const Event event{.id = 1, .opcode = fabric::WcOpcode::recv, .length = 10, .imm = 7, .has_imm = true};
  std::vector<Event> changed(6, event);
  changed[0].id = 2;
  changed[1].status = WcStatus::flushed;
  changed[2].opcode = fabric::WcOpcode::recv_rdma_with_imm;
  changed[3].length = 11;
  changed[4].imm = 8;
  changed[5].has_imm = false;
  for (const Event& one : changed) {
    EXPECT_TRUE(compared(outcome_of(kReceives, {event}), outcome_of(kReceives, {one}))) << to_string(one);
  }
}

TEST(Compare, outcomes__differ_by_a_completion_too_many_on_either_side) {
  const Outcome none = outcome_of(kSends, {});
  const Outcome one = outcome_of(kSends, {{.id = 1}});
  EXPECT_TRUE(compared(none, one));
  EXPECT_TRUE(compared(one, none));
  EXPECT_TRUE(compared({StepOutcome{}}, one));
}

TEST(Compare, outcomes__differ_by_memory_and_by_what_calls_returned) {
  Outcome ours{StepOutcome{}};
  Outcome theirs{StepOutcome{}};
  ours[0].memory[1] = {1, 2};
  theirs[0].memory[1] = {1, 3};
  const auto memory = compared(ours, theirs);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->what, "memory of b differs in r0.1");
  theirs[0].memory = ours[0].memory;
  theirs[0].calls.push_back({0, "took 1"});
  EXPECT_TRUE(compared(ours, theirs));
}

TEST(Compare, racy_step__leaves_free_how_many_were_carried_out) {
  const auto outcome = [](WcStatus first, WcStatus second) {
    return outcome_of(kSends, {{.id = 1, .status = first}, {.id = 2, .status = second}});
  };
  const Outcome all = outcome(WcStatus::success, WcStatus::success);
  const Outcome one = outcome(WcStatus::success, WcStatus::flushed);
  EXPECT_FALSE(compared(all, one, true));
  EXPECT_TRUE(compared(all, one, false));
  EXPECT_TRUE(compared(all, outcome(WcStatus::flushed, WcStatus::success), true)) << "behind a flushed one";
  EXPECT_TRUE(compared(all, outcome(WcStatus::success, WcStatus::remote_access), true));
  EXPECT_TRUE(compared(all, outcome_of(kSends, {{.id = 1}}), true)) << "one never completes";
}

TEST(KnownDifferences, entry__accepts_its_two_statuses_and_no_others) {
  for (const Expectation& known : expectations()) {
    const Stream& stream = known.queue == Queue::send ? kSends : kReceives;
    const auto differ = [&](WcStatus ours, WcStatus theirs, Fault fault) {
      KnownDifferences tolerance;
      return compared(outcome_of(stream, {{.id = 1, .status = ours, .fault = fault}}),
                      outcome_of(stream, {{.id = 1, .status = theirs, .fault = fault}}), false, &tolerance)
          .has_value();
    };
    SCOPED_TRACE(known.name);
    EXPECT_FALSE(differ(known.ours, known.theirs, known.fault));
    EXPECT_FALSE(differ(known.ours, known.ours, known.fault)) << "a device that does as the standard says";
    EXPECT_TRUE(differ(known.theirs, known.ours, known.fault)) << "the other way round";
    EXPECT_TRUE(differ(WcStatus::success, known.theirs, known.fault));
    EXPECT_TRUE(differ(known.ours, WcStatus::success, known.fault));
    EXPECT_TRUE(differ(known.ours, known.theirs, Fault::remote_bounds)) << "of another fault";
    EXPECT_EQ(differ(known.theirs, known.theirs, known.fault), known.theirs_is_wrong)
        << "ours has become as SoftRoCE is";
  }
}

TEST(KnownDifferences, surplus__is_one_refused_receive_at_the_end_of_theirs) {
  KnownDifferences tolerance;
  const Outcome none = outcome_of(kReceives, {});
  const Outcome refused = outcome_of(kReceives, {{.id = 1, .status = WcStatus::remote_access}});
  EXPECT_FALSE(compared(none, refused, false, &tolerance));
  EXPECT_EQ(tolerance.surplus(), 1U);
  EXPECT_TRUE(compared(refused, none, false, &tolerance));
  EXPECT_TRUE(compared(refused, refused, false, &tolerance));
  EXPECT_TRUE(compared(none, outcome_of(kReceives, {{.id = 1}}), false, &tolerance));
}

TEST(Generate, program__depends_on_its_seed_only) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(to_string(generate({.seed = seed})), to_string(generate({.seed = seed})));
  }
  EXPECT_NE(to_string(generate({.seed = 1})), to_string(generate({.seed = 2})));
}

TEST(Generate, programs__stay_inside_their_memory_unless_they_mean_to) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (const Step& step : generate({.seed = seed}).steps) {
      for (const Action& action : step.actions) {
        const Post* post = std::get_if<Post>(&action);
        if (post == nullptr) continue;
        for (const Request& request : post->requests) {
          EXPECT_LE(request.pieces.size(), kPiecesMax);
          const bool inlined = has(request.flags, fabric::SendFlags::inlined);
          EXPECT_TRUE(!inlined || length_of(request.pieces) <= kInlineMax);
          for (const Place& piece : request.pieces) {
            EXPECT_LE(piece.offset + piece.length, kSlotBytes);
            EXPECT_GT(piece.length, 0U) << "some devices read length 0 as 2^31";
          }
        }
      }
    }
  }
}

TEST(Hazards, slot__is_not_written_while_its_bytes_may_be_read) {
  const Place place{.region = 1, .slot = 2};
  Hazards hazards;
  EXPECT_TRUE(hazards.local_source(Side::a, place));
  EXPECT_FALSE(hazards.remote_write(Side::a, place, 0, true));
  EXPECT_FALSE(hazards.local_target(Side::a, place));
  EXPECT_TRUE(hazards.remote_write(Side::b, place, 0, false)) << "the other side's";
  EXPECT_FALSE(hazards.remote_write(Side::b, place, 1, true)) << "by another queue pair";
  EXPECT_FALSE(hazards.remote_read(Side::b, place, 1));
  EXPECT_TRUE(hazards.remote_read(Side::b, place, 0)) << "a READ sees the WRITEs before it";
  EXPECT_FALSE(hazards.remote_write(Side::b, place, 0, false));
  EXPECT_TRUE(hazards.remote_write(Side::b, place, 0, true)) << "a fence keeps it behind the READ";
  hazards.clear();
  EXPECT_TRUE(hazards.local_target(Side::a, place));
  EXPECT_FALSE(hazards.remote_read(Side::a, place, 0));
}

TEST(Shrink, program__keeps_only_what_shows_it) {
  // Shows "it" as long as request 7 is there.
  const auto has_seven = [](const Program& program) {
    return std::ranges::any_of(program.steps, [](const Step& step) {
      return std::ranges::any_of(step.actions, [](const Action& action) {
        const Post* post = std::get_if<Post>(&action);
        return post != nullptr && std::ranges::find(post->requests, 7U, &Request::id) != post->requests.end();
      });
    });
  };
  Program program;
  for (std::uint32_t step = 0; step < 5; ++step) {
    Post post;
    for (std::uint32_t i = 0; i < 4; ++i) post.requests.push_back({.id = step * 4 + i});
    program.steps.push_back({.actions = {Fail{}, post, Destroy{}}});
  }
  const Program small = shrink(program, has_seven, 1000);
  ASSERT_EQ(small.steps.size(), 1U);
  ASSERT_EQ(small.steps[0].actions.size(), 1U);
  EXPECT_EQ(std::get<Post>(small.steps[0].actions[0]).requests.size(), 1U);
  EXPECT_TRUE(has_seven(shrink(program, has_seven, 3))) << "also if it may not try often";
}

}  // namespace
}  // namespace bx::differential
