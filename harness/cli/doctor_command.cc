// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include <algorithm>

#include "harness/cli/commands.h"
#include "harness/doctor/doctor.h"

namespace bx::harness {

int doctor_command(const DoctorCommandOptions& options) {
  Diagnostics diagnostics;
  Settings settings;
  for (const Assignment& assignment : read_override_options(options.overrides, diagnostics)) {
    apply(assignment, settings);
  }
  if (!diagnostics.ok()) return usage_error(diagnostics);
  const std::vector<Diagnosis> found = diagnose(SystemView(options.root), settings.library);
  fmt::print("{}", options.json ? diagnoses_json(found) : render_diagnoses(found));
  const bool fails = std::ranges::count(found, Diagnosis::Level::fail, &Diagnosis::level) != 0;
  return fails ? kExitNotGood : kExitGood;
}

}  // namespace bx::harness
