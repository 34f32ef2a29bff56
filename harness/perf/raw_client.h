// SPDX-License-Identifier: GPL-2.0-only
// The measuring end of raw verbs: goes through the points of a plan one after the other.
#pragma once

#include <optional>

#include "harness/perf/raw_end.h"

namespace bx::harness {

class RawClient final : public RawEnd, private fabric::Timer {
 public:
  // Only the raw cases of the plan are measured.
  RawClient(fabric::Host& host, std::string peer, const PerfPlan& plan);
  // False if it cannot begin; see error(). Tries to reach the server until `patience` has passed. The reactor
  // is stopped when all is measured or something went wrong.
  bool start(Duration patience);
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  [[nodiscard]] const std::vector<PerfPoint>& points() const noexcept { return points_; }

 private:
  struct Wanted {
    PerfCase which{};
    std::uint32_t size = 0;
  };

  void dial();
  void on_timer(Instant now) noexcept override;
  void on_stream(fabric::Stream& stream) noexcept override;
  void on_message(const RawMessage& message) override;
  void on_completion(const fabric::Completion& completion) override;
  void on_closed() override;
  void next_point();
  void begin_point();
  // As many requests as may be under way.
  void post_more();
  [[nodiscard]] const Wanted& wanted() const { return wanted_[at_]; }

  std::string peer_name_;
  std::vector<Wanted> wanted_;
  std::uint64_t point_ns_;
  std::size_t at_ = 0;
  std::optional<PointTimer> timer_;
  std::vector<PerfPoint> points_;
  Instant give_up_{};
  std::uint64_t posted_at_ns_ = 0;  // of the one request of a latency case
  std::uint32_t outstanding_ = 0;   // send requests
  bool greeted_ = false;
  bool waiting_ = false;  // for the answer of a SEND to and fro
  bool finished_ = false;
};

}  // namespace bx::harness
