// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/check.h"
#include "libbx/providers/verbs/verbs_fabric.h"
#include "tests/differential/backend.h"

namespace bx::differential {
namespace {

std::unique_ptr<fabric::Fabric> make() {
  auto made = verbs::VerbsFabric::create(
      {.hosts = {{.name = "alpha", .address = "10.77.0.1"}, {.name = "beta", .address = "10.77.0.2"}},
       .wait = {.mode = native::WaitMode::polled}});
  BX_CHECK(made.has_value(), "no run loop");
  return std::move(*made);
}

}  // namespace

Backend rxe_backend() {
  return {.name = "rxe", .make = &make, .hosts = {"alpha", "beta"}, .clock = Clock::real};
}

}  // namespace bx::differential
