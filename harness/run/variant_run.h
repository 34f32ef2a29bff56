// SPDX-License-Identifier: GPL-2.0-only
// Runs one variant of a scenario on a backend, from an empty world to its VariantResult: in this process, or
// on RDMA devices with a process for each host (harness/cluster/cluster_run.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/run/backend.h"
#include "harness/run/variant_result.h"
#include "harness/scenario/scenario.h"

namespace bx::harness {

struct Progress {
  std::string_view phase;  // "connect", "warm-up", "measure", "settle"
  std::uint64_t simulated_ns = 0;
  std::uint64_t events = 0;
  double fraction = 0;  // of the measured bytes that have arrived
};

// Asked and told between slices of the run, some hundred times.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_progress(const Progress& progress) = 0;
  // True once the run is to end as soon as possible, keeping what was measured.
  [[nodiscard]] virtual bool interrupted() = 0;
};

VariantResult run_variant(const Scenario& scenario, const Variant& variant, const BackendChoice& choice,
                          RunObserver& observer);

}  // namespace bx::harness
