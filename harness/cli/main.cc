// SPDX-License-Identifier: GPL-2.0-only
// The command `bx`: reads the command line and hands over to one of the commands.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "harness/cli/commands.h"
#include "harness/cli/tools.h"
#include "harness/report/result_file.h"

namespace bx::harness {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  bx run scenarios/incast/incast-64.toml\n"
    "  bx run scenarios/incast/incast-64.toml --set fabric.rate=25Gbps --seeds 1..8 --jobs 2\n"
    "  bx run scenarios/incast/incast-16.toml --on loopback --no-out\n"
    "  bx show scenarios/incast/incast-64.toml\n"
    "  BX_WINDOW_PER_PEER=64KiB bx config\n"
    "\n"
    "Exit status: 0 all expectations hold; 1 an expectation does not hold or the oracle found a breach; 2 "
    "the command\n"
    "line or a scenario is wrong; 3 the backend is not available; 130 interrupted (what was measured is "
    "kept).\n"
    "Who wins, weakest first: default, scenario, knob file, environment (BX_...), --set, the variant's own "
    "keys.\n"
    "docs/scenarios.md describes scenarios, docs/results.md results.";

void add_override_options(CLI::App& command, OverrideOptions& options) {
  command.add_option("--set", options.sets, "Sets a key of the scenario, e.g. library.window.per_peer=64KiB")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--config", options.knob_file, "Knob file (otherwise ./bx.conf if there is one)")
      ->type_name("FILE");
  command.add_option("--seed", options.seed, "Seed instead of the scenario's")->type_name("N");
}

const CLI::App& add_agent(CLI::App& app, AgentCommandOptions& agent) {
  CLI::App& command = *app.add_subcommand(
      "agent",
      "Plays one host of a run, for a 'bx run' that starts it (docs/verbs.md); takes its token from "
      "standard input");
  command.add_option("--coordinator", agent.coordinator, "Address of the bx run")
      ->required()
      ->type_name("ADDRESS");
  command.add_option("--port", agent.port, "Its port")
      ->required()
      ->check(CLI::Range(1, 65535))
      ->type_name("N");
  command.add_option("--host", agent.host, "Which host of the scenario this is")->required()->type_name("N");
  return command;
}

CLI::App& add_swarm(CLI::App& app, SwarmCommandOptions& swarm) {
  CLI::App& command =
      *app.add_subcommand("swarm", "Runs random whole systems by seed and checks what they promise");
  command.add_option("--seeds", swarm.seeds, "Each seed from A to B, twice")->required()->type_name("A..B");
  command.add_option("--jobs", swarm.jobs, "Seeds under way at once, a process each")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--on", swarm.backend, "Backend: loopback or sim")
      ->check(CLI::IsMember({"loopback", "sim"}))
      ->type_name("BACKEND")
      ->capture_default_str();
  command.add_option("--mode", swarm.mode, "honest (nothing fails), faulty, or drawn from each seed")
      ->check(CLI::IsMember({"drawn", "honest", "faulty"}))
      ->type_name("MODE")
      ->capture_default_str();
  command.add_option("--sabotage", swarm.sabotage, "Puts in a fault that the checkers must find")
      ->check(CLI::IsMember({"none", "bytes", "memory", "silence", "check", "digest"}))
      ->group("");
  return command;
}

int main_of(int argc, char** argv) {
  CLI::App app{"ByteExpress: runs scenarios of RDMA communication and reports what happened."};
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "bx 0.1.0 " + build_commit());

  RunOptions run;
  CLI::App& run_app = *app.add_subcommand("run", "Runs scenarios, every variant, and compares the variants");
  run_app.add_option("FILE", run.files, "Scenario files")->required()->type_name("");
  run_app.add_option("--on", run.backend, "Backend: sim, loopback, rxe or verbs")
      ->check(CLI::IsMember({"sim", "loopback", "rxe", "verbs"}))
      ->type_name("BACKEND")
      ->capture_default_str();
  run_app.add_option("--engine", run.engine, "Event engine of backend sim: fast (ours) or stock (ns-3's)")
      ->check(CLI::IsMember({"fast", "stock"}))
      ->type_name("ENGINE")
      ->capture_default_str();
  add_override_options(run_app, run.overrides);
  run_app.add_option("--hosts", run.hosts, "The machines of backend verbs (docs/verbs.md)")
      ->type_name("FILE");
  run_app.add_option("--seeds", run.seeds, "Runs once for each seed from A to B")->type_name("A..B");
  run_app.add_option("--jobs", run.jobs, "Runs under way at once, a process each")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  run_app
      .add_option("--out", run.out, "Directory for result.json and the series (otherwise results/runs/...)")
      ->type_name("DIR");
  run_app
      .add_option("--capture", run.capture,
                  "Captures a port (host3, or leaf0:2 for a port of a switch) into <variant>.pcapng beside "
                  "the results; "
                  "may be given again")
      ->type_name("PORT");
  run_app.add_flag("--no-out", run.no_out, "Writes no files");
  run_app.add_flag("--twice", run.twice, "Runs everything twice and fails if the digests differ");
  run_app.add_flag("--quiet", run.quiet, "No progress");

  std::string directory = "scenarios";
  CLI::App& list_app = *app.add_subcommand("list", "Lists the scenarios of a directory");
  list_app.add_option("DIR", directory, "Directory, searched recursively")
      ->type_name("")
      ->capture_default_str();

  ShowOptions show;
  CLI::App& show_app = *app.add_subcommand("show", "Shows a scenario with everything resolved and predicted");
  CLI::Option* show_file = show_app.add_option("FILE", show.file, "Scenario file")->type_name("");
  add_override_options(show_app, show.overrides);
  show_app.add_flag("--json", show.json, "As JSON");
  show_app.add_flag("--schema", show.schema, "The JSON Schema of scenario files")->excludes(show_file);
  show_app.add_flag("--keys", show.keys, "The table of keys, in Markdown")->excludes(show_file);

  ConfigOptions config;
  CLI::App& config_app =
      *app.add_subcommand("config", "Lists the library's knobs, their values and who set them");
  config_app.add_option("FILE", config.file, "Scenario whose first variant is shown")->type_name("");
  add_override_options(config_app, config.overrides);
  config_app.add_flag("--json", config.json, "As JSON");

  Tools tools(app);
  AgentCommandOptions agent;
  const CLI::App& agent_app = add_agent(app, agent);
  SwarmCommandOptions swarm;
  const CLI::App& swarm_app = add_swarm(app, swarm);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitGood : kExitUsage;
  }
  if (run_app.parsed()) return run_command(run);
  if (agent_app.parsed()) return agent_command(agent);
  if (swarm_app.parsed()) return swarm_command(swarm);
  if (list_app.parsed()) return list_command(directory);
  if (show_app.parsed()) {
    if (show.file.empty() && !show.schema && !show.keys) {
      fmt::print(stderr, "bx: error: show needs a scenario file, --schema or --keys\n");
      return kExitUsage;
    }
    return show_command(show);
  }
  if (config_app.parsed()) return config_command(config);
  return tools.run();
}

}  // namespace
}  // namespace bx::harness

int main(int argc, char** argv) {
  try {
    return bx::harness::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bx: error: {}\n", error.what());
    return bx::harness::kExitUsage;
  }
}
