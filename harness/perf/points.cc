// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/points.h"

#include <algorithm>

#include "libbx/base/check.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kWarmUpLatency = 16;                // messages
constexpr std::uint64_t kWarmUpBandwidth = 2 * kPerfDepth;  // the queue filled and turned over
// Least of a sample: chunks of all that is under way go in turn, so that long messages end in bursts of as
// many.
constexpr std::uint64_t kSliceMessages = kPerfDepth;

// However long they take: a machine that stood still once is not to decide the median.
constexpr std::size_t kLatencySamplesMin = 15;

double percentile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(last * share + 0.5)];
}

}  // namespace

const std::vector<PerfCaseSpec>& perf_cases() {
  static const std::vector<PerfCaseSpec> cases{
      {PerfCase::send_latency, "send-latency", "SEND to and fro, half of the time there and back", true,
       true},
      {PerfCase::write_latency, "write-latency", "RDMA WRITE, from the post to its completion", true, true},
      {PerfCase::read_latency, "read-latency", "RDMA READ, from the post to its completion", true, true},
      {PerfCase::send_bandwidth, "send-bandwidth", "SENDs, 32 under way", true, false},
      {PerfCase::write_bandwidth, "write-bandwidth", "RDMA WRITEs, 32 under way", true, false},
      {PerfCase::read_bandwidth, "read-bandwidth", "RDMA READs, up to 32 under way", true, false},
      {PerfCase::call_latency, "call-latency",
       "calls of the library, answered with as much: half of the time", false, true},
      {PerfCase::fetch_bandwidth, "fetch-bandwidth", "calls of 64 B answered with the size, 32 under way",
       false, false},
      {PerfCase::push_bandwidth, "push-bandwidth", "calls of the size answered with nothing, 32 under way",
       false, false},
      {PerfCase::get_bandwidth, "get-bandwidth",
       "one-sided reads of the library from exposed memory, 32 under way", false, false},
      {PerfCase::put_bandwidth, "put-bandwidth",
       "one-sided writes of the library to exposed memory, 32 under way", false, false},
  };
  return cases;
}

const PerfCaseSpec& spec_of(PerfCase which) {
  return *std::ranges::find(perf_cases(), which, &PerfCaseSpec::which);
}

PerfPoint summarise(PerfCase which, std::uint64_t size, std::uint64_t messages, std::vector<double> samples) {
  BX_CHECK(!samples.empty(), "a point without samples");
  std::ranges::sort(samples);
  return {
      which, size, messages, percentile(samples, 0.5), percentile(samples, 0.1), percentile(samples, 0.9)};
}

PointTimer::PointTimer(PerfCase which, std::uint64_t size, std::uint64_t point_ns)
    : which_(which), latency_(spec_of(which).latency), size_(size), point_ns_(point_ns) {
  warm_up_ = latency_ ? kWarmUpLatency : kWarmUpBandwidth;
}

void PointTimer::start(std::uint64_t now_ns) {
  begin_ns_ = now_ns;
  slice_begin_ns_ = now_ns;
}

void PointTimer::complete(std::uint64_t now_ns, double latency_ns) {
  if (done_) return;
  if (warm_up_ > 0) {
    if (--warm_up_ == 0) start(now_ns);
    return;
  }
  ++messages_;
  if (latency_) {
    samples_.push_back(latency_ns);
    const bool time_is_up = now_ns - begin_ns_ >= point_ns_ && samples_.size() >= kLatencySamplesMin;
    done_ = time_is_up || samples_.size() == kSamplesMax;
    return;
  }
  ++slice_messages_;
  const std::uint64_t elapsed = now_ns - slice_begin_ns_;
  if (slice_messages_ < kSliceMessages || elapsed == 0 || elapsed < point_ns_ / kSlices) return;
  samples_.push_back(static_cast<double>(slice_messages_ * size_) * 1e9 / static_cast<double>(elapsed));
  slice_begin_ns_ = now_ns;
  slice_messages_ = 0;
  done_ = samples_.size() == kSlices;
}

PerfPoint PointTimer::result() {
  return summarise(which_, size_, messages_, std::move(samples_));
}

}  // namespace bx::harness
