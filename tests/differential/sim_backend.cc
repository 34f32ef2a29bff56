// SPDX-License-Identifier: GPL-2.0-only
#include "libbx/base/check.h"
#include "sim/provider/sim_fabric.h"
#include "tests/differential/backend.h"

namespace bx::differential {
namespace {

std::unique_ptr<fabric::Fabric> make() {
  auto fabric = sim::SimFabric::create({});
  BX_CHECK(fabric.has_value(), "the default simulated network must be valid");
  return std::move(*fabric);
}

}  // namespace

Backend sim_backend() {
  return {.name = "sim", .make = &make, .hosts = {"host0", "host1"}};
}

}  // namespace bx::differential
