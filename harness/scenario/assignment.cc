// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/assignment.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"

namespace bx::harness {
namespace {

bool is_section(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(key_names(), [&](const std::string& key) { return key.starts_with(prefix); });
}

// What may follow `section` in a key: "" gives the top level.
std::vector<std::string> keys_below(std::string_view section) {
  const std::string prefix = section.empty() ? std::string() : std::string(section) + ".";
  std::vector<std::string> below;
  for (const std::string& key : key_names()) {
    if (key.starts_with(prefix)) below.push_back(key.substr(prefix.size()));
  }
  return below;
}

// The keys and the sections on the way to them: "window.enabled" and "window".
std::vector<std::string> words_below(std::string_view section) {
  std::vector<std::string> words = keys_below(section);
  for (std::size_t i = 0, keys = words.size(); i < keys; ++i) {
    for (std::size_t dot = words[i].find('.'); dot != std::string::npos; dot = words[i].find('.', dot + 1)) {
      words.push_back(words[i].substr(0, dot));
    }
  }
  return words;
}

// The right words in the wrong place: the key that ends with as much of `name` as possible.
std::string key_that_ends_like(std::string_view name) {
  while (true) {
    for (const std::string& key : key_names()) {
      if (key.ends_with("." + std::string(name))) return key;
    }
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) return {};
    name.remove_prefix(dot + 1);
  }
}

// "workload.1" in a variant: the second [[workload]].
std::optional<std::pair<std::string, std::size_t>> item_of(const std::string& name) {
  for (const std::string section : {"workload", "fault"}) {
    if (!name.starts_with(section + ".")) continue;
    const Parsed<std::uint64_t> index = parse_count(std::string_view(name).substr(section.size() + 1));
    if (index) return std::pair{section, *index};
  }
  return std::nullopt;
}

}  // namespace

void apply(const Assignment& assignment, Settings& settings) {
  const KeySpec& key = *assignment.key;
  settings.set_by[key.name] = assignment.by;
  if (key.of_settings()) {
    key.set(settings, assignment.value);
    return;
  }
  for (std::size_t i = 0; key.of_fault() && i < settings.faults.size(); ++i) {
    if (assignment.index && *assignment.index != i) continue;
    key.set_fault(settings.faults[i], assignment.value);
    settings.faults[i].given[key.last_word()] = assignment.by.place;
  }
  for (std::size_t i = 0; key.of_workload() && i < settings.workloads.size(); ++i) {
    const bool meant = !assignment.index || *assignment.index == i;
    if (meant && key.is_for(settings.workloads[i].kind)) {
      key.set_workload(settings.workloads[i], assignment.value);
    }
  }
}

std::string remedy_for_unknown_key(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  // The nearest key below the longest section that exists.
  std::string_view section = dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
  while (!section.empty() && !is_section(section)) {
    const std::size_t up = section.rfind('.');
    section = up == std::string_view::npos ? std::string_view() : section.substr(0, up);
  }
  const std::string_view rest = section.empty() ? name : name.substr(section.size() + 1);
  if (const auto guess = nearest(rest, words_below(section))) {
    return fmt::format("; did you mean '{}{}{}'?", section, section.empty() ? "" : ".", *guess);
  }
  if (const std::string key = key_that_ends_like(name); !key.empty()) {
    return fmt::format("; did you mean '{}'?", key);
  }
  if (section.empty()) return "; docs/scenarios.md lists the keys";
  return fmt::format("; the keys of '{}' are: {}", section, join(keys_below(section)));
}

void AssignmentReader::read_table(const Value& table, const std::string& prefix,
                                  std::optional<std::size_t> index) {
  for (const Field& field : table.fields) {
    read_field(field, prefix.empty() ? field.key : prefix + "." + field.key, index);
  }
}

void AssignmentReader::read_field(const Field& field, const std::string& name,
                                  std::optional<std::size_t> index) {
  const KeySpec* key = find_key(name);
  if (const auto item = item_of(name); key == nullptr && item && !index) {
    if (field.value.kind == Value::Kind::table) return read_table(field.value, item->first, item->second);
  }
  if (key == nullptr) {
    if (!is_section(name)) return unknown(field, name);
    if (field.value.kind == Value::Kind::table) return read_table(field.value, name, index);
    return diagnostics_.error(source_, field.place,
                              fmt::format("'{}' = {} is not a value but a table; its keys are: {}", name,
                                          field.value.shown(), join(keys_below(name))));
  }
  Parsed<Converted> value = convert(*key, field.value);
  const Place place = field.value.place.line != 0 ? field.value.place : field.place;
  if (!value) {
    rejected_ = true;
    return diagnostics_.error(source_, place, value.error());
  }
  assignments_.push_back({key, std::move(*value), {origin_, source_, place}, index});
}

void AssignmentReader::unknown(const Field& field, const std::string& name) {
  diagnostics_.error(source_, field.place,
                     fmt::format("unknown key '{}' = {}{}", printable(name), field.value.shown(),
                                 remedy_for_unknown_key(name)));
}

}  // namespace bx::harness
