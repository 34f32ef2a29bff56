// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cli/tools.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "harness/perf/points.h"
#include "harness/perf/sim_cases.h"

namespace bx::harness {
namespace {

std::string sim_case_list() {
  std::string text;
  for (const SimCase& one : sim_cases()) text += fmt::format("  {:<24} {}\n", one.name, one.sentence);
  return text;
}

std::string verbs_case_list() {
  std::string text;
  for (const PerfCaseSpec& one : perf_cases()) text += fmt::format("  {:<24} {}\n", one.name, one.sentence);
  return text;
}

}  // namespace

Tools::Tools(CLI::App& app) {
  add_compare(app);
  add_doctor(app);
  add_perf(app);
}

int Tools::run() {
  if (compare_app_->parsed()) return compare_command(compare_);
  if (doctor_app_->parsed()) return doctor_command(doctor_);
  if (perf_verbs_app_->parsed()) return perf_verbs_command(perf_verbs_);
  return perf_sim_command(perf_sim_);
}

void Tools::add_compare(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("compare", "Compares two results of a scenario, number by number");
  command.add_option("A", compare_.a, "result.json, or a directory with results of several seeds")
      ->required()
      ->type_name("");
  command.add_option("B", compare_.b, "The same of the other run; its differences are from A")
      ->required()
      ->type_name("");
  command.add_option("--within", compare_.within, "Tolerance instead of the scenario's and of 10%")
      ->type_name("RATIO");
  command
      .add_option("--metric", compare_.metrics,
                  "Only this metric of docs/results.md, and it must be there; may be given again")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command.add_flag("--json", compare_.json, "As JSON");
  command.footer(
      "Exit status: 0 they agree, 1 they differ or a number is missing, 2 bad input.\n"
      "[[compare]] of the scenario says what is compared and how closely (docs/scenarios.md).");
  compare_app_ = &command;
}

void Tools::add_doctor(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("doctor", "Looks whether this machine can carry the library over RDMA");
  command.add_option("--set", doctor_.overrides.sets, "A knob, e.g. library.memory.arena=1GiB")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--root", doctor_.root, "A copy of another machine's /sys and /proc instead of this one's")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  command.add_flag("--json", doctor_.json, "As JSON");
  command.footer("Changes nothing. Exit status: 0 nothing fails, 1 something will not work, 2 bad input.");
  doctor_app_ = &command;
}

void Tools::add_perf(CLI::App& app) {
  CLI::App& perf = *app.add_subcommand("perf", "Measures what things cost on this machine");
  perf.require_subcommand(1);
  CLI::App& sim = *perf.add_subcommand("sim", "The simulated fabric: packets a second, memory");
  sim.add_option("CASE", perf_sim_.only, "Cases (otherwise all)")->type_name("");
  sim.add_flag("--json", perf_sim_.json, "As JSON");
  sim.add_flag("--here", perf_sim_.here, "In this process instead of one for each case, for a profiler");
  sim.footer("Cases:\n" + sim_case_list());
  add_perf_verbs(perf);
  perf.footer("perf sim, cases:\n" + sim_case_list() + "\nperf verbs, cases:\n" + verbs_case_list());
}

void Tools::add_perf_verbs(CLI::App& perf) {
  CLI::App& verbs =
      *perf.add_subcommand("verbs", "Raw verbs and the library between two hosts with RDMA devices");
  verbs.add_option("CASE", perf_verbs_.only, "Cases (otherwise all)")->type_name("");
  verbs.add_flag("--listen", perf_verbs_.listen, "Waits for the other host; ends when that has measured");
  verbs
      .add_option("--connect", perf_verbs_.connect, "Measures against the host that listens at this address")
      ->type_name("HOST");
  verbs
      .add_option("--address", perf_verbs_.address,
                  "Of this host (otherwise the first that an RDMA device has)")
      ->type_name("ADDRESS");
  verbs.add_option("--device", perf_verbs_.device, "RDMA device (otherwise whichever has the address)")
      ->type_name("NAME");
  verbs.add_option("--sizes", perf_verbs_.sizes, "Each power of two from the first to the last")
      ->type_name("A..B")
      ->capture_default_str();
  verbs.add_option("--time", perf_verbs_.milliseconds, "For each case and size, in milliseconds")
      ->check(CLI::Range(1, 100'000))
      ->type_name("MS")
      ->capture_default_str();
  verbs
      .add_option("--calibrate", perf_verbs_.calibrate,
                  "Writes what this processor and NIC cost, for fabric.host_file of a scenario")
      ->type_name("FILE");
  verbs.add_flag("--loopback", perf_verbs_.loopback,
                 "Both ends in this process, without a device, in virtual time");
  verbs.add_flag("--json", perf_verbs_.json, "As JSON");
  verbs.footer("Cases:\n" + verbs_case_list());
  perf_verbs_app_ = &verbs;
}

}  // namespace bx::harness
