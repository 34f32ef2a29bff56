// SPDX-License-Identifier: GPL-2.0-only
#include "harness/compare/loaded_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/report/result_file.h"

namespace bx::harness {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

CompareRule rule_from(const Json& json) {
  CompareRule rule;
  rule.metric = json.at("metric");
  rule.within = json.at("within");
  if (json.contains("or_by")) {
    rule.or_by = json.at("or_by").at("value");
    rule.or_by_unit = json.at("or_by").at("unit");
  }
  rule.judged = json.value("judged", true);
  rule.over = json.value("over", "each") == "mean" ? CompareRule::Over::mean : CompareRule::Over::each;
  rule.variants = json.value("variants", std::vector<std::string>{});
  return rule;
}

LoadedVariant variant_from(const Json& json) {
  LoadedVariant variant;
  variant.name = json.at("name");
  variant.status = json.at("status");
  variant.breaches = json.at("oracle").at("breaches").size();
  for (const auto& [name, metric] : json.at("metrics").items()) {
    const Json& value = metric.at("value");
    if (!value.is_null())
      variant.metrics.set(name, value.get<double>(), metric.at("unit").get<std::string>());
  }
  return variant;
}

std::string not_a_result(const std::string& path, std::string_view why) {
  return fmt::format("{}: is no result of 'bx run': {}; give a result.json or a directory with one", path,
                     why);
}

}  // namespace

Parsed<LoadedResult> parse_result(const std::string& text, const std::string& path) {
  // What comes from a file may be anything: the parser's exceptions end here.
  try {
    const Json json = Json::parse(text);
    const int version = json.at("schema_version");
    if (version != kResultSchemaVersion) {
      return tl::unexpected(
          fmt::format("{}: 'schema_version' is {}, this bx reads {}; run the scenario again", path, version,
                      kResultSchemaVersion));
    }
    LoadedResult result;
    result.path = path;
    result.scenario = json.at("scenario").at("name");
    result.hash = json.at("scenario").at("hash");
    result.backend = json.at("backend");
    result.seed = json.at("seed");
    if (json.contains("compare")) {
      for (const Json& rule : json.at("compare")) result.rules.push_back(rule_from(rule));
    }
    for (const Json& variant : json.at("variants")) result.variants.push_back(variant_from(variant));
    return result;
  } catch (const Json::exception& error) {
    return tl::unexpected(not_a_result(path, error.what()));
  }
}

Parsed<std::vector<LoadedResult>> load_results(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->path().filename() == "result.json") files.push_back(it->path().string());
      if (files.size() > kResultsMax) {
        return tl::unexpected(fmt::format("{}: has more than {} results", path, kResultsMax));
      }
    }
    if (error) return tl::unexpected(fmt::format("{}: {}", path, error.message()));
    if (files.empty()) return tl::unexpected(not_a_result(path, "there is no result.json below it"));
  } else {
    files.push_back(path);
  }
  std::vector<LoadedResult> results;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in)
      return tl::unexpected(fmt::format("{}: cannot be read; give a result.json that 'bx run' wrote", file));
    Parsed<LoadedResult> result = parse_result(text.str(), file);
    if (!result) return tl::unexpected(result.error());
    results.push_back(std::move(*result));
  }
  std::ranges::sort(results, {}, &LoadedResult::seed);
  for (std::size_t i = 1; i < results.size(); ++i) {
    const LoadedResult& a = results[i - 1];
    const LoadedResult& b = results[i];
    if (a.scenario != b.scenario) {
      return tl::unexpected(fmt::format("{}: has results of {} and of {}; give a directory of one scenario",
                                        path, a.scenario, b.scenario));
    }
    if (a.seed == b.seed) {
      return tl::unexpected(fmt::format("{}: seed {} is there twice, in {} and {}; give one of them", path,
                                        a.seed, a.path, b.path));
    }
  }
  return results;
}

}  // namespace bx::harness
