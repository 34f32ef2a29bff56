// SPDX-License-Identifier: GPL-2.0-only
// The run as it went: one row a sample. Bounded: when it is full every second row goes and the interval
// doubles, so a run that lasts longer than expected is sampled more coarsely instead of without end.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bx::harness {

struct SeriesRow {
  static constexpr std::array<std::string_view, 12> kColumns{
      "time_ns",      "switch_bytes",    "egress_queue_bytes_max", "ports_paused",
      "pause_frames", "ecn_marks",       "bytes_in_flight_in",     "bytes_in_flight_out",
      "credits",      "messages_queued", "calls_outstanding",      "goodput_bps"};
  std::array<std::uint64_t, kColumns.size()> values{};  // in the order of kColumns
};

class Series {
 public:
  static constexpr std::size_t kRowsMax = 2000;

  explicit Series(std::uint64_t interval_ns = 1000) noexcept : interval_ns_(interval_ns) {}
  [[nodiscard]] std::uint64_t interval_ns() const noexcept { return interval_ns_; }
  void add(const SeriesRow& row);
  [[nodiscard]] const std::vector<SeriesRow>& rows() const noexcept { return rows_; }
  [[nodiscard]] std::string csv() const;

 private:
  std::uint64_t interval_ns_;
  std::vector<SeriesRow> rows_;
};

}  // namespace bx::harness
