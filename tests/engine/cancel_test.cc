// SPDX-License-Identifier: BSD-3-Clause
// cancel() at each stage of a call: one completion, nothing leaks, the session goes on.
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

class CancelTest : public ::testing::TestWithParam<RendezvousPolicy> {};

// Queued, posted, offered, in the middle of the transfer of either side, answered: by the instant.
TEST_P(CancelTest, cancel__at_any_instant_of_any_kind_of_call) {
  Config config;
  config.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
  config.credits_per_peer = 2;  // so that some of them are queued
  World world;
  EchoService echo;
  Node server = world.add("server", config);
  Node client = world.add("client", config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Session session = connect(client, "server");
  run_dry(client);
  const double idle = counter(client, "memory.arena_in_use");
  constexpr std::array<std::size_t, 5> kSizes = {0, 64, 4000, 200'000, 300'000};
  for (Duration when = 0us; when < 150us; when += 5us) {
    std::array<RecordedCall, 5> calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      session.start_call(filled(client.worker(), kSizes[i], i), calls[i]);
    }
    client.worker().reactor().run(client.worker().now() + when);
    for (RecordedCall& call : calls) {
      const bool was_done = call.done();
      call.cancel();
      EXPECT_EQ(call.done(), was_done);  // never from inside
    }
    Buffer other = filled(client.worker(), 300'000, 7);  // not what a NIC may still write to
    run_dry(client);
    EXPECT_TRUE(is_filled(other.bytes(), 7)) << when.count();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_TRUE(calls[i].succeeded() || calls[i].failed_with(ErrorCode::cancelled)) << when.count();
      EXPECT_TRUE(is_filled(calls[i].answer.bytes(), i)) << when.count();
      calls[i].answer = {};
    }
    other.reset();
    EXPECT_EQ(counter(client, "memory.arena_in_use"), idle) << when.count();
    expect_at_rest(client);
    expect_at_rest(server);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, CancelTest,
                         ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write));

}  // namespace
}  // namespace bx::testing
