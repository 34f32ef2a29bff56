// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/fabric_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/scenario/key_table.h"
#include "sim/provider/network_plan.h"
#include "sim/provider/topology_spec.h"

namespace bx::harness {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    std::string word(text.substr(at, end - at));
    while (word.ends_with('.')) word.pop_back();
    if (!word.empty()) words.push_back(std::move(word));
    at = std::max(end, at + 1);
  }
  return words;
}

// The provider's details begin with a field, "pfc.quanta: ", and name others: the keys of all these.
std::vector<const KeySpec*> keys_in(std::string_view detail) {
  std::vector<const KeySpec*> keys;
  const auto add = [&](const std::string& name) {
    const KeySpec* key = find_key("fabric." + name);
    if (key != nullptr && std::ranges::count(keys, key) == 0) keys.push_back(key);
  };
  const std::size_t colon = detail.find(':');
  const std::string field(colon == std::string_view::npos ? "" : detail.substr(0, colon));
  for (const std::string& word : words_of(detail)) {
    if (!field.empty()) add(field + "." + word);
    add(word);
  }
  return keys;
}

bool can_be(const sim::SimConfig& config) {
  return sim::plan_network(config).has_value();
}

// The numbers of hosts next to the one given that the shape can have.
std::string hosts_that_fit(sim::SimConfig config) {
  const std::uint32_t given = config.hosts;
  std::vector<std::string> found;
  const auto fits = [&](std::uint32_t hosts) {
    config.hosts = hosts;
    if (!sim::plan_topology(config)) return false;
    found.push_back(fmt::format("{}", hosts));
    return true;
  };
  for (std::uint32_t hosts = given - 1; hosts >= 2 && !fits(hosts);) --hosts;
  for (std::uint32_t hosts = given + 1; hosts <= sim::kHostsMax && !fits(hosts);) ++hosts;
  return found.empty() ? "" : fmt::format("; next to it, {} would do", fmt::join(found, " and "));
}

// The least buffer that has room for what is kept of it.
std::string buffer_that_fits(sim::SimConfig config) {
  constexpr std::uint64_t kMost = 1ULL << 40U;
  constexpr std::uint64_t kStep = 1024;
  std::uint64_t low = config.buffer.bytes / kStep;  // too little
  std::uint64_t high = kMost / kStep;
  const auto fits = [&](std::uint64_t kibibytes) {
    config.buffer.bytes = kibibytes * kStep;
    return can_be(config);
  };
  if (!fits(high)) return {};
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return fmt::format("; '{}' would do", format_bytes(high * kStep));
}

std::string value_that_fits(const KeySpec& key, const sim::SimConfig& config) {
  if (key.name == "fabric.hosts" && config.topology.shape != "file") return hosts_that_fit(config);
  if (key.name == "fabric.buffer") return buffer_that_fits(config);
  return {};
}

// Who wrote something, before what is as it always was: one of the keys, or else one that follows the first
// of them in its section (a cost of a NIC without a profile).
const KeySpec* blame(const std::vector<const KeySpec*>& keys, const Settings& settings) {
  const auto is_set = [&](const KeySpec* key) { return settings.set_by.contains(key->name); };
  if (const auto first = std::ranges::find_if(keys, is_set); first != keys.end()) return *first;
  const std::string_view name = keys.front()->name;
  const std::string_view section = name.substr(0, name.rfind('.') + 1);
  bool reached = false;
  for (const KeySpec& key : scenario_keys()) {
    reached = reached || &key == keys.front();
    if (reached && key.name.starts_with(section) && is_set(&key)) return &key;
  }
  return keys.front();
}

}  // namespace

std::optional<FabricFault> find_fabric_fault(const Settings& settings) {
  sim::SimConfig config = settings.fabric;
  config.faults.clear();
  const auto plan = sim::plan_network(config);
  if (plan) return std::nullopt;
  const std::string_view detail = plan.error().detail;
  std::vector<const KeySpec*> keys = keys_in(detail);
  if (keys.empty()) keys.push_back(find_key("fabric.topology"));
  const KeySpec* blamed = blame(keys, settings);
  std::string others;
  for (const KeySpec* key : keys) {
    if (key == blamed) continue;
    others += fmt::format("{}'{}' = {}", others.empty() ? " with " : ", ", key->name, key->get(settings));
  }
  std::string fitting = value_that_fits(*keys.front(), config);
  return FabricFault{blamed->name, fmt::format("'{}' = {}{}: {}{}", blamed->name, blamed->get(settings),
                                               others, detail, fitting)};
}

}  // namespace bx::harness
