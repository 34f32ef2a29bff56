// SPDX-License-Identifier: BSD-3-Clause
// The conformance suite on RDMA devices: `scripts/rxe -n 3
// build/release/tests/conformance/conformance_verbs_tests`. Hosts are those that scripts/rxe makes; a machine
// without them fails the suite.
#include <array>

#include "libbx/base/check.h"
#include "libbx/providers/verbs/verbs_fabric.h"
#include "tests/conformance/provider.h"

namespace bx::conformance {
namespace {

template <native::WaitMode mode>
std::unique_ptr<fabric::Fabric> make_verbs(std::uint64_t seed) {
  auto made = verbs::VerbsFabric::create({.hosts = {{.name = "alpha", .address = "10.77.0.1"},
                                                    {.name = "beta", .address = "10.77.0.2"},
                                                    {.name = "gamma", .address = "10.77.0.3"}},
                                          .wait = {.mode = mode},
                                          .seed = seed});
  BX_CHECK(made.has_value(), "no run loop");
  return std::move(*made);
}

constexpr std::array kProviders{
    Provider{.name = "verbs_poll",
             .make = &make_verbs<native::WaitMode::polled>,
             .bad_lkey = fabric::WcStatus::local_qp_operation,
             .long_message_sent = fabric::WcStatus::remote_operation,
             .long_message_received = fabric::WcStatus::local_qp_operation,
             .crooked_atomic = fabric::WcStatus::local_qp_operation,
             .clock = Clock::real},
    Provider{.name = "verbs_event",
             .make = &make_verbs<native::WaitMode::event>,
             .bad_lkey = fabric::WcStatus::local_qp_operation,
             .long_message_sent = fabric::WcStatus::remote_operation,
             .long_message_received = fabric::WcStatus::local_qp_operation,
             .crooked_atomic = fabric::WcStatus::local_qp_operation,
             .clock = Clock::real},
    Provider{.name = "verbs_adaptive",
             .make = &make_verbs<native::WaitMode::adaptive>,
             .bad_lkey = fabric::WcStatus::local_qp_operation,
             .long_message_sent = fabric::WcStatus::remote_operation,
             .long_message_received = fabric::WcStatus::local_qp_operation,
             .crooked_atomic = fabric::WcStatus::local_qp_operation,
             .clock = Clock::real},
};

}  // namespace

std::span<const Provider> providers() {
  return kProviders;
}

}  // namespace bx::conformance
