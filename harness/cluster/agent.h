// SPDX-License-Identifier: GPL-2.0-only
// The process of one host in a run: it calls the coordinator, shows the run's token, is told what to play,
// plays it phase by phase and reports. One thread: it looks at its connection between slices of play. When
// the coordinator goes, it ends.
//
//   agent: hello (token, host)      coordinator: refused | setup
//   ready                           ping ... (the agent answers each with its clock)
//   beat ..., done (of a phase)     phase (which, from when by the agent's clock)
//   records ..., report             report, then bye
//   failed (why)                    die (the fault "process-kill" where no signal can be sent)
#pragma once

#include <cstdint>
#include <string>

#include "harness/cluster/player.h"

namespace bx::harness {

inline constexpr std::uint32_t kProtocolVersion = 1;

struct AgentOptions {
  std::string address;  // of the coordinator
  std::uint16_t port = 0;
  std::uint32_t host = 0;
  std::string token;
  std::string commit{};  // of this program
  std::uint32_t protocol = kProtocolVersion;
};

// Until the run is over: nothing if it ended as it should, otherwise why.
std::string run_agent(const AgentOptions& options, Player& player);

}  // namespace bx::harness
