// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "harness/cli/commands.h"
#include "harness/measure/closed_form.h"
#include "harness/report/table.h"
#include "harness/workload/flows.h"
#include "harness/workload/plan.h"

namespace bx::harness {
namespace {

namespace fs = std::filesystem;

std::string size_of(const Settings& settings) {
  const Plan plan = make_plan(settings);
  const LinkModel link = link_model(settings);
  std::uint64_t packets = 0;
  for (const ClientPlan& client : plan.clients) {
    for (const CallPlan& call : client.calls) {
      packets += std::max<std::uint64_t>(1, (call.answer_bytes + link.mtu - 1) / link.mtu);
    }
  }
  const std::vector<FlowSpec> flows = plan_flows(settings);
  std::uint64_t bytes = plan.answer_bytes;
  for (const FlowSpec& flow : flows) {
    bytes += flow.size;
    packets += (flow.size + link.mtu - 1) / link.mtu;
  }
  return fmt::format("{} calls, {} flows, {}, {} packets", plan.calls, flows.size(),
                     format_approximately(static_cast<double>(bytes), "bytes"), packets);
}

}  // namespace

int list_command(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file() && it->path().extension() == ".toml") files.push_back(it->path().string());
  }
  if (error) {
    fmt::print(stderr, "bx: error: {}: {}\n", directory, error.message());
    return kExitUsage;
  }
  std::ranges::sort(files);

  Diagnostics diagnostics;
  for (const std::string& file : files) {
    const auto scenario = load_scenario(file, {}, diagnostics);
    if (!scenario) continue;
    const Settings& settings = scenario->variants.front().settings;
    std::vector<std::string> names;
    for (const Variant& variant : scenario->variants) names.push_back(variant.name);
    fmt::print("{}\n    {}\n    {} hosts; each of {} variants ({}): {}\n", file, scenario->title,
               settings.fabric.hosts, names.size(), fmt::join(names, ", "), size_of(settings));
  }
  if (files.empty()) fmt::print("no scenario (*.toml) in {}\n", directory);
  return diagnostics.ok() ? kExitGood : usage_error(diagnostics);
}

}  // namespace bx::harness
