// SPDX-License-Identifier: BSD-3-Clause
// The providers of conformance_mutants: loopback, broken in each of the ways, and once not at all. The
// program is run by mutation_test, which expects it to fail.
#include <array>
#include <utility>

#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/conformance/broken_fabric.h"
#include "tests/conformance/provider.h"

namespace bx::conformance {
namespace {

template <Breakage kBreakage>
std::unique_ptr<fabric::Fabric> make(std::uint64_t seed) {
  loopback::LoopbackConfig config{.hosts = {"alpha", "beta"}, .seed = seed};
  config.caps.message_bytes_max = std::uint64_t{1} << 23U;
  return std::make_unique<BrokenFabric>(std::make_unique<loopback::LoopbackFabric>(config), kBreakage);
}

template <std::size_t... kIndices>
constexpr auto mutants(std::index_sequence<kIndices...>) {
  return std::array{
      Provider{.name = "intact", .make = &make<Breakage::none>},
      Provider{.name = kBreakages[kIndices].name, .make = &make<kBreakages[kIndices].breakage>}...};
}

constexpr auto kMutants = mutants(std::make_index_sequence<kBreakages.size()>());

}  // namespace

std::span<const Provider> providers() {
  return kMutants;
}

}  // namespace bx::conformance
