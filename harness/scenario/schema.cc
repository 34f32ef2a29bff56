// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/scenario/expectation.h"
#include "harness/scenario/fault_spec.h"
#include "harness/scenario/key_table.h"

namespace bx::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBytesPattern = "^[0-9]+(\\.[0-9]+)? ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$";
constexpr std::string_view kDurationPattern = "^[0-9]+(\\.[0-9]+)? ?(ns|us|ms|s)$";
constexpr std::string_view kRatePattern = "^[0-9]+(\\.[0-9]+)? ?(bps|kbps|Mbps|Gbps|Tbps)$";
constexpr std::string_view kHostsPattern = "^[0-9]+(\\.\\.[0-9]+)?( ?, ?[0-9]+(\\.\\.[0-9]+)?)*$";
constexpr std::string_view kSizesPattern =
    "^((uniform |log-uniform )?[0-9]+(\\.[0-9]+)? ?[kKMGT]?i?B\\.\\.)?[0-9]+(\\.[0-9]+)? ?[kKMGT]?i?B$";

Json text(std::string_view pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}
Json whole(std::uint64_t low, std::uint64_t high) {
  return {{"type", "integer"}, {"minimum", low}, {"maximum", high}};
}
Json any_of(std::initializer_list<Json> forms) {
  return {{"anyOf", Json(forms)}};
}

Json object(Json properties, Json required = Json::array()) {
  Json schema{{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Json form_of(const KeySpec& key) {
  const Json size = any_of({text(kBytesPattern), whole(key.minimum, key.maximum)});
  switch (key.kind) {
    case KeyKind::flag:
      return {{"type", "boolean"}};
    case KeyKind::count:
      return whole(key.minimum, key.maximum);
    case KeyKind::real:
      return {{"type", "number"}, {"minimum", 0}, {"maximum", key.real_maximum}};
    case KeyKind::power_of_two:
      return any_of({{{"type", "number"}}, text("^1/[0-9]+$")});
    case KeyKind::duration:
      return text(kDurationPattern);
    case KeyKind::bytes:
      return size;
    case KeyKind::rate:
      return text(kRatePattern);
    case KeyKind::hosts:
      return any_of({whole(0, kHostNumberMax), text(kHostsPattern)});
    case KeyKind::choice:
      return {{"enum", key.choices}};
    case KeyKind::text:
      return {{"type", "string"}};
    case KeyKind::numbers: {
      const Json item = whole(key.minimum, key.maximum);
      const std::size_t count = key.numbers.size();
      Json by_index = Json::object();
      for (std::size_t i = 0; i < count; ++i) by_index[std::to_string(i)] = item;
      return any_of(
          {{{"type", "array"}, {"minItems", count}, {"maxItems", count}, {"items", item}}, object(by_index)});
    }
    case KeyKind::members:
      return {{"type", "array"}, {"uniqueItems", true}, {"items", whole(key.minimum, key.maximum)}};
    case KeyKind::sizes:
      break;
  }
  const Json weighted = object({{"size", size}, {"weight", whole(1, 1'000'000)}}, {"size"});
  return any_of({text(kSizesPattern),
                 whole(key.minimum, key.maximum),
                 {{"type", "array"}, {"minItems", 1}, {"items", any_of({size, weighted})}}});
}

Json schema_of(const KeySpec& key) {
  Json schema{{"description", key.sentence}};
  Json form = form_of(key);
  if (key.zero_is_auto) form = any_of({form, {{"const", "auto"}}});
  schema.update(form);
  if (!key.required) schema["default"] = key.default_text();
  return schema;
}

// Puts the schema of "a.b.c" into the properties of nested objects.
void insert(Json& properties, std::string_view name, const Json& schema) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) {
    properties[std::string(name)] = schema;
    return;
  }
  Json& section = properties[std::string(name.substr(0, dot))];
  if (section.is_null()) section = object(Json::object());
  insert(section["properties"], name.substr(dot + 1), schema);
}

// Of "workload" or "fault".
Json item_schema(std::string_view section, bool whole_table) {
  Json properties = Json::object();
  Json required = Json::array();
  Json of_calls = Json::array();
  Json of_flows = Json::array();
  for (const KeySpec& key : scenario_keys()) {
    if (key.of_settings() || !key.name.starts_with(std::string(section) + ".")) continue;
    const std::string name = key.last_word();
    properties[name] = schema_of(key);
    if (!key.required || !whole_table) continue;
    if (key.use == KeyUse::every) required.push_back(name);
    if (key.use == KeyUse::calls) of_calls.push_back(name);
    if (key.use == KeyUse::flows) of_flows.push_back(name);
  }
  Json schema = object(properties, required);
  if (!whole_table) return schema;
  schema["if"] = {{"properties", {{"kind", {{"const", "flows"}}}}}};
  schema["then"] = {{"required", of_flows}};
  schema["else"] = {{"required", of_calls}};
  return schema;
}

// In a variant "workload.answer" is meant for every one, "workload.0.answer" for the first.
Json with_items_by_index(Json schema) {
  const Json item = schema;
  schema["patternProperties"] = {{"^[0-9]+$", item}};
  return schema;
}

Json expectation_schema() {
  const Json names = any_of({{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}});
  const Json condition = any_of({{{"type", "number"}}, {{"type", "string"}}});
  Json schema = object({{"metric", {{"type", "string"}}},
                        {"equals", condition},
                        {"at_most", condition},
                        {"at_least", condition},
                        {"within", condition},
                        {"of", {{"type", "string"}}},
                        {"of_variant", {{"type", "string"}}},
                        {"backends", names},
                        {"variant", names}},
                       {"metric"});
  schema["oneOf"] = Json::array();
  for (const char* key : {"equals", "at_most", "at_least", "within"}) {
    schema["oneOf"].push_back({{"required", {key}}});
  }
  return schema;
}

Json compare_schema() {
  const Json names = any_of({{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}});
  const Json amount = any_of({{{"type", "number"}}, {{"type", "string"}}});
  return object({{"metric", {{"type", "string"}}},
                 {"within", amount},
                 {"or_by", amount},
                 {"over", {{"enum", {"each", "mean"}}}},
                 {"judged", {{"type", "boolean"}}},
                 {"variant", names}},
                {"metric"});
}

}  // namespace

