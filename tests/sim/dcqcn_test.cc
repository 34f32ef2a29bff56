// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/dcqcn.h"

#include <gtest/gtest.h>

#include "sim/model/congestion_profiles.h"

namespace bx::sim {
namespace {

constexpr Rate kLine{40'000'000'000};
constexpr double kOne = 4294967296.0;

struct Machine {
  explicit Machine(const DcqcnConfig& c = {}) : config(c), dcqcn(config, kLine) {}
  void cnp(Picoseconds now) {
    dcqcn.advance(now, pacer);
    dcqcn.on_cnp(now, pacer);
  }
  std::uint64_t rate_at(Picoseconds now) {
    dcqcn.advance(now, pacer);
    return dcqcn.rate();
  }
  [[nodiscard]] double alpha() const { return static_cast<double>(dcqcn.alpha()) / kOne; }
  DcqcnConfig config;
  Pacer pacer;
  Dcqcn dcqcn;
};

TEST(Dcqcn, starts__at_line_rate_and_changes_nothing_by_itself) {
  Machine m;
  EXPECT_EQ(m.rate_at(std::chrono::seconds{1}), kLine.bits_per_second);
  EXPECT_FALSE(m.pacer.limited());
  EXPECT_EQ(m.dcqcn.next_change(), Picoseconds::max());
}

TEST(Dcqcn, on_cnp__the_first_one_halves_the_rate) {
  Machine m;
  m.cnp(microseconds{10});
  EXPECT_NEAR(static_cast<double>(m.dcqcn.rate()), 20e9, 100);
  EXPECT_EQ(m.dcqcn.target(), kLine.bits_per_second);
  EXPECT_TRUE(m.pacer.limited());
  EXPECT_EQ(m.pacer.rate(), m.dcqcn.rate());
}

TEST(Dcqcn, on_cnp__alpha_follows_the_recurrence_of_the_paper) {
  Machine m({.g = 1.0 / 16, .initial_alpha = 0.5});
  double alpha = 0.5;
  double rate = 40e9;
  Picoseconds now = microseconds{10};
  for (int i = 0; i < 12; ++i) {
    m.cnp(now);
    rate *= 1 - alpha / 2;
    alpha = (1 - 1.0 / 16) * alpha + 1.0 / 16;
    EXPECT_NEAR(static_cast<double>(m.dcqcn.rate()), rate, 1e-6 * rate) << i;
    EXPECT_NEAR(m.alpha(), alpha, 1e-6) << i;
    now += microseconds{50};  // before alpha timer and rate timer
  }
}

TEST(Dcqcn, alpha__decays_with_each_alpha_timer_since_the_last_cnp) {
  Machine m;
  m.cnp(microseconds{0});
  m.cnp(microseconds{55 * 100 + 1});  // 100 decays of a full alpha
  double alpha = 1;
  for (int i = 0; i < 100; ++i) alpha *= 1 - 1.0 / 256;
  alpha = (1 - 1.0 / 256) * alpha + 1.0 / 256;
  EXPECT_NEAR(m.alpha(), alpha, 1e-6);
}

TEST(Dcqcn, alpha__on_timer_counts_any_number_of_cnps_of_a_period_once) {
  DcqcnConfig config{.g = 1.0 / 8, .initial_alpha = 0.5, .alpha_update = AlphaUpdate::on_timer};
  config.alpha_timer = microseconds{10};
  Machine m(config);
  m.cnp(microseconds{0});
  EXPECT_NEAR(m.alpha(), 0.5, 1e-6);
  m.cnp(microseconds{2});
  m.cnp(microseconds{3});
  m.cnp(microseconds{11});  // one period with CNPs has ended
  EXPECT_NEAR(m.alpha(), 0.5 * 7 / 8 + 1.0 / 8, 1e-6);
  m.cnp(microseconds{31});  // one more with, then one without
  EXPECT_NEAR(m.alpha(), ((0.5 * 7 / 8 + 1.0 / 8) * 7 / 8 + 1.0 / 8) * 7 / 8, 1e-6);
}

TEST(Dcqcn, increase__five_steps_of_fast_recovery_then_additive) {
  Machine m({.byte_counter = 0});
  m.cnp(microseconds{0});
  m.cnp(microseconds{1});
  const auto target = static_cast<double>(m.dcqcn.target());
  double rate = static_cast<double>(m.dcqcn.rate());
  for (int i = 1; i <= 5; ++i) {
    rate = (rate + target) / 2;
    EXPECT_NEAR(static_cast<double>(m.rate_at(microseconds{1 + 55 * i})), rate, 10) << i;
    EXPECT_NEAR(static_cast<double>(m.dcqcn.target()), target, 1) << i;
  }
  rate = (rate + target + 40e6) / 2;
  EXPECT_NEAR(static_cast<double>(m.rate_at(microseconds{1 + 55 * 6})), rate, 10);
  EXPECT_NEAR(static_cast<double>(m.dcqcn.target()), target + 40e6, 1);
  // Without a byte counter, the timer alone leads on to hyper increase.
  m.rate_at(microseconds{1 + 55 * 7});
  EXPECT_NEAR(static_cast<double>(m.dcqcn.target()), target + 440e6, 1);
}

TEST(Dcqcn, increase__hyper_needs_both_counters_past_the_threshold) {
  Machine m({.byte_counter = 1000, .threshold = 2});
  m.cnp(microseconds{0});
  m.cnp(microseconds{0});
  m.cnp(microseconds{0});
  const std::uint64_t target = m.dcqcn.target();
  const auto send = [&](Picoseconds now) {
    m.dcqcn.advance(now, m.pacer);
    m.dcqcn.on_sent(now, 1000, m.pacer);
  };
  send(microseconds{1});
  send(microseconds{2});
  EXPECT_EQ(m.dcqcn.target(), target);
  send(microseconds{3});
  EXPECT_EQ(m.dcqcn.target(), target + 40'000'000);
  m.rate_at(microseconds{111});  // timer 1 and 2
  EXPECT_EQ(m.dcqcn.target(), target + 3 * 40'000'000);
  m.rate_at(microseconds{166});  // timer 3: both are over 2
  EXPECT_EQ(m.dcqcn.target(), target + 3 * 40'000'000 + 400'000'000);
}

TEST(Dcqcn, advance__all_at_once_is_the_same_as_step_by_step) {
  Machine once;
  Machine stepwise;
  for (Machine* m : {&once, &stepwise}) {
    m->cnp(microseconds{0});
    m->cnp(microseconds{70});
    m->cnp(microseconds{120});
  }
  for (int us = 121; us < 3000; ++us) stepwise.rate_at(microseconds{us});
  EXPECT_EQ(once.rate_at(microseconds{2999}), stepwise.dcqcn.rate());
  EXPECT_EQ(once.dcqcn.target(), stepwise.dcqcn.target());
  EXPECT_EQ(once.dcqcn.next_change(), stepwise.dcqcn.next_change());
}

TEST(Dcqcn, increase__ends_at_line_rate_and_frees_the_limiter) {
  Machine m;
  m.cnp(microseconds{0});
  EXPECT_EQ(m.rate_at(std::chrono::seconds{1}), kLine.bits_per_second);
  EXPECT_FALSE(m.pacer.limited());
  EXPECT_EQ(m.dcqcn.next_change(), Picoseconds::max());
}

TEST(Dcqcn, cut__respects_minimum_rate_and_largest_cut) {
  Machine floor({.rate_min = 15'000'000'000});
  for (int i = 0; i < 5; ++i) floor.cnp(microseconds{i});
  EXPECT_EQ(floor.dcqcn.rate(), 15'000'000'000U);
  Machine gentle({.decrease_max = 0.125});
  gentle.cnp(microseconds{0});
  EXPECT_NEAR(static_cast<double>(gentle.dcqcn.rate()), 35e9, 100);
}

TEST(Dcqcn, cut__the_first_cnp_may_set_the_rate) {
  Machine m({.rate_on_first_cnp = 1'000'000'000});
  m.cnp(microseconds{0});
  EXPECT_EQ(m.dcqcn.rate(), 1'000'000'000U);
  EXPECT_EQ(m.dcqcn.target(), 1'000'000'000U);
  m.cnp(microseconds{1});
  EXPECT_NEAR(static_cast<double>(m.dcqcn.rate()), 5e8, 100);
}

TEST(Dcqcn, cut__happens_once_a_monitor_period) {
  Machine m({.rate_reduce_monitor_period = microseconds{4}});
  m.cnp(microseconds{10});
  const std::uint64_t first = m.dcqcn.rate();
  m.cnp(microseconds{11});
  m.cnp(microseconds{12});
  EXPECT_EQ(m.rate_at(microseconds{14} - Picoseconds{1}), first);
  EXPECT_LT(m.rate_at(microseconds{14}), first);
  EXPECT_EQ(m.dcqcn.cuts(), 2U);
  m.rate_at(microseconds{40});
  EXPECT_EQ(m.dcqcn.cuts(), 2U);
}

TEST(Dcqcn, on_cnp__takes_effect_after_the_reaction_delay) {
  Machine m({.reaction_delay = microseconds{5}});
  m.cnp(microseconds{10});
  EXPECT_EQ(m.rate_at(microseconds{15} - Picoseconds{1}), kLine.bits_per_second);
  EXPECT_LT(m.rate_at(microseconds{15}), kLine.bits_per_second);
}

TEST(Dcqcn, cut__keeps_the_target_when_nothing_has_raised_the_rate) {
  Machine m({.byte_counter = 0, .clamp_target = false});
  m.cnp(microseconds{0});
  m.cnp(microseconds{1});
  EXPECT_EQ(m.dcqcn.target(), kLine.bits_per_second);
  m.rate_at(microseconds{56});  // the timer raises it once
  const std::uint64_t before = m.dcqcn.rate();
  m.cnp(microseconds{57});
  EXPECT_EQ(m.dcqcn.target(), before);
  Machine untouched({.byte_counter = 0, .clamp_target = false, .clamp_target_after_timer = false});
  untouched.cnp(microseconds{0});
  untouched.rate_at(microseconds{56});
  untouched.cnp(microseconds{57});
  EXPECT_EQ(untouched.dcqcn.target(), kLine.bits_per_second);
}

TEST(CongestionProfile, names__are_three_and_differ) {
  const auto zhu = congestion_profile("zhu15", kLine);
  const auto nvidia = congestion_profile("nvidia", kLine);
  const auto alibaba = congestion_profile("alibaba", Rate{100'000'000'000});
  ASSERT_TRUE(zhu && nvidia && alibaba);
  EXPECT_EQ(zhu->cnp.interval, microseconds{50});
  EXPECT_EQ(nvidia->cnp.scope, CnpScope::port);
  EXPECT_FALSE(zhu->cnp.with_naks);
  EXPECT_TRUE(nvidia->cnp.with_naks);
  EXPECT_FALSE(alibaba->cnp.with_naks);
  EXPECT_EQ(alibaba->dcqcn.rate_ai, 20'000'000U);
  EXPECT_EQ(alibaba->dcqcn.rate_hai, 200'000'000U);
  EXPECT_FALSE(congestion_profile("zhu16", kLine));
}

}  // namespace
}  // namespace bx::sim
