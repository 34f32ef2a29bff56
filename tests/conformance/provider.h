// SPDX-License-Identifier: BSD-3-Clause
// What the conformance suite asks of a provider: a fabric with at least the hosts "alpha", "beta" and
// "gamma". A new provider joins by one line in providers.cc.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "libbx/fabric/fabric.h"

namespace bx::conformance {

// Under a real clock a thread may lose its processor for a while: what is late then is not wrong.
enum class Clock : std::uint8_t { virtual_time, real };

struct Provider {
  const char* name;  // letters, digits and underscores: it becomes part of test names
  std::unique_ptr<fabric::Fabric> (*make)(std::uint64_t seed);
  std::array<const char*, 2> hosts{"alpha", "beta"};
  // The status of a request whose lkey does not cover its SGE. Verbs say local protection error; a software
  // device may call it a local QP operation error.
  fabric::WcStatus bad_lkey = fabric::WcStatus::local_protection;
  // Of a message too long for its receive, at the sender and at the receiver.
  fabric::WcStatus long_message_sent = fabric::WcStatus::remote_invalid_request;
  fabric::WcStatus long_message_received = fabric::WcStatus::local_length;
  // Of an atomic at an address that is not aligned: verbs say the responder refuses it, an early driver
  // refuses itself.
  fabric::WcStatus crooked_atomic = fabric::WcStatus::remote_invalid_request;
  Clock clock = Clock::virtual_time;
};

// Those that the program at hand is linked with.
std::span<const Provider> providers();

}  // namespace bx::conformance
