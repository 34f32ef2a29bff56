// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/variant_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace bx::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStatuses{RunStatus::completed, RunStatus::interrupted, RunStatus::refused,
                               RunStatus::crashed};
constexpr double kIntegerMax = 9007199254740992.0;  // 2^53: beyond it a double is no longer exact

// Counts are written as 3, not as 3.0.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) <= kIntegerMax) return static_cast<std::int64_t>(value);
  return value;
}

Json quantity(const Metric& metric) {
  return {{"value", number(metric.value)}, {"unit", metric.unit}};
}

Json to_json(const Verdict& verdict) {
  const Expectation& expectation = verdict.expectation;
  Json json{{"metric", expectation.metric},
            {"condition", expectation.condition()},
            {std::string(to_string(expectation.kind)), number(expectation.value)}};
  if (!expectation.value_unit.empty()) json["unit"] = expectation.value_unit;
  if (!expectation.of.empty()) json["of"] = expectation.of;
  if (!expectation.of_variant.empty()) json["of_variant"] = expectation.of_variant;
  json["measured"] = verdict.measured ? quantity(*verdict.measured) : Json(nullptr);
  if (verdict.reference) json["reference"] = quantity(*verdict.reference);
  json["holds"] = verdict.holds;
  if (!verdict.reason.empty()) json["reason"] = verdict.reason;
  return json;
}

Verdict verdict_from(const Json& json) {
  Verdict verdict;
  verdict.expectation.metric = json.at("metric");
  for (const auto kind : {Expectation::Kind::equals, Expectation::Kind::at_most, Expectation::Kind::at_least,
                          Expectation::Kind::within}) {
    const std::string key(to_string(kind));
    if (!json.contains(key)) continue;
    verdict.expectation.kind = kind;
    verdict.expectation.value = json.at(key);
  }
  verdict.expectation.value_unit = json.value("unit", "");
  verdict.expectation.of = json.value("of", "");
  verdict.expectation.of_variant = json.value("of_variant", "");
  verdict.holds = json.at("holds");
  verdict.reason = json.value("reason", "");
  const auto read = [](const std::string& name, const Json& value) {
    return Metric{name, value.at("value").is_null() ? NAN : value.at("value").get<double>(),
                  value.at("unit")};
  };
  if (!json.at("measured").is_null())
    verdict.measured = read(verdict.expectation.metric, json.at("measured"));
  if (json.contains("reference")) verdict.reference = read(verdict.expectation.of, json.at("reference"));
  return verdict;
}

Json to_json(const std::vector<KnobInForce>& knobs) {
  Json json = Json::object();
  for (const KnobInForce& knob : knobs) json[knob.name] = {{"value", knob.value}, {"origin", knob.origin}};
  return json;
}

std::vector<KnobInForce> knobs_from(const Json& json) {
  std::vector<KnobInForce> knobs;
  for (const auto& [name, knob] : json.items()) knobs.push_back({name, knob.at("value"), knob.at("origin")});
  return knobs;
}

std::uint64_t parse_digest(const std::string& text) {
  return std::stoull(text, nullptr, 16);
}

}  // namespace

std::string_view to_string(RunStatus status) noexcept {
  switch (status) {
    case RunStatus::completed:
      return "completed";
    case RunStatus::interrupted:
      return "interrupted";
    case RunStatus::refused:
      return "refused";
    case RunStatus::crashed:
      return "crashed";
  }
  return "unknown";
}

bool VariantResult::good() const {
  return status == RunStatus::completed && breaches.empty() &&
         std::ranges::all_of(verdicts, [](const Verdict& verdict) { return verdict.holds; });
}

