// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/text.h"
#include "harness/scenario/host_file.h"
#include "harness/scenario/idle_keys.h"
#include "harness/scenario/topology_file.h"
#include "libbx/base/digest.h"

namespace bx::harness {
namespace {

std::string hash_of(std::string_view text) {
  Digest digest;
  digest.add(text.size());
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;  // little-endian, so that the hash is the same on any machine
    for (std::size_t i = 0; i < 8 && at + i < text.size(); ++i) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
    }
    digest.add(word);
  }
  return fmt::format("bxdigest64:{:016x}", digest.value());
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  }) && text.front() != '.';
}
constexpr std::string_view kHostFileKey = "fabric.host_file";
constexpr std::string_view kNameForm = "a name has 1 to 64 of a-z, 0-9, '-', '_' and '.'";

// The tables of `[[name]]`.
std::vector<const Value*> tables_of(const Field& field, std::string_view file, std::size_t limit,
                                    Diagnostics& diagnostics) {
  std::vector<const Value*> tables;
  if (field.value.kind != Value::Kind::list) {
    diagnostics.error(file, field.place,
                      fmt::format("'{}' = {} is not a list of tables; write [[{}]]", field.key,
                                  field.value.shown(), field.key));
    return tables;
  }
  for (const Value& item : field.value.items) {
    if (item.kind != Value::Kind::table) {
      diagnostics.error(file, item.place,
                        fmt::format("{} is not a table; write [[{}]]", item.shown(), field.key));
    } else if (tables.size() == limit) {
      diagnostics.error(file, item.place, fmt::format("more than {} [[{}]]", limit, field.key));
      break;
    } else {
      tables.push_back(&item);
    }
  }
  return tables;
}

// Reads the parts of one document in the order in which they need each other.
class ScenarioReader {
 public:
  ScenarioReader(const Value& root, const std::string& file, Diagnostics& diagnostics)
      : root_(root), file_(file), diagnostics_(diagnostics), base_(file, Origin::scenario, diagnostics) {}

  Scenario read(const std::vector<Assignment>& overrides) {
    scenario_.file = file_;
    read_top_level();
    const std::vector<Assignment> base = base_.take();
    for (std::size_t i = 0; i < base_settings_.workloads.size(); ++i) {
      require_keys(base, {"workload", i, base_settings_.workloads[i].place, *workload_tables_[i]});
    }
    for (std::size_t i = 0; i < base_settings_.faults.size(); ++i) {
      require_keys(base, {"fault", i, base_settings_.faults[i].place, *fault_tables_[i]});
    }
    for (const Assignment& assignment : base) {
      if (assignment.key->name == "workload.kind") apply(assignment, base_settings_);
    }
    for (const Assignment& assignment : read_host_file(base, overrides)) apply(assignment, base_settings_);
    for (const Assignment& assignment : base) apply_checked(assignment, base_settings_);
    for (const Assignment& assignment : overrides) apply_checked(assignment, base_settings_);
    read_variants();
    read_expectations();
    scenario_.warnings = list_idle_keys(scenario_.variants);
    return std::move(scenario_);
  }

 private:
  void wrong(Place place, std::string message) { diagnostics_.error(file_, place, std::move(message)); }

  void read_top_level() {
    for (const Field& field : root_.fields) {
      if (field.key == "name") {
        read_name(field, scenario_.name);
      } else if (field.key == "title") {
        if (field.value.kind != Value::Kind::text) {
          wrong(field.value.place,
                fmt::format("'title' = {} has the wrong type; allowed: text", field.value.shown()));
        }
        scenario_.title = field.value.text;
      } else if (field.key == "workload") {
        read_workloads(field);
      } else if (field.key == "fault") {
        read_faults(field);
      } else if (field.key == "variant") {
        variant_tables_ = tables_of(field, file_, kVariantsMax, diagnostics_);
      } else if (field.key == "expect") {
        expect_tables_ = tables_of(field, file_, kExpectationsMax, diagnostics_);
      } else if (field.key == "compare") {
        compare_tables_ = tables_of(field, file_, kCompareRulesMax, diagnostics_);
      } else {
        read_setting(field);
      }
    }
    if (root_.find("name") == nullptr)
      wrong({1, 1}, "a scenario needs a 'name', for example name = 'incast-64'");
    if (root_.find("workload") == nullptr) wrong({1, 1}, "a scenario needs at least one [[workload]]");
    if (scenario_.title.empty()) scenario_.title = scenario_.name;
  }

  // A key or section of the settings; a misspelt 'varaint' is told apart from a misspelt key.
  void read_setting(const Field& field) {
    static const std::vector<std::string> sections{"name",   "title",   "seed",    "transport",
                                                   "fabric", "library", "measure", "workload",
                                                   "fault",  "expect",  "variant", "compare"};
    if (std::ranges::count(sections, field.key) == 0) {
      if (const auto guess = nearest(field.key, sections)) {
        return wrong(field.place, fmt::format("unknown key '{}' = {}; did you mean '{}'?",
                                              printable(field.key), field.value.shown(), *guess));
      }
    }
    base_.read_field(field, field.key);
  }

