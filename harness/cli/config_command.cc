// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "harness/report/table.h"

namespace bx::harness {
namespace {

using Json = nlohmann::ordered_json;

std::string_view unit_of(const KnobSpec& knob) {
  switch (knob.unit) {
    case Unit::count:
      return "count";
    case Unit::bytes:
      return "bytes";
    case Unit::nanoseconds:
      return "ns";
    case Unit::flag:
      return "flag";
    case Unit::choice:
      return "choice";
  }
  return "";
}

// Words broken into lines of at most `width`, each after the first indented.
std::string wrap(std::string_view text, std::size_t width, std::string_view indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column != 0 && column + 1 + end > width) {
      out += "\n" + std::string(indent);
      column = 0;
    } else if (column != 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void print_text(const Settings& settings) {
  std::vector<std::vector<std::string>> rows{{"knob", "value", "set by", "default", "allowed"}};
  for (const KnobSpec& knob : knobs()) {
    const std::string name = "library." + std::string(knob.name);
    const KeySpec& key = *find_key(name);
    rows.push_back({std::string(knob.name), key.get(settings), std::string(to_string(settings.origin(name))),
                    key.default_text(), key.allowed()});
  }
  const std::string table = align(rows);
  std::size_t at = table.find('\n') + 1;
  fmt::print("{}", table.substr(0, at));
  for (const KnobSpec& knob : knobs()) {
    const std::size_t end = table.find('\n', at) + 1;
    fmt::print("{}    {}\n", table.substr(at, end - at), wrap(knob.sentence, output_width() - 4, "    "));
    at = end;
  }
  fmt::print(
      "\nWho wins, weakest first: default, scenario file, knob file (--config, ./bx.conf), environment "
      "(BX_WINDOW_PER_PEER), --set, the variant's own keys.\n");
}

void print_json(const Settings& settings) {
  Json json = Json::array();
  for (const KnobSpec& knob : knobs()) {
    const std::string name = "library." + std::string(knob.name);
    const KeySpec& key = *find_key(name);
    Json entry{{"name", knob.name},
               {"unit", unit_of(knob)},
               {"value", key.get(settings)},
               {"number", settings.library.*knob.member},
               {"default", key.default_text()},
               {"minimum", knob.minimum},
               {"maximum", knob.maximum},
               {"origin", to_string(settings.origin(name))},
               {"environment", environment_name(knob.name)},
               {"sentence", knob.sentence}};
    if (!key.choices.empty()) entry["choices"] = key.choices;
    if (const auto set = settings.set_by.find(name); set != settings.set_by.end()) {
      entry["source"] = set->second.source;
      if (set->second.place.line != 0) entry["line"] = set->second.place.line;
    }
    json.push_back(std::move(entry));
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

int config_command(const ConfigOptions& options) {
  Diagnostics diagnostics;
  const std::vector<Assignment> overrides = read_override_options(options.overrides, diagnostics);
  Settings settings;
  if (!options.file.empty()) {
    if (auto scenario = load_scenario(options.file, overrides, diagnostics)) {
      settings = std::move(scenario->variants.front().settings);
    }
  } else {
    for (const Assignment& assignment : overrides) apply(assignment, settings);
  }
  if (!diagnostics.ok()) return usage_error(diagnostics);
  if (options.json) {
    print_json(settings);
  } else {
    print_text(settings);
  }
  return kExitGood;
}

}  // namespace bx::harness
