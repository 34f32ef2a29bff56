// SPDX-License-Identifier: BSD-3-Clause
#include <bx/config.h>

#include <algorithm>
#include <array>

namespace bx {
namespace {

constexpr std::array<std::string_view, 2> kRendezvousPolicies = {"pull", "granted-write"};

constexpr std::array<std::string_view, 2> kCreditModes = {"fixed", "shared"};

constexpr std::array<std::string_view, 2> kWindowModes = {"static", "adaptive"};

constexpr std::array<std::string_view, 2> kWindowDivisions = {"chunks", "peers"};

constexpr std::array<std::string_view, 4> kHugePages = {"auto", "off", "prefer", "require"};

constexpr std::span<const std::string_view> choices_of(std::string_view name) {
  if (name == "rendezvous.policy") return kRendezvousPolicies;
  if (name == "credits.mode") return kCreditModes;
  if (name == "window.mode") return kWindowModes;
  if (name == "window.division") return kWindowDivisions;
  if (name == "memory.huge_pages") return kHugePages;
  return {};
}

constexpr auto kKnobs = std::to_array<KnobSpec>({
#define BX_KNOB_SPEC(member, name, unit, value, low, high, sentence) \
  {name, Unit::unit, &Config::member, value, low, high, sentence, choices_of(name)},
    BX_KNOBS(BX_KNOB_SPEC)
#undef BX_KNOB_SPEC
});

}  // namespace

std::span<const KnobSpec> knobs() noexcept {
  return kKnobs;
}

const KnobSpec* find_knob(std::string_view name) noexcept {
  const auto found =
      std::find_if(kKnobs.begin(), kKnobs.end(), [&](const KnobSpec& knob) { return knob.name == name; });
  return found == kKnobs.end() ? nullptr : &*found;
}

}  // namespace bx
