// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

#include "harness/base/text.h"
#include "harness/base/units.h"

namespace bx::harness {
namespace {

namespace po = boost::program_options;

const std::vector<std::string>& knob_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KnobSpec& knob : knobs()) all.emplace_back(knob.name);
    return all;
  }();
  return names;
}

po::options_description knob_options() {
  po::options_description options;
  for (const std::string& name : knob_names()) options.add_options()(name.c_str(), po::value<std::string>());
  return options;
}

std::string trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// Boost reads the file but does not say where a key stands.
Place find_in_knob_file(const std::string& text, std::string_view knob) {
  std::istringstream lines(text);
  std::string section;
  std::string line;
  for (std::uint32_t number = 1; std::getline(lines, line); ++number) {
    const std::string content = trimmed(line.substr(0, line.find('#')));
    if (content.starts_with('[') && content.ends_with(']')) {
      section = content.substr(1, content.size() - 2) + ".";
    } else if (section + trimmed(content.substr(0, content.find('='))) == knob) {
      return {number, static_cast<std::uint32_t>(1 + line.find_first_not_of(" \t"))};
    }
  }
  return {};
}

void add_knob(const std::string& knob, const std::string& text, const SetBy& by, Diagnostics& diagnostics,
              std::vector<Assignment>& out) {
  const KeySpec* key = find_key("library." + knob);
  const Parsed<Converted> value = convert(*key, parse_loose_value(trimmed(text)));
  if (!value) return diagnostics.error(by.source, by.place, value.error());
  out.push_back({key, *value, by, std::nullopt});
}

void read_knob_file(const std::string& file, Diagnostics& diagnostics, std::vector<Assignment>& out) {
  std::string text;
  if (!read_text_file(file, text, diagnostics)) return;
  try {
    std::istringstream stream(text);
    std::vector<std::string> seen;
    const po::options_description options = knob_options();
    for (const po::option& option : po::parse_config_file(stream, options, true).options) {
      const std::string& knob = option.string_key;
      const Place place = find_in_knob_file(text, knob);
      if (std::ranges::count(knob_names(), knob) == 0) {
        diagnostics.error(file, place,
                          fmt::format("unknown knob '{}'{}; 'bx config' lists the knobs", printable(knob),
                                      did_you_mean(knob, knob_names())));
      } else if (std::ranges::count(seen, knob) != 0) {
        diagnostics.error(file, place, fmt::format("knob '{}' is set twice", knob));
      } else {
        seen.push_back(knob);
        add_knob(knob, option.value.empty() ? "" : option.value.front(), {Origin::knob_file, file, place},
                 diagnostics, out);
      }
    }
  } catch (const po::error& error) {
    diagnostics.error(file, {}, fmt::format("not a knob file: {}", printable(error.what(), 200)));
  }
}

void read_environment(Diagnostics& diagnostics, std::vector<std::string>& warnings,
                      std::vector<Assignment>& out) {
  // Boost asks for the option's name of each variable; empty means "not mine".
  const auto knob_of = [&](const std::string& variable) -> std::string {
    if (!variable.starts_with("BX_")) return {};
    const auto knob = std::ranges::find(knob_names(), variable, environment_name);
    if (knob != knob_names().end()) return *knob;
    std::vector<std::string> names;
    for (const std::string& name : knob_names()) names.push_back(environment_name(name));
    warnings.push_back(fmt::format("the environment variable {} is no knob and is ignored{}",
                                   printable(variable), did_you_mean(variable, names)));
    return {};
  };
  const po::options_description options = knob_options();
  for (const po::option& option : po::parse_environment(options, knob_of).options) {
    add_knob(option.string_key, option.value.front(),
             {Origin::environment, environment_name(option.string_key), {}}, diagnostics, out);
  }
}

// "workload.0.size" is the key "workload.size" of the first workload; "workload.size" is that of every one.
// Faults are meant likewise.
std::pair<std::string, std::optional<std::size_t>> split_item(const std::string& key) {
  for (const std::string_view section : {"workload.", "fault."}) {
    if (!key.starts_with(section)) continue;
    const std::size_t dot = key.find('.', section.size());
    if (dot == std::string::npos) continue;
    const Parsed<std::uint64_t> index =
        parse_count(std::string_view(key).substr(0, dot).substr(section.size()));
    if (index) return {std::string(section) + key.substr(dot + 1), *index};
  }
  return {key, std::nullopt};
}

void read_set(const std::string& text, Diagnostics& diagnostics, std::vector<Assignment>& out) {
  const std::size_t equals = text.find('=');
  const std::string source = fmt::format("--set {}", printable(text));
  if (equals == std::string::npos || equals == 0) {
    return diagnostics.error(source, {},
                             "is not of the form key=value, for example --set fabric.rate=25Gbps");
  }
  AssignmentReader reader(source, Origin::command_line, diagnostics);
  const std::string key = trimmed(std::string_view(text).substr(0, equals));
  const auto [name, item] = split_item(key);
  reader.read_field({name, {}, parse_loose_value(trimmed(std::string_view(text).substr(equals + 1)))}, name,
                    item);
  std::ranges::move(reader.take(), std::back_inserter(out));
}

}  // namespace

std::string environment_name(std::string_view knob) {
  std::string name = "BX_";
  for (const char c : knob)
    name += c == '.' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

std::vector<Assignment> read_overrides(const OverrideSources& sources, Diagnostics& diagnostics,
                                       std::vector<std::string>& warnings) {
  std::vector<Assignment> assignments;
  if (!sources.knob_file.empty()) read_knob_file(sources.knob_file, diagnostics, assignments);
  if (sources.environment) read_environment(diagnostics, warnings, assignments);
  for (const std::string& set : sources.sets) read_set(set, diagnostics, assignments);
  if (sources.seed) {
    Converted seed;
    seed.number = *sources.seed;
    assignments.push_back({find_key("seed"), seed, {Origin::command_line, "--seed", {}}, std::nullopt});
  }
  return assignments;
}

}  // namespace bx::harness
