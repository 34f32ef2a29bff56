// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/key_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

// Knobs that only some settings of others give an effect. The library itself takes any of them at any time.
void add_conditions(KeySpec& key) {
  // Flows go without the library, over paths as it would make them.
  if (!key.name.starts_with("library.path.")) key.needs.push_back(not_with("workload.kind", {"flows"}));
  if (key.name == "library.window.per_peer" || key.name == "library.window.receiver") {
    key.needs.push_back(only_with("library.window.enabled", {"true"}));
  }
  if (key.name.starts_with("library.window.adaptive_") || key.name == "library.window.target_delay") {
    key.needs.push_back(only_with("library.window.mode", {"adaptive"}));
  }
  if (key.name == "library.window.share_min") {
    key.needs.push_back(only_with("library.window.division", {"peers"}));
  }
  if (key.name == "library.credits.pool" || key.name == "library.credits.floor") {
    key.needs.push_back(only_with("library.credits.mode", {"shared"}));
  }
  if (key.name == "library.credits.lend_percent") {
    key.needs.push_back(not_with("library.credits.spare_slots", {"0"}));
  }
}

void add_library_keys(std::vector<KeySpec>& keys) {
  for (const KnobSpec& knob : knobs()) {
    KeyKind kind = KeyKind::count;
    if (knob.unit == Unit::bytes) kind = KeyKind::bytes;
    if (knob.unit == Unit::nanoseconds) kind = KeyKind::duration;
    if (knob.unit == Unit::flag) kind = KeyKind::flag;
    if (knob.unit == Unit::choice) kind = KeyKind::choice;
    KeySpec key{"library." + std::string(knob.name), kind, std::string(knob.sentence), knob.minimum,
                knob.maximum};
    for (const std::string_view choice : knob.choices) key.choices.emplace_back(choice);
    key.set = [member = knob.member](Settings& s, const Converted& value) {
      s.library.*member = value.number;
    };
    key.get = [member = knob.member, kind, choices = key.choices](const Settings& s) {
      const std::uint64_t number = s.library.*member;
      return kind == KeyKind::choice ? choices.at(number) : format_number(kind, number);
    };
    add_conditions(key);
    keys.push_back(std::move(key));
  }
}

std::vector<KeySpec> build_keys() {
  std::vector<KeySpec> keys;
  add_fabric_keys(keys);
  add_nic_keys(keys);
  add_workload_keys(keys);
  add_fault_keys(keys);
  add_library_keys(keys);
  return keys;
}

std::string_view kind_name(KeyKind kind) {
  switch (kind) {
    case KeyKind::flag:
      return "true or false";
    case KeyKind::count:
      return "whole number";
    case KeyKind::real:
      return "number";
    case KeyKind::power_of_two:
      return "power of two, as 0.125 or '1/8', from 1/128 to 16";
    case KeyKind::duration:
      return "duration";
    case KeyKind::bytes:
      return "bytes";
    case KeyKind::rate:
      return "rate";
    case KeyKind::hosts:
      return "hosts, as 0, '1..64' or '0,3..5'";
    case KeyKind::sizes:
      return "size, range or list of sizes";
    case KeyKind::choice:
      return "one of";
    case KeyKind::numbers:
      return "list or table of whole numbers";
    case KeyKind::members:
      return "list of whole numbers";
    case KeyKind::text:
      return "text";
  }
  return "";
}

}  // namespace

std::string format_number(KeyKind kind, std::uint64_t number) {
  switch (kind) {
    case KeyKind::flag:
      return number == 0 ? "false" : "true";
    case KeyKind::duration:
      return format_duration_ns(number);
    case KeyKind::bytes:
      return format_bytes(number);
    case KeyKind::rate:
      return format_rate_bps(number);
    case KeyKind::members: {
      std::vector<int> members;
      for (int i = 0; i < 64; ++i) {
        if (((number >> static_cast<unsigned>(i)) & 1U) != 0) members.push_back(i);
      }
      return fmt::format("[{}]", fmt::join(members, ", "));
    }
    default:
      return fmt::format("{}", number);
  }
}

std::string format_numbers(const std::vector<std::uint64_t>& numbers,
                           const std::vector<std::uint64_t>& standard) {
  constexpr std::size_t kListMax = 8;
  if (numbers.size() <= kListMax) return fmt::format("[{}]", fmt::join(numbers, ", "));
  std::vector<std::string> other;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != standard.at(i)) other.push_back(fmt::format("{} = {}", i, numbers[i]));
  }
  return other.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(other, ", "));
}

bool Condition::holds(const Settings& settings) const {
  const KeySpec& other = *find_key(key);
  const auto fits = [&](const std::string& value) {
    return (std::ranges::count(values, value) != 0) == (sense == Sense::one_of);
  };
  if (other.of_settings()) return fits(other.get(settings));
  if (other.of_fault()) {
    return std::ranges::any_of(settings.faults, [&](const FaultEntry& fault) {
      return fault.enabled && fits(other.get_fault(fault));
    });
  }
  return std::ranges::any_of(
      settings.workloads, [&](const WorkloadSpec& workload) { return fits(other.get_workload(workload)); });
}

std::string Condition::shown() const {
  return fmt::format("{} {} {}", key, sense == Sense::one_of ? "=" : "other than", fmt::join(values, " or "));
}

std::string KeySpec::default_text() const {
  if (required) return {};
  if (of_fault()) return get_fault(FaultEntry{});
  return of_workload() ? get_workload(WorkloadSpec{}) : get(Settings{});
}

std::string KeySpec::allowed() const {
  switch (kind) {
    case KeyKind::flag:
    case KeyKind::power_of_two:
    case KeyKind::hosts:
    case KeyKind::text:
      return std::string(kind_name(kind));
    case KeyKind::real:
      return fmt::format("number, 0 to {}{}", real_maximum, zero_is_auto ? ", or auto" : "");
    case KeyKind::choice:
      return fmt::format("one of: {}", fmt::join(choices, ", "));
    case KeyKind::count:
      return fmt::format("whole number, {} to {}{}", minimum, maximum, zero_is_auto ? ", or auto" : "");
    case KeyKind::numbers:
      return fmt::format("list of {} whole numbers, {} to {}, or a table of them by index as {{ 3 = {} }}",
                         numbers.size(), minimum, maximum, maximum);
    case KeyKind::members:
      return fmt::format("list of different whole numbers, {} to {}", minimum, maximum);
    case KeyKind::sizes:
      return fmt::format("{}, {} to {}", kind_name(kind), format_bytes(minimum), format_bytes(maximum));
    case KeyKind::duration:
    case KeyKind::bytes:
    case KeyKind::rate:
      break;
  }
  return fmt::format("{}, {} to {}{}", kind_name(kind), format_number(kind, minimum),
                     format_number(kind, maximum), zero_is_auto ? ", or auto" : "");
}

const std::vector<KeySpec>& scenario_keys() {
  static const std::vector<KeySpec> keys = build_keys();
  return keys;
}

const KeySpec* find_key(std::string_view name) {
  const auto key = std::ranges::find(scenario_keys(), name, &KeySpec::name);
  return key == scenario_keys().end() ? nullptr : &*key;
}

const std::vector<std::string>& key_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KeySpec& key : scenario_keys()) all.push_back(key.name);
    return all;
  }();
  return names;
}

}  // namespace bx::harness
