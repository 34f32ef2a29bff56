// SPDX-License-Identifier: GPL-2.0-only
// Runs variants, each in a process of its own: ns-3 is a singleton of the process, memory comes back, and a
// run that breaks an invariant (BX_CHECK aborts) takes nobody with it. The child tells its progress and its
// result through a pipe, a line each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/run/variant_run.h"

namespace bx::harness {

struct RunJob {
  const Scenario* scenario = nullptr;
  const Variant* variant = nullptr;
  std::string label;         // for progress: "incast-64 window", with the seed if there are several
  std::string capture_file;  // of the ports in the BackendChoice; empty: none
};

// Told in the parent about runs in the children.
class RunSetObserver {
 public:
  virtual ~RunSetObserver() = default;
  virtual void on_start(const RunJob& job) = 0;
  virtual void on_progress(const RunJob& job, const Progress& progress, double wall_seconds) = 0;
  virtual void on_end(const RunJob& job, const VariantResult& result) = 0;
};

struct RunSetOutcome {
  // In the order of the jobs; after an interruption those that never started are missing.
  std::vector<VariantResult> results;
  bool interrupted = false;
};

// At most `parallel` at a time. SIGINT and SIGTERM end the runs cleanly, a second one at once.
RunSetOutcome run_all(const std::vector<RunJob>& jobs, const BackendChoice& choice, std::size_t parallel,
                      RunSetObserver& observer);

}  // namespace bx::harness
