// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "harness/cli/commands.h"
#include "harness/cluster/agent.h"
#include "harness/cluster/token.h"
#include "harness/report/result_file.h"

namespace bx::harness {

int agent_command(const AgentCommandOptions& options) {
  // Ctrl-C is for the coordinator, whose end ends this process too.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  std::string token;
  std::getline(std::cin, token);
  if (token.size() != 2 * kTokenBytes) {
    fmt::print(
        stderr,
        "bx: error: an agent is started by bx run, which gives it the run's token on standard input\n");
    return kExitUsage;
  }
  const std::unique_ptr<Player> player = make_host_player();
  const std::string why = run_agent({.address = options.coordinator,
                                     .port = options.port,
                                     .host = options.host,
                                     .token = token,
                                     .commit = build_commit()},
                                    *player);
  if (why.empty()) return kExitGood;
  fmt::print(stderr, "bx: error: {}\n", why);
  return kExitNotGood;
}

}  // namespace bx::harness
