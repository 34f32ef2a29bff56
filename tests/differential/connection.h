// SPDX-License-Identifier: BSD-3-Clause
// What the generator keeps of connections and shared receive queues while it writes a program.
#pragma once

#include <array>
#include <cstdint>

#include "libbx/base/prng.h"
#include "tests/differential/program.h"

namespace bx::differential {

// What the generator knows of a connection. It may be wrong about `doubtful`, on the safe side.
struct Connection {
  bool exists = false;
  std::array<bool, 2> alive{};  // an end that is there and was not failed on purpose
  bool doubtful = false;        // one end or both may be in error
  bool spent = false;           // in a state that devices need not agree on: only to be replaced
  bool patient = true;
  bool one_cq = false;
  std::uint32_t send_depth = 0;
  bool waits_for_ever = false;
  std::array<std::uint8_t, 2> srq{};
  // Messages of this side that may wait for receives for ever.
  std::array<std::uint32_t, 2> stuck{};
};

// What is known of a shared receive queue: at least so many receives are there, and whether some of them may
// be too short or bad for a message.
struct SrqState {
  std::uint32_t depth = 0;
  std::uint32_t sure = 0;
  bool all_good = true;
  bool taken = false;  // a queue pair uses it in this step
};

// A new connection of random attributes, described in `connection`. `for_device`: see GeneratorConfig.
Connect make_connect(Prng& random, bool for_device, std::size_t which, Connection& connection);

}  // namespace bx::differential