  void read_name(const Field& field, std::string& out) {
    if (field.value.kind != Value::Kind::text || !is_name(field.value.text)) {
      return wrong(field.value.place,
                   fmt::format("'name' = {} is not a name; {}", field.value.shown(), kNameForm));
    }
    out = field.value.text;
  }

  void read_workloads(const Field& field) {
    for (const Value* table : tables_of(field, file_, kWorkloadsMax, diagnostics_)) {
      const std::size_t index = base_settings_.workloads.size();
      base_settings_.workloads.emplace_back().place = table->place;
      workload_tables_.push_back(table);
      base_.read_table(*table, "workload", index);
    }
  }

  // A key of [[workload]] must be one that a workload it is meant for has.
  void apply_checked(const Assignment& assignment, Settings& settings) {
    const KeySpec& key = *assignment.key;
    if (key.of_workload() && !settings.workloads.empty()) {
      const std::string fault = fault_of(assignment, settings);
      if (!fault.empty()) return diagnostics_.error(assignment.by.source, assignment.by.place, fault);
    }
    if (key.of_fault() && assignment.index && *assignment.index >= settings.faults.size()) {
      return diagnostics_.error(assignment.by.source, assignment.by.place,
                                fmt::format("there is no fault {}: the scenario has {}, counted from 0",
                                            *assignment.index, settings.faults.size()));
    }
    apply(assignment, settings);
  }

  static std::string fault_of(const Assignment& assignment, const Settings& settings) {
    const KeySpec& key = *assignment.key;
    const std::size_t count = settings.workloads.size();
    if (assignment.index && *assignment.index >= count) {
      return fmt::format("there is no workload {}: the scenario has {}, counted from 0", *assignment.index,
                         count);
    }
    const std::size_t first = assignment.index.value_or(0);
    const std::size_t end = assignment.index ? first + 1 : count;
    bool has_one = false;
    for (std::size_t i = first; i < end; ++i) {
      const std::string& kind = settings.workloads[i].kind;
      if (key.name == "workload.kind" && kind != assignment.value.text &&
          (kind == "flows" || assignment.value.text == "flows")) {
        return fmt::format("workload {} is of kind '{}' and cannot become '{}', which has other keys", i,
                           kind, assignment.value.text);
      }
      has_one = has_one || key.is_for(kind);
    }
    if (has_one) return {};
    return fmt::format(
        "'{}' is no key of a workload of kind '{}'; {}", key.name, settings.workloads[first].kind,
        key.use == KeyUse::flows ? "only flows have it" : "flows have sources, sinks, size, message");
  }

  // One [[workload]] or [[fault]].
  struct Item {
    std::string_view section;
    std::size_t index;
    Place place;
    const Value& table;
  };

  void require_keys(const std::vector<Assignment>& assignments, const Item& item) {
    for (const KeySpec& key : scenario_keys()) {
      if (!key.required || !key.name.starts_with(fmt::format("{}.", item.section))) continue;
      if (key.of_workload() && !key.is_for(kind_written(item.index))) continue;
      const bool written = item.table.find(key.last_word()) != nullptr;  // perhaps wrong, then said already
      const bool read = std::ranges::any_of(assignments, [&](const Assignment& assignment) {
        return assignment.key == &key && assignment.index == item.index;
      });
      if (!written && !read) {
        wrong(item.place, fmt::format("[[{}]] number {} needs '{}' ({})", item.section, item.index + 1,
                                      key.last_word(), key.allowed()));
      }
    }
  }

  [[nodiscard]] std::string kind_written(std::size_t index) const {
    const Value* kind = workload_tables_[index]->find("kind");
    return kind == nullptr ? std::string() : kind->text;
  }

  void read_faults(const Field& field) {
    for (const Value* table : tables_of(field, file_, kFaultsMax, diagnostics_)) {
      const std::size_t index = base_settings_.faults.size();
      base_settings_.faults.emplace_back().place = table->place;
      fault_tables_.push_back(table);
      base_.read_table(*table, "fault", index);
    }
  }

  // What the host file says that is named last. Everything else wins over it.
  std::vector<Assignment> read_host_file(const std::vector<Assignment>& base,
                                         const std::vector<Assignment>& overrides) {
    std::string name = "none";
    for (const auto* assignments : {&base, &overrides}) {
      for (const Assignment& assignment : *assignments) {
        if (assignment.key->name == kHostFileKey) name = assignment.value.text;
      }
    }
    if (name == "none") return {};
    return load_host_file(beside(file_, name), diagnostics_);
  }