std::string scenario_schema() {
  Json settings = Json::object();
  for (const KeySpec& key : scenario_keys()) {
    if (key.of_settings()) insert(settings, key.name, schema_of(key));
  }
  const Json name = text("^[a-z0-9_-][a-z0-9._-]{0,63}$");
  Json variant = settings;
  variant["name"] = name;
  variant["workload"] = with_items_by_index(item_schema("workload", false));
  variant["fault"] = with_items_by_index(item_schema("fault", false));
  Json properties{{"name", name}, {"title", {{"type", "string"}}}};
  properties.update(settings);
  properties["workload"] = {{"type", "array"}, {"minItems", 1}, {"items", item_schema("workload", true)}};
  properties["fault"] = {{"type", "array"}, {"items", item_schema("fault", true)}};
  properties["expect"] = {{"type", "array"}, {"items", expectation_schema()}};
  properties["compare"] = {{"type", "array"}, {"items", compare_schema()}};
  properties["variant"] = {{"type", "array"}, {"items", object(variant, {"name"})}};
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "ByteExpress scenario"},
              {"description", "Generated by `bx show --schema`; see docs/scenarios.md."}};
  schema.update(object(properties, {"name", "workload"}));
  return schema.dump(2) + "\n";
}

namespace {

// Knobs of the library are the same for anybody who uses it.
std::string shown_needs(const KeySpec& key) {
  if (key.needs.empty() || key.name.starts_with("library.")) return {};
  std::vector<std::string> conditions;
  for (const Condition& condition : key.needs) conditions.push_back(condition.shown());
  return fmt::format(" Only with {}.", fmt::join(conditions, " and "));
}

}  // namespace

std::string key_documentation() {
  std::string text = "| key | allowed | default | meaning |\n|---|---|---|---|\n";
  for (const KeySpec& key : scenario_keys()) {
    const std::string standard = key.default_text();
    text += fmt::format("| `{}` | {} | {} | {}{} |\n", key.name, key.allowed(),
                        key.required ? "required" : "`" + standard + "`", key.sentence, shown_needs(key));
  }
  text += "\n## Kinds of fault\n\n" + fault_documentation();
  return text;
}

}  // namespace bx::harness
