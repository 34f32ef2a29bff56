// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/idle_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace bx::harness {
namespace {

// One place that sets a key, in all variants where it is what counts.
struct Setting {
  const KeySpec* key;
  SetBy by;
  std::string variant;  // the first one
  std::size_t variants = 0;
  std::size_t idle_in = 0;
  std::string needs;
};

bool is_looked_at(Origin origin) {
  return origin == Origin::scenario || origin == Origin::command_line || origin == Origin::variant;
}

bool is_same(const Setting& setting, const KeySpec& key, const SetBy& by) {
  return std::tie(setting.key->name, setting.by.source, setting.by.place) ==
         std::tie(key.name, by.source, by.place);
}

// What is missing for the key to have an effect, or nothing.
std::string missing(const KeySpec& key, const Settings& settings) {
  std::vector<std::string> conditions;
  for (const Condition& condition : key.needs) {
    if (!condition.holds(settings)) conditions.push_back(condition.shown());
  }
  return fmt::format("{}", fmt::join(conditions, " and "));
}

std::string warning(const Setting& setting) {
  std::string text = setting.by.source;
  if (setting.by.place.line != 0) {
    text += fmt::format(":{}:{}", setting.by.place.line, setting.by.place.column);
  }
  return text + fmt::format(": warning: '{}' has no effect{}: it needs {}", setting.key->name,
                            setting.variants > 1 ? " in any variant"
                            : setting.by.origin == Origin::variant
                                ? fmt::format(" in variant '{}'", setting.variant)
                                : "",
                            setting.needs);
}

}  // namespace

std::vector<std::string> list_idle_keys(const std::vector<Variant>& variants) {
  std::vector<Setting> settings;
  for (const KeySpec& key : scenario_keys()) {
    if (key.needs.empty()) continue;
    for (const Variant& variant : variants) {
      const auto set = variant.settings.set_by.find(key.name);
      if (set == variant.settings.set_by.end() || !is_looked_at(set->second.origin)) continue;
      auto known = std::ranges::find_if(
          settings, [&](const Setting& other) { return is_same(other, key, set->second); });
      if (known == settings.end()) {
        known = settings.insert(settings.end(), {&key, set->second, variant.name, 0, 0, {}});
      }
      const std::string needs = missing(key, variant.settings);
      ++known->variants;
      if (needs.empty()) continue;
      ++known->idle_in;
      known->needs = needs;
    }
  }
  std::vector<std::string> warnings;
  for (const Setting& setting : settings) {
    if (setting.idle_in == setting.variants) warnings.push_back(warning(setting));
  }
  return warnings;
}

}  // namespace bx::harness
