// SPDX-License-Identifier: GPL-2.0-only
// The subcommands of `bx` that look at results and at this machine: compare, doctor, perf.
#pragma once

#include "harness/cli/commands.h"

namespace CLI {
class App;
}

namespace bx::harness {

class Tools {
 public:
  // Adds them to the command line, which is parsed afterwards into this object.
  explicit Tools(CLI::App& app);
  Tools(const Tools&) = delete;
  Tools& operator=(const Tools&) = delete;

  // The one that the command line named; one of them it was.
  int run();

 private:
  void add_compare(CLI::App& app);
  void add_doctor(CLI::App& app);
  void add_perf(CLI::App& app);
  void add_perf_verbs(CLI::App& perf);

  CompareCommandOptions compare_;
  PerfSimOptions perf_sim_;
  DoctorCommandOptions doctor_;
  PerfVerbsOptions perf_verbs_;
  const CLI::App* compare_app_ = nullptr;
  const CLI::App* doctor_app_ = nullptr;
  const CLI::App* perf_verbs_app_ = nullptr;
};

}  // namespace bx::harness
