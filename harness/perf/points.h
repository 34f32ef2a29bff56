// SPDX-License-Identifier: GPL-2.0-only
// What `bx perf verbs` measures, and what it found: a case with one size is a point.
//
// Raw cases are the boundary's verbs in a loop of their own, one queue pair; the others the library's, one
// session. Both take the same sizes over the same path with as much under way, so that their quotient says
// what the library costs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace bx::harness {

enum class PerfCase : std::uint8_t {
  send_latency,
  write_latency,
  read_latency,
  send_bandwidth,
  write_bandwidth,
  read_bandwidth,
  call_latency,
  fetch_bandwidth,
  push_bandwidth,
  get_bandwidth,
  put_bandwidth,
};

struct PerfCaseSpec {
  PerfCase which{};
  std::string_view name;
  std::string_view sentence;
  bool raw = true;
  bool latency = true;  // else bytes a second
};
const std::vector<PerfCaseSpec>& perf_cases();
const PerfCaseSpec& spec_of(PerfCase which);

inline constexpr std::uint64_t kPerfSizeMax = 1U << 20U;
// Requests under way at once in the cases of bandwidth.
inline constexpr std::uint32_t kPerfDepth = 32;

struct PerfPlan {
  std::vector<PerfCase> cases;
  std::vector<std::uint64_t> sizes;      // bytes, 1 to kPerfSizeMax
  std::uint64_t point_ns = 300'000'000;  // time for one point, warm-up included
};

// Samples of one point in order of size: of latency, nanoseconds one way (or, of a WRITE and a READ, from the
// post to the completion); of bandwidth, bytes a second over a ninth of the time.
struct PerfPoint {
  PerfCase which{};
  std::uint64_t size = 0;
  std::uint64_t messages = 0;  // measured
  double median = 0;
  double low = 0;   // the tenth percentile
  double high = 0;  // the ninetieth
};

// Sorts the samples. Not empty.
PerfPoint summarise(PerfCase which, std::uint64_t size, std::uint64_t messages, std::vector<double> samples);

// Collects the samples of one point as messages complete.
class PointTimer {
 public:
  static constexpr std::uint64_t kSlices = 9;
  static constexpr std::size_t kSamplesMax = 20'000;

  PointTimer(PerfCase which, std::uint64_t size, std::uint64_t point_ns);
  void start(std::uint64_t now_ns);
  // One message is complete, and took `latency_ns` (of latency cases).
  void complete(std::uint64_t now_ns, double latency_ns);
  // Warm-up and measuring are over.
  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] PerfPoint result();

 private:
  PerfCase which_;
  bool latency_;
  std::uint64_t size_;
  std::uint64_t point_ns_;
  std::uint64_t begin_ns_ = 0;  // of the measuring, after the warm-up
  std::uint64_t slice_begin_ns_ = 0;
  std::uint64_t slice_messages_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t warm_up_ = 0;  // messages still to be left out
  bool done_ = false;
  std::vector<double> samples_;
};

}  // namespace bx::harness
