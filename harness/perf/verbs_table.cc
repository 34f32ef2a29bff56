// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "harness/perf/verbs_perf.h"
#include "harness/report/result_file.h"
#include "harness/report/table.h"

namespace bx::harness {
namespace {

const PerfPoint* find_point(const std::vector<PerfPoint>& points, PerfCase which, std::uint64_t size) {
  const auto found = std::ranges::find_if(
      points, [&](const PerfPoint& point) { return point.which == which && point.size == size; });
  return found == points.end() ? nullptr : &*found;
}

std::string cell(const PerfPoint* point) {
  if (point == nullptr) return "-";
  const double unit = spec_of(point->which).latency ? 1e3 : 1e6;
  return fmt::format("{:.4g} ({:.3g}..{:.3g})", point->median / unit, point->low / unit, point->high / unit);
}

std::vector<std::uint64_t> sizes_of(const std::vector<PerfPoint>& points) {
  std::vector<std::uint64_t> sizes;
  for (const PerfPoint& point : points) {
    if (std::ranges::count(sizes, point.size) == 0) sizes.push_back(point.size);
  }
  std::ranges::sort(sizes);
  return sizes;
}

std::string table_of(const std::vector<PerfPoint>& points, bool latency, std::string_view title) {
  std::vector<std::vector<std::string>> rows{{std::string(title)}};
  std::vector<PerfCase> columns;
  for (const PerfCaseSpec& spec : perf_cases()) {
    if (spec.latency != latency || std::ranges::count(points, spec.which, &PerfPoint::which) == 0) continue;
    columns.push_back(spec.which);
    rows.front().emplace_back(spec.name);
  }
  if (columns.empty()) return {};
  for (const std::uint64_t size : sizes_of(points)) {
    rows.push_back({format_bytes(size)});
    for (const PerfCase which : columns) rows.back().push_back(cell(find_point(points, which, size)));
  }
  return align(rows) + "\n";
}

// The library's bandwidth by what carries it: a fetch is made of READs, a push too (the receiver pulls).
std::string shares_of(const std::vector<PerfPoint>& points) {
  constexpr std::array kPairs{std::pair{PerfCase::fetch_bandwidth, PerfCase::read_bandwidth},
                              std::pair{PerfCase::push_bandwidth, PerfCase::read_bandwidth},
                              std::pair{PerfCase::get_bandwidth, PerfCase::read_bandwidth},
                              std::pair{PerfCase::put_bandwidth, PerfCase::write_bandwidth}};
  std::vector<std::vector<std::string>> rows{
      {"share of raw verbs", "fetch/read", "push/read", "get/read", "put/write"}};
  for (const std::uint64_t size : sizes_of(points)) {
    rows.push_back({format_bytes(size)});
    for (const auto& [ours, theirs] : kPairs) {
      const PerfPoint* raw = find_point(points, theirs, size);
      const PerfPoint* point = find_point(points, ours, size);
      const bool both = point != nullptr && raw != nullptr && raw->median != 0;
      rows.back().push_back(both ? fmt::format("{:.0f} %", 100 * point->median / raw->median) : "-");
    }
  }
  const auto has = [&](bool raw) {
    return std::ranges::any_of(points,
                               [raw](const PerfPoint& point) { return spec_of(point.which).raw == raw; });
  };
  return has(true) && has(false) ? align(rows) + "\n" : std::string();
}

// Messages a second of the smallest size, in millions.
std::string rates_of(const std::vector<PerfPoint>& points) {
  const std::vector<std::uint64_t> sizes = sizes_of(points);
  std::string text;
  for (const PerfPoint& point : points) {
    if (spec_of(point.which).latency || point.size != sizes.front()) continue;
    text += fmt::format("{}: {:.4g} messages/s of {}\n", spec_of(point.which).name,
                        point.median / static_cast<double>(point.size), format_bytes(point.size));
  }
  return text;
}

}  // namespace

std::string render_points(const std::vector<PerfPoint>& points) {
  if (points.empty()) return "nothing was measured\n";
  return table_of(points, true, "us, median (10..90 %)") +
         table_of(points, false, "MB/s, median (10..90 %)") + shares_of(points) + rates_of(points);
}

std::string points_json(const std::vector<PerfPoint>& points, std::string_view fabric) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PerfPoint& point : points) {
    list.push_back({{"case", spec_of(point.which).name},
                    {"size", point.size},
                    {"unit", spec_of(point.which).latency ? "ns" : "bytes/s"},
                    {"median", point.median},
                    {"p10", point.low},
                    {"p90", point.high},
                    {"messages", point.messages}});
  }
  const nlohmann::ordered_json json{
      {"schema", 1}, {"commit", build_commit()}, {"fabric", fabric}, {"points", list}};
  return json.dump(2) + "\n";
}

}  // namespace bx::harness
