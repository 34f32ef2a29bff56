// SPDX-License-Identifier: GPL-2.0-only
// A result on disk: result.json and one series-<variant>.csv each. docs/results.md describes the format.
// Files appear whole or not at all: each is written under another name and renamed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/base/units.h"
#include "harness/run/backend.h"
#include "harness/run/variant_result.h"
#include "harness/scenario/scenario.h"

namespace bx::harness {

inline constexpr int kResultSchemaVersion = 1;

struct RunInfo {
  const Scenario* scenario = nullptr;
  BackendChoice backend;
  std::uint64_t seed = 0;
  std::string date;  // date_and_time() at the start
  bool interrupted = false;
};

// Makes `directory` with its parents and tries to write there, so that a long run is not lost at its end. The
// error is a sentence.
Parsed<void> prepare_directory(const std::string& directory);

// "results/runs/<scenario>/<date>-<backend>-<seed>", or with "-2", "-3" ... if that exists.
std::string default_directory(const RunInfo& info);

Parsed<void> write_results(const std::string& directory, const RunInfo& info,
                           std::span<const VariantResult> results);

// The text of result.json.
std::string result_json(const RunInfo& info, std::span<const VariantResult> results);

// The commit this program was built from, "-dirty" if files had changed; "unknown" outside git.
std::string build_commit();

Parsed<void> write_file_atomically(const std::string& path, const std::string& text);

}  // namespace bx::harness
