// SPDX-License-Identifier: GPL-2.0-only
// Everything that running one variant with one seed gave. It crosses a process boundary as JSON and ends in
// result.json.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/metric_set.h"
#include "harness/measure/oracle.h"
#include "harness/measure/series.h"
#include "harness/run/hang_watch.h"
#include "harness/scenario/expectation.h"

namespace bx::harness {

enum class RunStatus : std::uint8_t {
  completed,    // to its end, well or not
  interrupted,  // by Ctrl-C; what was measured so far is kept
  refused,      // the scenario asks for something that cannot be: exit status 2
  crashed,      // the process of the run died
};
std::string_view to_string(RunStatus status) noexcept;

// A key of the scenario or a knob of the library, its value and who set it.
struct KnobInForce {
  std::string name;
  std::string value;
  std::string origin;
};

// An expectation that was not judged, and why.
struct Skipped {
  std::string metric;
  std::string reason;
};

// A fault of the scenario as it went.
struct FaultOutcome {
  std::string kind;
  std::string target;
  std::uint64_t at_ns = 0;  // from the beginning of the measured part
  std::uint64_t duration_ns = 0;
  bool began = false;
  bool ended = false;
  std::uint64_t hits = 0;  // see sim::FaultRecord
};

struct VariantResult {
  std::string name;
  std::uint64_t seed = 0;
  RunStatus status = RunStatus::completed;
  std::string message;  // why it was refused or how it crashed
  std::uint64_t digest = 0;
  std::uint64_t simulated_ns = 0;
  std::uint64_t events = 0;
  double wall_seconds = 0;
  MetricSet metrics;
  std::vector<Verdict> verdicts;
  std::vector<Skipped> skipped;
  std::vector<Breach> breaches;
  std::vector<FaultOutcome> faults;
  HangReport hang;
  std::vector<KnobInForce> settings;  // every key but the library's; of workload i: "workload[i].answer"
  std::vector<KnobInForce> knobs;
  std::vector<std::string> taken_as_given;
  Series series;

  // Nothing was breached and every expectation holds.
  [[nodiscard]] bool good() const;
};

nlohmann::ordered_json to_json(const VariantResult& result);  // without the series, as in result.json
// The whole, for the pipe between the process of the run and its parent.
std::string to_wire(const VariantResult& result);
// Throws nlohmann::json::exception on what to_wire() did not write.
VariantResult from_wire(std::string_view text);

}  // namespace bx::harness
