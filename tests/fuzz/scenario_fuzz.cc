// SPDX-License-Identifier: GPL-2.0-only
// parse_scenario on any text: it gives either a scenario or at least one diagnostic, never both and never
// neither, and what it gives can be shown.
#include <string>

#include "harness/base/text.h"
#include "harness/scenario/scenario.h"
#include "libbx/base/check.h"
#include "tests/fuzz/targets.h"

namespace bx::fuzz {

void fuzz_scenario(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (harness::find_invalid_utf8(text)) return;  // read_text_file() refuses it before
  harness::Diagnostics diagnostics;
  const auto scenario = harness::parse_scenario(text, "fuzz.toml", {}, diagnostics);
  BX_CHECK(scenario.has_value() == diagnostics.ok(), "a scenario without reason, or a refusal without one");
  BX_CHECK(diagnostics.ok() == diagnostics.text().empty(), "an error that says nothing");
  if (!scenario) return;
  BX_CHECK(!scenario->variants.empty(), "a scenario has at least one variant");
  for (const harness::Variant& variant : scenario->variants) {
    for (const harness::KeySpec& key : harness::scenario_keys()) {
      if (key.of_settings()) {
        BX_CHECK(!key.get(variant.settings).empty(), "a setting that cannot be shown");
        continue;
      }
      for (const harness::FaultEntry& fault : variant.settings.faults) {
        BX_CHECK(!key.of_fault() || !key.get_fault(fault).empty(), "a fault that cannot be shown");
      }
      if (!key.of_workload()) continue;
      for (const harness::WorkloadSpec& workload : variant.settings.workloads) {
        BX_CHECK(!key.is_for(workload.kind) || !key.get_workload(workload).empty(),
                 "a workload that cannot be shown");
      }
    }
  }
}

}  // namespace bx::fuzz