  // The network that `fabric.topology_file` draws. False if there is none, which has been said: what follows
  // from it (how many hosts there are) would be misleading.
  bool read_topology(Settings& settings) {
    const bool from_file = settings.fabric.topology.shape == "file";
    const bool named = settings.topology_file != "none";
    if (from_file != named) {
      const char* key = named ? "fabric.topology_file" : "fabric.topology";
      const SetBy& by = settings.set_by.find(key)->second;
      diagnostics_.error(by.source, by.place,
                         named ? "'fabric.topology_file' is given, but 'fabric.topology' is not 'file'"
                               : "'fabric.topology' = 'file' needs 'fabric.topology_file'");
      return false;
    }
    if (!from_file) return true;
    const std::string path = beside(file_, settings.topology_file);
    auto known = topologies_.find(path);
    if (known == topologies_.end())
      known = topologies_.emplace(path, load_topology(path, diagnostics_)).first;
    if (!known->second) return false;
    settings.fabric.topology.plan = *known->second;
    const std::uint32_t hosts = known->second->hosts;
    if (const auto set = settings.set_by.find("fabric.hosts");
        set != settings.set_by.end() && settings.fabric.hosts != hosts) {
      diagnostics_.error(set->second.source, set->second.place,
                         fmt::format("'fabric.hosts' = {}, but {} has {}; leave it out",
                                     settings.fabric.hosts, path, hosts));
    }
    settings.fabric.hosts = hosts;
    return true;
  }

  void read_variants() {
    for (const Value* table : variant_tables_) read_variant(*table);
    if (scenario_.variants.empty()) {
      const bool drawn = read_topology(base_settings_);
      scenario_.variants.push_back({"base", {}, base_settings_});
      if (drawn && !base_.rejected()) check_variant(scenario_.variants.front(), file_, diagnostics_);
    }
  }

  void read_variant(const Value& table) {
    Variant variant{{}, table.place, base_settings_};
    AssignmentReader reader(file_, Origin::variant, diagnostics_);
    for (const Field& field : table.fields) {
      if (field.key == "name") {
        read_name(field, variant.name);
      } else {
        reader.read_field(field, field.key);
      }
    }
    if (table.find("name") == nullptr) wrong(table.place, "a [[variant]] needs a 'name'");
    for (const Variant& other : scenario_.variants) {
      if (other.name == variant.name && !variant.name.empty()) {
        wrong(table.place, fmt::format("there is already a variant named '{}' in line {}", variant.name,
                                       other.place.line));
      }
    }
    for (const Assignment& assignment : reader.take()) {
      const Origin before = base_settings_.origin(assignment.key->name);
      if (before > Origin::scenario) {
        scenario_.notes.push_back(
            fmt::format("variant '{}' sets {} itself, so the value from {} does not reach it", variant.name,
                        assignment.key->name, to_string(before)));
      }
      if (assignment.key->name == kHostFileKey) {
        wrong(assignment.by.place,
              "'fabric.host_file' is of the whole scenario; a variant may set fabric.cpu.* itself");
      }
      apply_checked(assignment, variant.settings);
    }
    const bool drawn = read_topology(variant.settings);
    // What follows from a value that was refused would be misleading.
    if (drawn && !base_.rejected() && !reader.rejected()) check_variant(variant, file_, diagnostics_);
    scenario_.variants.push_back(std::move(variant));
  }

  void read_expectations() {
    std::vector<std::string> names;
    for (const Variant& variant : scenario_.variants) names.push_back(variant.name);
    for (const Value* table : expect_tables_) {
      if (auto expectation = read_expectation(*table, names, file_, diagnostics_)) {
        scenario_.expectations.push_back(std::move(*expectation));
      }
    }
    for (const Value* table : compare_tables_) {
      if (auto rule = read_compare_rule(*table, names, file_, diagnostics_)) {
        scenario_.compare.push_back(std::move(*rule));
      }
    }
  }

  const Value& root_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  AssignmentReader base_;
  Settings base_settings_;
  std::map<std::string, std::optional<sim::TopologyPlan>> topologies_;  // by path; none: it cannot be read
  Scenario scenario_;
  std::vector<const Value*> workload_tables_;
  std::vector<const Value*> fault_tables_;
  std::vector<const Value*> variant_tables_;
  std::vector<const Value*> expect_tables_;
  std::vector<const Value*> compare_tables_;
};

}  // namespace

std::optional<Scenario> parse_scenario(std::string_view text, const std::string& file,
                                       const std::vector<Assignment>& overrides, Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.count();
  const Value root = parse_toml(text, file, diagnostics);
  if (diagnostics.count() != errors_before) return std::nullopt;
  Scenario scenario = ScenarioReader(root, file, diagnostics).read(overrides);
  if (diagnostics.count() != errors_before) return std::nullopt;
  scenario.hash = hash_of(text);
  return scenario;
}

std::optional<Scenario> load_scenario(const std::string& file, const std::vector<Assignment>& overrides,
                                      Diagnostics& diagnostics) {
  std::string text;
  if (!read_text_file(file, text, diagnostics)) return std::nullopt;
  return parse_scenario(text, file, overrides, diagnostics);
}

}  // namespace bx::harness
