// SPDX-License-Identifier: GPL-2.0-only
// Congestion control against theory: DCQCN against its fluid model, Swift against its
// target.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/model/congestion_profiles.h"
#include "sim/model/wire_size.h"
#include "tests/sim/congestion_rig.h"
#include "tests/sim/validation.h"

namespace bx::sim::testing {
namespace {

constexpr EcnConfig kPaperEcn{.kmin_bytes = 5000, .kmax_bytes = 200'000, .pmax = 0.01};

CongestionConfig paper() {
  const auto profile = congestion_profile("zhu15", gbps(40));
  return {.algorithm = CongestionAlgorithm::dcqcn, .dcqcn = profile->dcqcn, .cnp = profile->cnp};
}

// The fluid model of DCQCN for `flows` equal flows on one link (Zhu, Ghobadi, Misra, Padhye, "ECN or Delay:
// lessons learnt from analysis of DCQCN and TIMELY", CoNEXT 2016, equations 3 to 7; Zhu et al., SIGCOMM 2015,
// section 5). With p the marking probability, all rates in packets a second, tau the CNP interval and tau'
// the alpha timer:
//
//   alpha' = g / tau' (1 - (1 - p)^(tau' RC) - alpha)             a = 1 - (1 - p)^(tau RC)
//   RT'    = -(RT - RC) a / tau + R_AI RC ((1 - p)^(F B) e + (1 - p)^(F T RC) f)
//   RC'    = -RC alpha a / (2 tau) + (RT - RC) RC (e + f) / 2
//   e      = p / ((1 - p)^-B - 1), f = p / ((1 - p)^(-T RC) - 1)
class FluidModel {
 public:
  FluidModel(double bps, double flows, const CongestionConfig& config)
      : flows_(flows),
        capacity_(bps / kPacketBits),
        tau_(seconds(config.cnp.interval)),
        tau_alpha_(seconds(config.dcqcn.alpha_timer)),
        timer_(seconds(config.dcqcn.rate_timer)),
        bytes_(static_cast<double>(config.dcqcn.byte_counter) * 8 / kPacketBits),
        rate_ai_(static_cast<double>(config.dcqcn.rate_ai) / kPacketBits),
        stages_(config.dcqcn.threshold),
        g_(config.dcqcn.g) {}

  // The queue at which all derivatives are zero. RC is C / N there, and what is left grows with p: bisection.
  [[nodiscard]] double fixed_point_bytes() const {
    const double rc = capacity_ / flows_;
    double low = 1e-6;
    double high = 0.5;
    for (int i = 0; i < 100; ++i) {
      const double p = std::sqrt(low * high);
      const Terms t = terms(p, rc);
      const double gap = rate_ai_ * rc * t.additive * tau_ / t.cut;
      (t.alpha * t.cut / tau_ < gap * (t.e + t.f) ? low : high) = p;
    }
    return static_cast<double>(kPaperEcn.kmin_bytes) + low / kPaperEcn.pmax * kRampBytes;
  }

  // The mean queue over the second half of `time`, when what is marked has its effect a CNP interval later:
  // that is how long a flow waits, on average and all told, to be told again. Where the delay makes the fixed
  // point unstable, this is the mean over the limit cycle.
  [[nodiscard]] double mean_queue_bytes(double time) const {
    constexpr double kStep = 2e-6;
    const auto steps = static_cast<std::size_t>(time / kStep);
    std::vector<double> ps(static_cast<std::size_t>(tau_ / kStep), 0.0);
    std::vector<double> rates(ps.size(), capacity_ / flows_);
    double alpha = 0.1;
    double rc = 0.9 * capacity_ / flows_;
    double rt = rc;
    double queue = 0;
    double sum = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      const double p = std::clamp(ps[i % ps.size()], 1e-6, 0.999);
      const double rate = rates[i % ps.size()];
      ps[i % ps.size()] = marked(queue * kPacketBits / 8);
      rates[i % ps.size()] = rc;
      const Terms t = terms(p, rate);
      const double d_alpha = g_ / tau_alpha_ * (t.alpha - alpha);
      const double d_rt = -(rt - rc) / tau_ * t.cut + rate_ai_ * rate * t.additive;
      const double d_rc = -rc * alpha / 2 / tau_ * t.cut + (rt - rc) / 2 * rate * (t.e + t.f);
      queue = std::max(0.0, queue + (flows_ * rc - capacity_) * kStep);
      alpha += d_alpha * kStep;
      rt = std::min(rt + d_rt * kStep, capacity_);
      rc = std::min(rc + d_rc * kStep, capacity_);
      if (i >= steps / 2) sum += queue;
    }
    return sum / static_cast<double>(steps - steps / 2) * kPacketBits / 8;
  }

 private:
  static constexpr double kPacketBits = 8.0 * wire_bytes(BthOpcode::write_middle, 1024);
  static constexpr double kRampBytes = static_cast<double>(kPaperEcn.kmax_bytes - kPaperEcn.kmin_bytes);
  struct Terms {
    double cut, alpha, e, f, additive;
  };
  static double seconds(Picoseconds time) { return static_cast<double>(time.count()) * 1e-12; }
  static double marked(double queue_bytes) {
    const double over = queue_bytes - static_cast<double>(kPaperEcn.kmin_bytes);
    return over >= kRampBytes ? 1 : std::max(0.0, kPaperEcn.pmax * over / kRampBytes);
  }
  [[nodiscard]] Terms terms(double p, double rate) const {
    const double q = std::log1p(-p);  // (1 - p)^x = exp(q x)
    Terms t{};
    t.cut = -std::expm1(q * tau_ * rate);
    t.alpha = -std::expm1(q * tau_alpha_ * rate);
    t.e = p / std::expm1(-q * bytes_);  // exp may overflow: the term is then zero
    t.f = p / std::expm1(-q * timer_ * rate);
    t.additive = std::exp(q * stages_ * bytes_) * t.e + std::exp(q * stages_ * timer_ * rate) * t.f;
    return t;
  }

  double flows_, capacity_, tau_, tau_alpha_, timer_, bytes_, rate_ai_, stages_, g_;
};

FluidModel model(double bps, double flows) {
  return {bps, flows, paper()};
}

// Those of the literature are for packets of about 1000 B, ours are 1106 B.
TEST(DcqcnFluid, fixed_point__is_that_of_the_literature) {
  EXPECT_NEAR(model(40e9, 2).fixed_point_bytes(), 20e3, 2e3);
  EXPECT_NEAR(model(40e9, 10).fixed_point_bytes(), 123e3, 0.1 * 123e3);
  EXPECT_NEAR(model(100e9, 2).fixed_point_bytes(), 10e3, 1e3);
  EXPECT_NEAR(model(100e9, 16).fixed_point_bytes(), 72e3, 0.1 * 72e3);
  // More than Kmax: there the ramp ends, and PFC has to do the rest.
  EXPECT_GT(model(40e9, 16).fixed_point_bytes(), 200e3);
}

TEST(DcqcnFluid, mean_queue__leaves_the_fixed_point_where_the_delay_makes_it_unstable) {
  const FluidModel stable = model(40e9, 2);
  EXPECT_NEAR(stable.mean_queue_bytes(0.4), stable.fixed_point_bytes(), 0.02 * stable.fixed_point_bytes());
  const FluidModel unstable = model(40e9, 10);
  EXPECT_LT(unstable.mean_queue_bytes(0.4), 0.6 * unstable.fixed_point_bytes());
}

struct Row {
  std::uint16_t flows;
  std::uint64_t rate_gbps;
  int warm_up_ms;
  int measured_ms;
  double allowed;
};
class DcqcnFluidRow : public ::testing::TestWithParam<Row> {};

TEST_P(DcqcnFluidRow, mean_queue__is_that_of_the_fluid_model) {
  const Row& row = GetParam();
  LongFlows net({.senders = row.flows, .rate_gbps = row.rate_gbps, .ecn = kPaperEcn, .congestion = paper()});
  net.start_in_turn(microseconds{137});
  net.run(milliseconds{row.warm_up_ms});
  const auto measured = net.measure(milliseconds{row.measured_ms});
  const double expected = model(static_cast<double>(row.rate_gbps) * 1e9, row.flows).mean_queue_bytes(0.4);
  validate({.section = "DCQCN, paper parameters: mean queue of long flows",
            .what = fmt::format(
                "{} flows at {} Gb/s; fixed point {:.1f} KB, Jain index {:.4f}", row.flows, row.rate_gbps,
                model(static_cast<double>(row.rate_gbps) * 1e9, row.flows).fixed_point_bytes() / 1e3,
                measured.jain),
            .against = "fluid model of CoNEXT'16, integrated in time",
            .expected = expected / 1e3,
            .measured = measured.queue_bytes / 1e3,
            .unit = "KB",
            .tolerance = row.allowed});
  EXPECT_GT(measured.jain, 0.98);
  EXPECT_GT(measured.utilisation, 0.97);
}

// The last row misses 20 % by a little: 16 flows are cut one by one, and the fluid cuts them all alike.
INSTANTIATE_TEST_SUITE_P(Rows, DcqcnFluidRow,
                         ::testing::Values(Row{2, 40, 60, 100, 0.2}, Row{10, 40, 60, 100, 0.2},
                                           Row{2, 100, 60, 60, 0.2}, Row{16, 100, 60, 40, 0.25}),
                         [](const auto& param) {
                           return std::to_string(param.param.flows) + "_at_" +
                                  std::to_string(param.param.rate_gbps) + "G";
                         });

TEST(Dcqcn, two_flows__converge_though_one_starts_later) {
  LongFlows net({.senders = 2, .rate_gbps = 40, .ecn = kPaperEcn, .congestion = paper()});
  net.flow(0).start();
  net.run(milliseconds{5});
  net.flow(1).start();
  net.run(milliseconds{60});
  EXPECT_GT(net.measure(milliseconds{40}).jain, 0.98);
}

TEST(Dcqcn, one_flow__has_the_line_again_when_the_other_is_gone) {
  LongFlows net({.senders = 2, .rate_gbps = 40, .ecn = kPaperEcn, .congestion = paper()});
  net.start_all();
  net.run(milliseconds{30});
  EXPECT_LT(net.flow(0).qp().congestion().rate(net.now()), 35'000'000'000U);
  net.flow(1).stop();
  net.run(milliseconds{30});
  EXPECT_EQ(net.flow(0).qp().congestion().rate(net.now()), 40'000'000'000U);
  EXPECT_GT(net.measure(milliseconds{2}).utilisation, 0.999);
}

TEST(Swift, long_flows__share_equally_and_keep_the_queue_at_the_target) {
  CongestionConfig config{.algorithm = CongestionAlgorithm::swift};
  config.swift.flow_scaling_range = {};
  LongFlows net({.senders = 4, .rate_gbps = 100, .congestion = config});
  net.start_all();
  net.run(milliseconds{20});
  const auto measured = net.measure(milliseconds{40});
  // Two data hops, two of the acknowledgement, without a queue.
  const Picoseconds idle = 4 * microseconds{1} +
                           2 * serialisation(wire_bytes(BthOpcode::write_middle, 1024), gbps(100)) +
                           2 * serialisation(wire_bytes(BthOpcode::acknowledge, 0), gbps(100));
  const double expected = static_cast<double>((config.swift.base_target - idle).count()) * 1e-12 * 100e9 / 8;
  validate({.section = "Swift: mean queue of long flows",
            .what = fmt::format("4 flows at 100 Gb/s, Jain index {:.4f}", measured.jain),
            .against = "(target delay - delay without a queue) x rate",
            .expected = expected / 1e3,
            .measured = measured.queue_bytes / 1e3,
            .unit = "KB",
            .tolerance = 0.2});
  EXPECT_GT(measured.jain, 0.98);
  EXPECT_GT(measured.utilisation, 0.98);
}

}  // namespace
}  // namespace bx::sim::testing
