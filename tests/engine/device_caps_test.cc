// SPDX-License-Identifier: BSD-3-Clause
// Devices that can do less than what the knobs ask for: every message arrives all the same.
#include "tests/engine/sizes.h"
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

struct Device {
  const char* name;
  fabric::DeviceCaps caps;
};

fabric::DeviceCaps caps_of(std::uint64_t message_bytes, std::uint32_t inlined, std::uint32_t elements) {
  fabric::DeviceCaps caps = loopback::kDefaultCaps;
  caps.message_bytes_max = message_bytes;
  caps.inline_max = inlined;
  caps.sges_max = elements;
  return caps;
}

class DeviceCapsTest : public ::testing::TestWithParam<std::tuple<Device, RendezvousPolicy>> {};

TEST_P(DeviceCapsTest, calls__of_every_size_return_what_was_sent) {
  const auto& [device, policy] = GetParam();
  loopback::LoopbackConfig network;
  network.caps = device.caps;
  World world(network);
  Config config;
  config.rendezvous_policy = static_cast<std::uint64_t>(policy);
  EchoService echo;
  const Node server = world.add("server", config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  const Node client = world.add("client", config);
  Session session = connect(client, "server");
  for (const std::size_t size : {0, 1, 36, 37, 192, 193, 938, 939, 1000, 1001, 8192, 8193, 100'000}) {
    RecordedCall call;
    session.start_call(filled(client.worker(), size, size), call);
    run_dry(client);
    ASSERT_TRUE(call.succeeded()) << size;
    EXPECT_TRUE(call.answer.size() == size && is_filled(std::as_const(call.answer).bytes(), size)) << size;
    RecordedCall parts;
    session.start_call(Gather(filled(client.worker(), size, 1), filled(client.worker(), size, 2)), parts);
    run_dry(client);
    ASSERT_TRUE(parts.succeeded()) << size;
    const auto bytes = std::as_const(parts.answer).bytes();
    ASSERT_EQ(bytes.size(), 2 * size);
    EXPECT_TRUE(is_filled(bytes.first(size), 1) && is_filled(bytes.last(size), 2)) << size;
  }
  CallLoop loop(client.worker(), session, 500, 20, mixed);  // many at once, some of them behind one another
  loop.start();
  run_dry(client);
  EXPECT_TRUE(loop.complete());
  expect_at_rest(client);
  expect_at_rest(server);
}

INSTANTIATE_TEST_SUITE_P(
    Caps, DeviceCapsTest,
    ::testing::Combine(::testing::Values(Device{"short_messages", caps_of(1000, 256, 16)},
                                         Device{"inlines_nothing", caps_of(1U << 30U, 0, 16)},
                                         Device{"inlines_little", caps_of(1U << 30U, 64, 16)},
                                         Device{"two_elements", caps_of(1U << 30U, 256, 2)}),
                       ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write)),
    [](const auto& way) {
      return std::string(std::get<0>(way.param).name) +
             (std::get<1>(way.param) == RendezvousPolicy::pull ? "_pull" : "_granted_write");
    });

TEST(DeviceCaps, messages__too_short_for_any_are_refused_with_the_number) {
  loopback::LoopbackConfig network;
  network.caps.message_bytes_max = 256;
  loopback::LoopbackFabric fabric(network);
  auto host = fabric.open_host("host").value();
  const auto context = Context::create(*host, {});
  ASSERT_FALSE(context.has_value());
  EXPECT_EQ(context.error().code, ErrorCode::unsupported);
  EXPECT_EQ(context.error().sys, 256);
}

}  // namespace
}  // namespace bx::testing
