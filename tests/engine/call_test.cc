// SPDX-License-Identifier: BSD-3-Clause
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

struct Case {
  std::size_t size;
  RendezvousPolicy policy;
};

class CallOfSize : public ::testing::TestWithParam<std::tuple<std::size_t, RendezvousPolicy>> {};

Task<Result<Buffer>> echo_once(Worker worker, std::size_t size) {
  auto session = co_await worker.connect("server", kPort);
  if (!session) co_return tl::unexpected<Error>(session.error());
  co_return co_await session->call(filled(worker, size, size));
}

TEST_P(CallOfSize, call__returns_what_the_service_sent) {
  const auto [size, policy] = GetParam();
  Config config;
  config.rendezvous_policy = static_cast<std::uint64_t>(policy);
  World world;
  EchoService echo;
  Node server = world.add("server", config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = world.add("client", config);
  {
    auto answer = block_on(client.worker(), echo_once(client.worker(), size), Instant(60s));
    ASSERT_TRUE(answer.has_value()) << answer.error().detail;
    ASSERT_TRUE(answer->has_value()) << answer->error().detail;
    EXPECT_EQ((*answer)->size(), size);
    EXPECT_TRUE(is_filled((*answer)->bytes(), size));
  }
  client.worker().reactor().run(kNever);  // what is left: ends of transfers, acknowledgements
  EXPECT_EQ(echo.served, 1);
  EXPECT_TRUE(client.worker().idle());
  EXPECT_TRUE(server.worker().idle());
  client.worker().check_invariants();
  server.worker().check_invariants();
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, CallOfSize,
    ::testing::Combine(::testing::Values(0, 1, 63, 64, 192, 193, 220, 4095, 4096, 8192, 8193, 65536, 65537,
                                         1U << 20U, (4U << 20U) + 1, 64U << 20U),
                       ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write)),
    [](const auto& param) {
      return std::to_string(std::get<0>(param.param)) +
             (std::get<1>(param.param) == RendezvousPolicy::pull ? "_pull" : "_granted_write");
    });

}  // namespace
}  // namespace bx::testing
