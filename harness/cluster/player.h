// SPDX-License-Identifier: GPL-2.0-only
// What an agent plays: the hosts of a scenario that are its own. Behind this interface so that the protocol
// can be tested without devices.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/units.h"
#include "harness/cluster/report.h"
#include "harness/scenario/settings.h"
#include "libbx/providers/native/tcp_streams.h"

namespace bx::harness {

// In this order. In each an agent is done when its hosts have done their part, and goes on serving others.
enum class Phase : std::uint8_t { connect, warm_up, measure, settle };
std::string_view to_string(Phase phase) noexcept;
std::optional<Phase> phase_from(std::string_view name) noexcept;

// What an agent is told before anything else.
struct AgentSetup {
  Settings settings;
  std::vector<native::HostEntry> hosts{};  // of the whole fabric
  HostList own{};                          // numbers of those that this agent plays
  std::string backend = "verbs";           // or "loopback": without devices, all hosts are its own
  std::string device{};                    // empty: whichever has the address
  std::vector<ErrorCode> tolerated{};      // calls may fail so
  std::uint64_t beat_ns = 100'000'000;     // between two signs of life
};
Json setup_to_json(const AgentSetup& setup);
// Throws nlohmann::json::exception.
AgentSetup setup_from_json(const Json& json);

class Player {
 public:
  virtual ~Player() = default;
  // Opens devices, makes workers and serves. The error is a sentence.
  virtual Parsed<void> open(const AgentSetup& setup) = 0;
  // What there is to measure, and with which knobs.
  [[nodiscard]] virtual ReadyReport ready() = 0;
  [[nodiscard]] virtual std::int64_t now_ns() const = 0;
  virtual void begin(Phase phase) = 0;
  [[nodiscard]] virtual bool done() = 0;
  // For at most so long; shorter once the phase is done.
  virtual void run(std::int64_t ns) = 0;
  [[nodiscard]] virtual Beat beat() = 0;
  // The end: what is known of the hosts.
  [[nodiscard]] virtual HostReport report() = 0;
};

// The real one: the library on this agent's hosts.
std::unique_ptr<Player> make_host_player();

}  // namespace bx::harness
