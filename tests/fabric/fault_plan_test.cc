// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/fault_plan.h"

#include <gtest/gtest.h>

namespace bx::fabric {
namespace {

struct Injection {
  explicit Injection(FaultPlan given, std::string_view host = "alpha")
      : plan(std::move(given)), injector(plan, host, counts) {}
  std::vector<int> strikes(FaultKind kind, int opportunities) {
    std::vector<int> hits;
    for (int i = 1; i <= opportunities; ++i) {
      if (injector.strikes(kind)) hits.push_back(i);
    }
    return hits;
  }
  FaultPlan plan;
  std::array<std::uint64_t, kFaultKinds> counts{};
  FaultInjector injector;
};

TEST(FaultInjector, strikes__never_with_an_empty_plan) {
  Injection injection({});
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    EXPECT_TRUE(injection.strikes(static_cast<FaultKind>(kind), 1000).empty());
  }
  EXPECT_EQ(injection.counts, (std::array<std::uint64_t, kFaultKinds>{}));
}

TEST(FaultInjector, strikes__exactly_the_planned_opportunities) {
  FaultPlan plan;
  plan.planned = {{.kind = FaultKind::short_post, .nth = 3},
                  {.kind = FaultKind::short_post, .nth = 7},
                  {.kind = FaultKind::wake_up_lost, .nth = 1}};
  Injection injection(plan);
  EXPECT_EQ(injection.strikes(FaultKind::short_post, 20), (std::vector{3, 7}));
  EXPECT_EQ(injection.strikes(FaultKind::wake_up_lost, 20), std::vector{1});
  EXPECT_EQ(injection.counts[static_cast<std::size_t>(FaultKind::short_post)], 2U);
}

TEST(FaultInjector, strikes__only_on_the_planned_host) {
  FaultPlan plan;
  plan.planned = {{.kind = FaultKind::short_post, .nth = 2, .host = "beta"}};
  EXPECT_TRUE(Injection(plan, "alpha").strikes(FaultKind::short_post, 10).empty());
  EXPECT_EQ(Injection(plan, "beta").strikes(FaultKind::short_post, 10), std::vector{2});
}

TEST(FaultInjector, strikes__by_chance_about_as_often_as_asked) {
  FaultPlan plan{.seed = 5};
  Injection injection(plan.with(FaultKind::completion_error, 0.25));
  const auto hits = injection.strikes(FaultKind::completion_error, 10'000).size();
  EXPECT_GT(hits, 2'300U);  // four standard deviations of 43 around 2500
  EXPECT_LT(hits, 2'700U);
}

TEST(FaultInjector, strikes__at_the_same_places_for_the_same_seed) {
  const auto places = [](std::uint64_t seed, std::string_view host) {
    FaultPlan plan{.seed = seed};
    return Injection(plan.with(FaultKind::completion_error, 0.1), host)
        .strikes(FaultKind::completion_error, 500);
  };
  EXPECT_EQ(places(1, "alpha"), places(1, "alpha"));
  EXPECT_NE(places(1, "alpha"), places(2, "alpha"));
  EXPECT_NE(places(1, "alpha"), places(1, "beta"));
}

TEST(FaultInjector, strikes__of_one_kind_do_not_move_those_of_another) {
  FaultPlan one{.seed = 1};
  FaultPlan two{.seed = 1};
  Injection alone(one.with(FaultKind::completion_error, 0.1));
  Injection both(two.with(FaultKind::completion_error, 0.1).with(FaultKind::short_post, 0.5));
  both.strikes(FaultKind::short_post, 100);
  EXPECT_EQ(alone.strikes(FaultKind::completion_error, 300), both.strikes(FaultKind::completion_error, 300));
}

TEST(FaultInjector, delay__lies_between_the_two_of_the_plan) {
  FaultPlan plan;
  plan.delay_min = Duration{10};
  plan.delay_max = Duration{20};
  Injection injection(plan);
  for (int i = 0; i < 200; ++i) {
    const Duration delay = injection.injector.delay();
    EXPECT_GE(delay, Duration{10});
    EXPECT_LE(delay, Duration{20});
  }
}

TEST(FaultInjector, shorter__is_always_less) {
  Injection injection({});
  for (std::size_t count = 1; count < 50; ++count) EXPECT_LT(injection.injector.shorter(count), count);
}

}  // namespace
}  // namespace bx::fabric
