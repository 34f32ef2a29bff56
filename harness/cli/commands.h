// SPDX-License-Identifier: GPL-2.0-only
// The subcommands of `bx`. Each returns the exit status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/scenario/overrides.h"
#include "harness/scenario/scenario.h"

namespace bx::harness {

enum ExitStatus : int {
  kExitGood = 0,           // all expectations hold and no promise is broken
  kExitNotGood = 1,        // an expectation does not hold, a promise is broken, or a second run differed
  kExitUsage = 2,          // the command line or a scenario is wrong, or results cannot be written
  kExitNoBackend = 3,      // the backend is not there
  kExitInterrupted = 130,  // Ctrl-C; what was measured is kept
};

struct OverrideOptions {
  std::string knob_file;
  std::vector<std::string> sets;
  std::optional<std::uint64_t> seed;
};

struct RunOptions {
  std::vector<std::string> files;
  OverrideOptions overrides;
  std::string backend = "sim";
  std::string engine = "fast";
  std::string seeds;  // "A..B", or empty
  std::string hosts;  // file, of backend verbs
  std::size_t jobs = 1;
  std::string out;                   // empty: results/runs/...
  std::vector<std::string> capture;  // ports of the simulated network
  bool no_out = false;
  bool twice = false;
  bool quiet = false;
};

struct AgentCommandOptions {
  std::string coordinator;  // address
  std::uint16_t port = 0;
  std::uint32_t host = 0;
};

struct ShowOptions {
  std::string file;
  OverrideOptions overrides;
  bool json = false;
  bool schema = false;
  bool keys = false;
};

struct ConfigOptions {
  std::string file;  // a scenario, or empty
  OverrideOptions overrides;
  bool json = false;
};

struct PerfSimOptions {
  std::vector<std::string> only;  // names of cases; empty: all
  bool json = false;
  bool here = false;  // in this process, for a profiler
};

struct SwarmCommandOptions {
  std::string seeds;  // "A..B"
  std::string backend = "loopback";
  std::string mode = "drawn";
  std::string sabotage = "none";  // hidden: to see that the checkers find it
  std::size_t jobs = 1;
};

struct CompareCommandOptions {
  std::string a;  // result.json, or a directory with some
  std::string b;
  std::string within;                // "10%"; empty: as the scenario says
  std::vector<std::string> metrics;  // empty: as the scenario says
  bool json = false;
};

struct DoctorCommandOptions {
  OverrideOptions overrides;
  std::string root = "/";  // a copy of another machine's /sys and /proc
  bool json = false;
};

struct PerfVerbsOptions {
  std::vector<std::string> only;  // names of cases; empty: all
  std::string sizes = "64B..1MiB";
  std::uint64_t milliseconds = 300;  // for each point
  bool listen = false;
  std::string connect;  // address of the host that listens
  std::string address;  // of this host; empty: the first that a device has
  std::string device;   // empty: whichever has the address
  bool loopback = false;
  std::string calibrate;  // file to write, or empty
  bool json = false;
};

int run_command(const RunOptions& options);
// The process of one host, which bx run starts.
int agent_command(const AgentCommandOptions& options);
int list_command(const std::string& directory);
int show_command(const ShowOptions& options);
int config_command(const ConfigOptions& options);
int perf_sim_command(const PerfSimOptions& options);
int swarm_command(const SwarmCommandOptions& options);
int perf_verbs_command(const PerfVerbsOptions& options);
int compare_command(const CompareCommandOptions& options);
int doctor_command(const DoctorCommandOptions& options);

// Reads what the options name, plus ./bx.conf if there is one and no other knob file is named. Warnings go to
// standard error.
std::vector<Assignment> read_override_options(const OverrideOptions& options, Diagnostics& diagnostics);
// Prints the diagnostics to standard error, and returns kExitUsage.
int usage_error(const Diagnostics& diagnostics);
// Prints the scenario's warnings to standard error.
void print_warnings(const Scenario& scenario);

// Whether what is written to standard output may be UTF-8, and how wide it may be.
bool output_is_utf8();
std::size_t output_width();

}  // namespace bx::harness
