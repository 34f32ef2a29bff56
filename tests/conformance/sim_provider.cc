// SPDX-License-Identifier: GPL-2.0-only
#include "tests/conformance/sim_provider.h"

#include "libbx/base/check.h"
#include "sim/provider/sim_fabric.h"

namespace bx::conformance {

std::unique_ptr<fabric::Fabric> make_sim(std::uint64_t seed) {
  sim::SimConfig config;
  config.hosts = 2;
  config.seed = seed;
  config.message_bytes_max = std::uint64_t{1} << 23U;  // small enough to test the largest message
  auto fabric = sim::SimFabric::create(config);
  BX_CHECK(fabric.has_value(), "the default simulated network must be valid");
  return std::move(*fabric);
}

}  // namespace bx::conformance
