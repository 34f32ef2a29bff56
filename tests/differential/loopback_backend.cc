// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/differential/backend.h"

namespace bx::differential {
namespace {

std::unique_ptr<fabric::Fabric> make() {
  return std::make_unique<loopback::LoopbackFabric>(loopback::LoopbackConfig{.hosts = {"alpha", "beta"}});
}

}  // namespace

Backend loopback_backend() {
  return {.name = "loopback", .make = &make, .hosts = {"alpha", "beta"}};
}

}  // namespace bx::differential
