// SPDX-License-Identifier: BSD-3-Clause
// The providers that must keep the contract.
#include <array>

#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/conformance/provider.h"

namespace bx::conformance {
namespace {

std::unique_ptr<fabric::Fabric> make_loopback(std::uint64_t seed) {
  loopback::LoopbackConfig config{.hosts = {"alpha", "beta", "gamma"}, .seed = seed};
  config.caps.message_bytes_max = std::uint64_t{1} << 23U;  // small enough to test the largest message
  return std::make_unique<loopback::LoopbackFabric>(config);
}

constexpr std::array kProviders{
    Provider{.name = "loopback", .make = &make_loopback},
};

}  // namespace

std::span<const Provider> providers() {
  return kProviders;
}

}  // namespace bx::conformance
