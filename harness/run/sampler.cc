// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/sampler.h"

#include <algorithm>

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kSamplesWanted = 400;
constexpr std::uint64_t kIntervalMin = 500;  // ns; below it sampling costs more than the run
constexpr double kPredictedMax = 0.95;
constexpr std::uint64_t kInvariantsEvery = 16;  // looks; each walks all tables of all workers

std::uint64_t to_ns(Instant instant) {
  return static_cast<std::uint64_t>(instant.time_since_epoch().count());
}

}  // namespace

void Sampler::start(std::uint64_t interval_ns, std::uint64_t expected_ns) {
  expected_ns_ = std::max<std::uint64_t>(1, expected_ns);
  bytes_before_ = bytes_sampled_ = traffic_.bytes();
  started_ns_ = sampled_ns_ = to_ns(traffic_.world().now());
  series_ = Series(interval_ns != 0 ? interval_ns : std::max(kIntervalMin, expected_ns / kSamplesWanted));
  sampling_ = true;
}

void Sampler::look(std::string_view phase) {
  const World& world = traffic_.world();
  if (looks_++ % kInvariantsEvery == 0) world.check_invariants();
  const std::uint64_t bytes = traffic_.bytes();
  if (sampling_) {
    SeriesRow row = world.sample();
    const std::uint64_t now = row.values.front();
    const std::uint64_t elapsed = now - sampled_ns_;
    row.values.back() = elapsed == 0 ? 0 : (bytes - bytes_sampled_) * 8 * kSecond / elapsed;
    series_.add(row);
    sampled_ns_ = now;
    bytes_sampled_ = bytes;
  }
  observer_.on_progress({phase, to_ns(world.now()), world.backend().events(), fraction(bytes)});
}

// Of the measured part. Only whole messages are counted as received, and in an incast all of them become
// whole near the end; until then the closed form says how far the run must be.
double Sampler::fraction(std::uint64_t bytes) const {
  if (!sampling_) return 0;
  const Plan& plan = traffic_.plan();
  double part = static_cast<double>(traffic_.ledger().completed()) /
                static_cast<double>(std::max<std::uint64_t>(1, plan.calls));
  if (plan.answer_bytes != 0) {
    part = static_cast<double>(bytes - bytes_before_) / static_cast<double>(plan.answer_bytes);
  }
  const auto elapsed = static_cast<double>(to_ns(traffic_.world().now()) - started_ns_);
  const double predicted = std::min(kPredictedMax, elapsed / static_cast<double>(expected_ns_));
  return std::min(1.0, std::max(part, predicted));
}

}  // namespace bx::harness
