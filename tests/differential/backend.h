// SPDX-License-Identifier: BSD-3-Clause
// The fabrics that programs run on, and one run.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "libbx/fabric/fabric.h"
#include "tests/differential/outcome.h"
#include "tests/differential/world.h"

namespace bx::differential {

struct Backend {
  std::string name{};
  std::function<std::unique_ptr<fabric::Fabric>()> make{};
  std::array<std::string, 2> hosts{};
  Clock clock = Clock::virtual_time;
};

// Each in a source of its own: a program names only those that it is linked with.
Backend loopback_backend();
Backend sim_backend();
Backend rxe_backend();  // the hosts of scripts/rxe

Outcome run(const Program& program, const Backend& backend, const Outcome* expected = nullptr);

struct Trial {
  Outcome ours{};
  Outcome theirs{};
  std::optional<Difference> difference{};
};

// Runs the program on both, `ours` first.
Trial try_both(const Program& program, const Backend& ours, const Backend& theirs,
               Tolerance* tolerance = nullptr);

}  // namespace bx::differential
