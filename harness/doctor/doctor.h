// SPDX-License-Identifier: GPL-2.0-only
// What `bx doctor` finds: whether this machine can carry the library well, and what to do where not. It only
// looks.
#pragma once

#include <bx/config.h>

#include <string>
#include <string_view>
#include <vector>

#include "harness/machine/rdma_port.h"
#include "harness/machine/system_view.h"

namespace bx::harness {

struct Diagnosis {
  enum class Level : std::uint8_t {
    ok,
    warn,  // works, but not as well as it could, or cannot be told from here
    fail,  // will not work
  };
  Level level = Level::ok;
  std::string subject;  // "machine", "mlx5_0 port 1"
  std::string check;    // "gid", "mtu"; one word
  std::string text;     // what is so, with numbers
  std::string remedy;   // what to do; empty if ok
};
std::string_view to_string(Diagnosis::Level level) noexcept;

// All checks, machine first, then port by port. `config` says how much memory is to be registered and with
// which traffic class.
std::vector<Diagnosis> diagnose(const SystemView& system, const Config& config);

// Those of the machine (checks.cc): kernel, rdma-core, memory lock, huge pages, cgroup.
std::vector<Diagnosis> diagnose_machine(const SystemView& system, const Config& config);
// Those of one port (fabric_checks.cc): driver and firmware, state, GIDs, MTU, PFC, ECN, traffic class.
std::vector<Diagnosis> diagnose_port(const SystemView& system, const RdmaPort& port, const Config& config);

std::string render_diagnoses(const std::vector<Diagnosis>& diagnoses);
std::string diagnoses_json(const std::vector<Diagnosis>& diagnoses);

}  // namespace bx::harness
