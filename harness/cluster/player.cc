// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/player.h"

#include <array>

#include "harness/cluster/settings_wire.h"

namespace bx::harness {
namespace {

constexpr std::array<std::string_view, 4> kPhases{"connect", "warm-up", "measure", "settle"};

}  // namespace

std::string_view to_string(Phase phase) noexcept {
  return kPhases[static_cast<std::size_t>(phase)];
}

std::optional<Phase> phase_from(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kPhases.size(); ++i) {
    if (kPhases[i] == name) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

Json setup_to_json(const AgentSetup& setup) {
  Json json{{"kind", "setup"},        {"settings", settings_to_json(setup.settings)},
            {"own", setup.own},       {"backend", setup.backend},
            {"device", setup.device}, {"beat_ns", setup.beat_ns}};
  Json& hosts = json["hosts"] = Json::array();
  for (const native::HostEntry& host : setup.hosts) hosts.push_back({host.name, host.address});
  Json& tolerated = json["tolerated"] = Json::array();
  for (const ErrorCode code : setup.tolerated) tolerated.push_back(static_cast<unsigned>(code));
  return json;
}

AgentSetup setup_from_json(const Json& json) {
  AgentSetup setup;
  setup.settings = settings_from_json(json.at("settings"));
  setup.own = json.at("own").get<HostList>();
  setup.backend = json.at("backend");
  setup.device = json.at("device");
  setup.beat_ns = json.at("beat_ns");
  for (const Json& host : json.at("hosts")) setup.hosts.push_back({host.at(0), host.at(1)});
  for (const Json& code : json.at("tolerated")) {
    if (code.get<std::size_t>() < kErrorCodes)
      setup.tolerated.push_back(static_cast<ErrorCode>(code.get<unsigned>()));
  }
  return setup;
}

}  // namespace bx::harness
