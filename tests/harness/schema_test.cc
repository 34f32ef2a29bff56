// SPDX-License-Identifier: GPL-2.0-only
// What is generated must be what is checked in.
#include "harness/scenario/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/scenario/key_table.h"

namespace bx::harness {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(BX_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(schema, scenario_schema__checked_in_copy_is_current) {
  // Not EXPECT_EQ, which would print both files.
  EXPECT_TRUE(read("docs/scenario.schema.json") == scenario_schema()) << "regenerate: scripts/docs";
}

TEST(schema, scenario_schema__has_every_key) {
  const auto schema = nlohmann::json::parse(scenario_schema());
  for (const KeySpec& key : scenario_keys()) {
    const nlohmann::json* at = &schema;
    std::stringstream parts(key.name);
    for (std::string part; std::getline(parts, part, '.');) {
      if (at->value("type", "") == "array") at = &at->at("items");
      ASSERT_TRUE(at->at("properties").contains(part)) << key.name;
      at = &at->at("properties").at(part);
    }
    EXPECT_EQ(at->at("description"), key.sentence);
  }
}

TEST(schema, key_documentation__is_in_the_manual) {
  EXPECT_TRUE(read("docs/scenarios.md").ends_with(key_documentation())) << "regenerate: scripts/docs";
}

}  // namespace
}  // namespace bx::harness
