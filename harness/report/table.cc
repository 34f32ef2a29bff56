// SPDX-License-Identifier: GPL-2.0-only
#include "harness/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/units.h"

namespace bx::harness {
namespace {

// What the table shows, in this order, of what was measured; the rest is in result.json.
constexpr std::array<std::string_view, 26> kRows{"flow.time.p50",
                                                 "flow.time.max",
                                                 "flow.bound",
                                                 "flow.goodput",
                                                 "fetch.time",
                                                 "bound.line_rate",
                                                 "bound.ratio",
                                                 "call.latency.mean",
                                                 "call.latency.p50",
                                                 "call.latency.p99",
                                                 "call.latency.max",
                                                 "goodput",
                                                 "workload.calls",
                                                 "pfc.pause_frames",
                                                 "pfc.paused_time",
                                                 "switch.buffer_bytes_max",
                                                 "switch.queue_bytes_max",
                                                 "switch.drops",
                                                 "ecn.marks",
                                                 "cc.cnps_tx",
                                                 "cc.cnps_rx",
                                                 "nic.retransmissions",
                                                 "nic.rnr_naks",
                                                 "cpu.clients.utilisation",
                                                 "cpu.servers.utilisation",
                                                 "link.utilisation_max"};
constexpr std::size_t kNameWidth = 24;
constexpr std::size_t kColumnWidth = 24;  // "5.481 ms (x1.00)" and a gap

std::string ratio_to(const Metric* baseline, const Metric& metric) {
  if (baseline == nullptr || baseline->value == 0 || baseline->value == metric.value) return {};
  const double ratio = metric.value / baseline->value;
  return fmt::format(" (x{:.3g})", ratio);
}

std::vector<std::vector<std::string>> rows_of(const VariantResult& baseline,
                                              std::span<const VariantResult> others) {
  std::vector<std::vector<std::string>> rows{{"", baseline.name}};
  for (const VariantResult& other : others) rows.front().push_back(other.name);
  const auto measured = [&](std::string_view name) {
    return baseline.metrics.find(name) != nullptr ||
           std::ranges::any_of(
               others, [&](const VariantResult& other) { return other.metrics.find(name) != nullptr; });
  };
  for (const std::string_view name : kRows) {
    if (!measured(name)) continue;
    const Metric* base = baseline.metrics.find(name);
    std::vector<std::string> row{std::string(name)};
    row.push_back(base == nullptr ? "-" : format_approximately(base->value, base->unit));
    for (const VariantResult& other : others) {
      const Metric* metric = other.metrics.find(name);
      row.push_back(metric == nullptr
                        ? "-"
                        : format_approximately(metric->value, metric->unit) + ratio_to(base, *metric));
    }
    rows.push_back(std::move(row));
  }
  rows.push_back({"digest", fmt::format("{:016x}", baseline.digest)});
  for (const VariantResult& other : others) rows.back().push_back(fmt::format("{:016x}", other.digest));
  return rows;
}

std::string amount(const std::optional<Metric>& metric) {
  return metric ? format_approximately(metric->value, metric->unit) : "nothing";
}

std::string measured_text(const Verdict& verdict) {
  if (!verdict.reason.empty()) return verdict.reason;
  std::string text = fmt::format("measured {}", amount(verdict.measured));
  if (verdict.reference && verdict.measured && verdict.reference->value != 0) {
    const double deviation = (verdict.measured->value / verdict.reference->value - 1) * 100;
    text += fmt::format(" against {} ({:+.2f} %)", amount(verdict.reference), deviation);
  }
  return text;
}

}  // namespace

std::string align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string render_table(std::span<const VariantResult> results, const TableStyle& style) {
  if (results.empty()) return {};
  const std::size_t fit = style.width > kNameWidth ? (style.width - kNameWidth) / kColumnWidth : 0;
  const std::size_t others_per_block = std::max<std::size_t>(2, fit) - 1;
  std::string text;
  std::span<const VariantResult> others = results.subspan(1);
  do {
    const std::size_t count = std::min(others.size(), others_per_block);
    if (!text.empty()) text += "\n";
    text += align(rows_of(results.front(), others.first(count)));
    others = others.subspan(count);
  } while (!others.empty());
  return text;
}

std::string render_verdicts(std::span<const VariantResult> results, const TableStyle& style) {
  const std::string_view yes = style.utf8 ? "\u2713" : "ok  ";
  const std::string_view no = style.utf8 ? "\u2717" : "FAIL";
  std::size_t name_width = 0;
  for (const VariantResult& result : results) name_width = std::max(name_width, result.name.size());
  std::string text;
  const auto line = [&](std::string_view mark, const VariantResult& result, std::string_view what) {
    text += fmt::format("{} {:<{}}  {}\n", mark, result.name, name_width, what);
  };
  for (const VariantResult& result : results) {
    for (const Verdict& verdict : result.verdicts) {
      line(verdict.holds ? yes : no, result,
           fmt::format("{} {}: {}", verdict.expectation.metric, verdict.expectation.condition(),
                       measured_text(verdict)));
    }
    for (const Skipped& skipped : result.skipped) {
      line(style.utf8 ? "-" : "-   ", result,
           fmt::format("{}: not judged, {}", skipped.metric, skipped.reason));
    }
    for (const Breach& breach : result.breaches) {
      line(no, result, fmt::format("breach of {}: {}", breach.promise, breach.detail));
    }
    if (result.status == RunStatus::interrupted) {
      line(style.utf8 ? "-" : "-   ", result, "interrupted: expectations are not judged");
    }
    if (result.status == RunStatus::refused) line(no, result, result.message);
  }
  return text;
}

}  // namespace bx::harness
