// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/compare/comparison.h"
#include "harness/report/table.h"

namespace bx::harness {
namespace {

using Json = nlohmann::ordered_json;

std::string amount(const std::optional<Metric>& metric) {
  return metric ? format_approximately(metric->value, metric->unit) : "none";
}

std::string difference_text(const ComparedMetric& row) {
  if (!row.a || !row.b) return "-";
  if (row.a->value == row.b->value) return "0 %";
  const auto difference = row.difference();
  return difference ? fmt::format("{:+.2f} %", *difference * 100) : "from 0";
}

std::string allowed_text(const ComparedMetric& row) {
  if (row.agreement == Agreement::shown) return "-";
  std::string text = fmt::format("{:.4g} %", row.within * 100);
  if (row.or_by != 0) {
    const std::string unit = row.a ? row.a->unit : row.b ? row.b->unit : "count";
    text += " or " + format_approximately(row.or_by, unit);
  }
  return text;
}

std::string_view verdict_text(Agreement agreement) {
  switch (agreement) {
    case Agreement::agree:
      return "ok";
    case Agreement::differ:
      return "DIFFERS";
    case Agreement::missing:
      return "MISSING";
    case Agreement::shown:
      return "";
  }
  return "";
}

}  // namespace

std::string render_comparison(const Comparison& comparison) {
  std::string text =
      fmt::format("{}: A is {}, B is {}\n", comparison.scenario, comparison.backend_a, comparison.backend_b);
  std::vector<std::string> variants;
  for (const ComparedMetric& row : comparison.metrics) {
    if (std::ranges::count(variants, row.variant) == 0) variants.push_back(row.variant);
  }
  for (const std::string& variant : variants) {
    std::vector<std::vector<std::string>> rows{
        {"variant " + variant, "seed", "A", "B", "difference", "allowed", ""}};
    for (const ComparedMetric& row : comparison.metrics) {
      if (row.variant != variant) continue;
      rows.push_back({"  " + row.metric,
                      row.seed ? std::to_string(*row.seed) : fmt::format("mean of {}", row.seeds),
                      amount(row.a), amount(row.b), difference_text(row), allowed_text(row),
                      std::string(verdict_text(row.agreement))});
    }
    text += "\n" + align(rows);
  }
  text += "\n";
  for (const std::string& note : comparison.notes) text += fmt::format("note: {}\n", note);
  for (const ComparedMetric& row : comparison.metrics) {
    if (row.agreement != Agreement::missing) continue;
    const std::string_view where = row.a ? "B" : row.b ? "A" : "both";
    text += fmt::format("missing in {}: {} of variant {}\n", where, row.metric, row.variant);
  }
  for (const std::string& fault : comparison.faults) text += fmt::format("differs: {}\n", fault);
  const auto count = [&](Agreement agreement) {
    return std::ranges::count(comparison.metrics, agreement, &ComparedMetric::agreement);
  };
  text +=
      fmt::format("{}: {} agree, {} differ, {} missing\n", comparison.agrees() ? "they agree" : "they differ",
                  count(Agreement::agree), count(Agreement::differ), count(Agreement::missing));
  return text;
}

std::string comparison_json(const Comparison& comparison) {
  Json json{{"schema", 1},
            {"scenario", comparison.scenario},
            {"backend_a", comparison.backend_a},
            {"backend_b", comparison.backend_b},
            {"agrees", comparison.agrees()},
            {"faults", comparison.faults},
            {"notes", comparison.notes}};
  Json& metrics = json["metrics"] = Json::array();
  for (const ComparedMetric& row : comparison.metrics) {
    Json entry{{"variant", row.variant}};
    if (row.seed) {
      entry["seed"] = *row.seed;
    } else {
      entry["mean_of_seeds"] = row.seeds;
    }
    entry["metric"] = row.metric;
    entry["unit"] = row.a ? Json(row.a->unit) : row.b ? Json(row.b->unit) : Json(nullptr);
    entry["a"] = row.a ? Json(row.a->value) : Json(nullptr);
    entry["b"] = row.b ? Json(row.b->value) : Json(nullptr);
    const std::optional<double> difference = row.difference();
    entry["difference"] = difference ? Json(*difference) : Json(nullptr);
    entry["within"] = row.within;
    entry["or_by"] = row.or_by;
    entry["verdict"] = to_string(row.agreement);
    metrics.push_back(std::move(entry));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bx::harness
