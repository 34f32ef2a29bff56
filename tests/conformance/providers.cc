// SPDX-License-Identifier: BSD-3-Clause
// The providers that must keep the contract. The decorators are among them: with nothing to inject they
// change nothing.
#include <array>

#include "libbx/fabric/fault_fabric.h"
#include "libbx/fabric/trace_fabric.h"
#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/conformance/provider.h"
#ifdef BX_CONFORMANCE_SIM
#include "tests/conformance/sim_provider.h"
#endif

namespace bx::conformance {
namespace {

std::unique_ptr<fabric::Fabric> make_loopback(std::uint64_t seed) {
  loopback::LoopbackConfig config{.hosts = {"alpha", "beta"}, .seed = seed};
  config.caps.message_bytes_max = std::uint64_t{1} << 23U;  // small enough to test the largest message
  return std::make_unique<loopback::LoopbackFabric>(config);
}

std::unique_ptr<fabric::Fabric> make_fault_loopback(std::uint64_t seed) {
  return std::make_unique<fabric::FaultFabric>(make_loopback(seed), fabric::FaultPlan{.seed = seed});
}

std::unique_ptr<fabric::Fabric> make_trace_loopback(std::uint64_t seed) {
  return std::make_unique<fabric::TraceFabric>(make_loopback(seed), 256);
}

constexpr std::array kProviders{
    Provider{.name = "loopback", .make = &make_loopback},
    Provider{.name = "fault_loopback", .make = &make_fault_loopback},
    Provider{.name = "trace_loopback", .make = &make_trace_loopback},
#ifdef BX_CONFORMANCE_SIM
    Provider{.name = "sim", .make = &make_sim, .hosts = {"host0", "host1"}},
#endif
};

}  // namespace

std::span<const Provider> providers() {
  return kProviders;
}

}  // namespace bx::conformance
