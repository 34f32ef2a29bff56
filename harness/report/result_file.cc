// SPDX-License-Identifier: GPL-2.0-only
#include "harness/report/result_file.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness/commit.h"  // generated

namespace bx::harness {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

// What may explain a difference in speed; no name of the machine.
Json machine() {
  utsname names{};
  ::uname(&names);
  return {{"system", fmt::format("{} {} {}", names.sysname, names.release, names.machine)},
          {"cpu", cpu_model()},
          {"cores", std::thread::hardware_concurrency()},
          {"compiler", __VERSION__},
#ifdef __OPTIMIZE__
          {"optimised", true}};
#else
          {"optimised", false}};
#endif
}

Json to_json(const std::vector<CompareRule>& rules) {
  Json json = Json::array();
  for (const CompareRule& rule : rules) {
    Json entry{{"metric", rule.metric}, {"within", rule.within}};
    if (rule.or_by != 0) entry["or_by"] = {{"value", rule.or_by}, {"unit", rule.or_by_unit}};
    if (!rule.judged) entry["judged"] = false;
    if (rule.over != CompareRule::Over::each) entry["over"] = to_string(rule.over);
    if (!rule.variants.empty()) entry["variants"] = rule.variants;
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::string build_commit() {
  return BX_BUILD_COMMIT;
}

Parsed<void> write_file_atomically(const std::string& path, const std::string& text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  const auto give_up = [&](std::string_view what) -> Parsed<void> {
    const int error = errno;
    std::error_code ignored;
    fs::remove(temporary, ignored);
    return tl::unexpected(fmt::format("{}: {}: {}", path, what, std::strerror(error)));
  };
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) return give_up("cannot be written");
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return give_up("cannot be written");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("cannot be renamed into place");
  return {};
}

Parsed<void> prepare_directory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory)) {
    return tl::unexpected(
        fmt::format("{}: the directory for results cannot be made: {}; use --out DIR or --no-out", directory,
                    error ? error.message() : "it is not a directory"));
  }
  const std::string probe = directory + "/.writable";
  if (Parsed<void> written = write_file_atomically(probe, ""); !written) {
    return tl::unexpected(written.error() + "; use --out DIR or --no-out");
  }
  fs::remove(probe, error);
  return {};
}

std::string default_directory(const RunInfo& info) {
  const std::string base = fmt::format("results/runs/{}/{}-{}-{}", info.scenario->name, info.date,
                                       to_string(info.backend.kind), info.seed);
  std::string directory = base;
  for (int i = 2; fs::exists(directory); ++i) directory = fmt::format("{}-{}", base, i);
  return directory;
}

std::string result_json(const RunInfo& info, std::span<const VariantResult> results) {
  const bool good = !info.interrupted && std::ranges::all_of(results, &VariantResult::good);
  Json json{{"schema_version", kResultSchemaVersion},
            {"scenario",
             {{"name", info.scenario->name},
              {"title", info.scenario->title},
              {"file", info.scenario->file},
              {"hash", info.scenario->hash}}},
            {"commit", build_commit()},
            {"date", info.date},
            {"seed", info.seed},
            {"backend", to_string(info.backend.kind)}};
  if (info.backend.kind == BackendKind::sim) {
    json["engine"] = info.backend.engine == sim::EngineKind::fast ? "fast" : "stock";
  }
  json["machine"] = machine();
  json["interrupted"] = info.interrupted;
  json["good"] = good;
  if (!info.scenario->compare.empty()) json["compare"] = to_json(info.scenario->compare);
  Json& variants = json["variants"] = Json::array();
  for (const VariantResult& result : results) variants.push_back(to_json(result));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Parsed<void> write_results(const std::string& directory, const RunInfo& info,
                           std::span<const VariantResult> results) {
  for (const VariantResult& result : results) {
    const std::string path = fmt::format("{}/series-{}.csv", directory, result.name);
    if (Parsed<void> written = write_file_atomically(path, result.series.csv()); !written) return written;
  }
  return write_file_atomically(directory + "/result.json", result_json(info, results));
}

}  // namespace bx::harness