nlohmann::ordered_json to_json(const VariantResult& result) {
  Json json{{"name", result.name},
            {"status", to_string(result.status)},
            {"digest", fmt::format("{:016x}", result.digest)},
            {"seed", result.seed},
            {"simulated_ns", result.simulated_ns},
            {"events", result.events},
            {"wall_seconds", result.wall_seconds}};
  if (!result.message.empty()) json["message"] = result.message;
  Json& metrics = json["metrics"] = Json::object();
  for (const Metric& metric : result.metrics.all()) metrics[metric.name] = quantity(metric);
  Json& expectations = json["expectations"] = Json::array();
  for (const Verdict& verdict : result.verdicts) expectations.push_back(to_json(verdict));
  Json& skipped = json["expectations_skipped"] = Json::array();
  for (const Skipped& skip : result.skipped)
    skipped.push_back({{"metric", skip.metric}, {"reason", skip.reason}});
  Json& breaches = json["oracle"]["breaches"] = Json::array();
  for (const Breach& breach : result.breaches) {
    breaches.push_back({{"promise", breach.promise}, {"detail", breach.detail}});
  }
  Json& faults = json["faults"] = Json::array();
  for (const FaultOutcome& fault : result.faults) {
    faults.push_back({{"kind", fault.kind},
                      {"target", fault.target},
                      {"at_ns", fault.at_ns},
                      {"duration_ns", fault.duration_ns},
                      {"began", fault.began},
                      {"ended", fault.ended},
                      {"hits", fault.hits}});
  }
  if (!result.hang.reason.empty()) {
    json["hang"] = {
        {"reason", result.hang.reason}, {"at_ns", result.hang.at_ns}, {"waits", result.hang.waits}};
  }
  json["settings"] = to_json(result.settings);
  json["knobs"] = to_json(result.knobs);
  json["taken_as_given"] = result.taken_as_given;
  return json;
}

std::string to_wire(const VariantResult& result) {
  Json json = to_json(result);
  json["series_interval_ns"] = result.series.interval_ns();
  Json& rows = json["series"] = Json::array();
  for (const SeriesRow& row : result.series.rows()) rows.push_back(row.values);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

VariantResult from_wire(std::string_view text) {
  const Json json = Json::parse(text);
  VariantResult result;
  result.name = json.at("name");
  for (const RunStatus status : kStatuses) {
    if (to_string(status) == json.at("status").get<std::string>()) result.status = status;
  }
  result.message = json.value("message", "");
  result.digest = parse_digest(json.at("digest"));
  result.seed = json.at("seed");
  result.simulated_ns = json.at("simulated_ns");
  result.events = json.at("events");
  result.wall_seconds = json.at("wall_seconds");
  for (const auto& [name, metric] : json.at("metrics").items()) {
    const Json& value = metric.at("value");
    result.metrics.set(name, value.is_null() ? NAN : value.get<double>(),
                       metric.at("unit").get<std::string>());
  }
  for (const Json& verdict : json.at("expectations")) result.verdicts.push_back(verdict_from(verdict));
  for (const Json& skip : json.at("expectations_skipped")) {
    result.skipped.push_back({skip.at("metric"), skip.at("reason")});
  }
  for (const Json& breach : json.at("oracle").at("breaches")) {
    result.breaches.push_back({breach.at("promise"), breach.at("detail")});
  }
  for (const Json& fault : json.at("faults")) {
    result.faults.push_back({fault.at("kind"), fault.at("target"), fault.at("at_ns"), fault.at("duration_ns"),
                             fault.at("began"), fault.at("ended"), fault.at("hits")});
  }
  if (json.contains("hang")) {
    const Json& hang = json.at("hang");
    result.hang = {hang.at("reason"), hang.at("at_ns"), hang.at("waits").get<std::vector<std::string>>()};
  }
  result.settings = knobs_from(json.at("settings"));
  result.knobs = knobs_from(json.at("knobs"));
  result.taken_as_given = json.at("taken_as_given").get<std::vector<std::string>>();
  result.series = Series(json.at("series_interval_ns"));
  for (const Json& row : json.at("series")) result.series.add({row.get<decltype(SeriesRow::values)>()});
  return result;
}

}  // namespace bx::harness
