// SPDX-License-Identifier: GPL-2.0-only
// What is generated from the key table for people and editors: docs/scenario.schema.json and the tables of
// docs/scenarios.md and of `bx config`.
#pragma once

#include <string>

namespace bx::harness {

// JSON Schema (draft 2020-12) of a scenario file.
std::string scenario_schema();
// The tables of keys and of kinds of fault in Markdown.
std::string key_documentation();

}  // namespace bx::harness
