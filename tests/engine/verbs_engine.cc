// SPDX-License-Identifier: BSD-3-Clause
// What matters most of the engine, over RDMA devices: `scripts/rxe -n 4
// build/release/tests/engine/verbs_engine_tests`. All hosts are in this process and on one thread; the
// packets between them are real.
#include "libbx/providers/verbs/verbs_fabric.h"
#include "tests/engine/sizes.h"
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

class VerbsEngine : public ::testing::TestWithParam<RendezvousPolicy> {
 protected:
  void make(const char* prefix = "10.77.0.") {
    verbs::VerbsConfig config;
    for (int i = 1; i <= 4; ++i) {
      config.hosts.push_back({.name = name(i), .address = prefix + std::to_string(i)});
    }
    auto made = verbs::VerbsFabric::create(config);
    ASSERT_TRUE(made.has_value()) << made.error().detail;
    fabric_ = std::move(*made);
  }
  static Config with_policy(Config config) {
    config.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
    config.path_ack_timeout = 16;  // 0.27 s: an emulated machine may stand still for a while
    return config;
  }
  static std::string name(int number) { return "host" + std::to_string(number); }
  Node add(int number, const Config& config) { return open_node(*fabric_, name(number), config); }
  template <class Done>
  static bool run_until(const Node& any, Done done) {
    fabric::Reactor& reactor = any.worker().reactor();
    const Instant end = reactor.now() + 60s;
    while (!done() && reactor.now() < end) reactor.run(reactor.now() + 200us);
    return done();
  }
  template <class... Nodes>
  static void expect_all_at_rest(const Nodes&... nodes) {
    const Node* const all[] = {&nodes...};
    for (const Node* node : all) EXPECT_TRUE(run_until(*node, [&] { return node->worker().idle(); }));
    for (const Node* node : all) expect_at_rest(*node);
  }

  std::unique_ptr<verbs::VerbsFabric> fabric_;
};

TEST_P(VerbsEngine, calls_of_every_size__return_what_was_sent) {
  make();
  EchoService echo;
  Node server = add(1, with_policy({}));
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = add(2, with_policy({}));
  Session session = connect(client, name(1));
  for (const std::size_t size : {0, 1, 63, 64, 192, 193, 4096, 8192, 8193, 65'536, 65'537, 1 << 20}) {
    RecordedCall call;
    session.start_call(filled(client.worker(), size, size), call);
    ASSERT_TRUE(run_until(client, [&] { return call.done(); })) << size;
    ASSERT_TRUE(call.succeeded()) << size << (call.error ? call.error->detail : "");
    EXPECT_EQ(call.answer.size(), size);
    EXPECT_TRUE(is_filled(call.answer.bytes(), size));
  }
  expect_all_at_rest(client, server);
}

TEST_P(VerbsEngine, both_ways_with_tiny_limits__every_call_completes) {
  make();
  EchoService echo_a;
  EchoService echo_b;
  Node a = add(1, with_policy(tiny()));
  Node b = add(2, with_policy(tiny()));
  ASSERT_TRUE(a.worker().serve(kPort, echo_a).has_value());
  ASSERT_TRUE(b.worker().serve(kPort, echo_b).has_value());
  CallLoop to_b(a.worker(), connect(a, name(2)), 200, 20, mixed);
  CallLoop to_a(b.worker(), connect(b, name(1)), 200, 20, mixed);
  to_b.start();
  to_a.start();
  EXPECT_TRUE(run_until(a, [&] { return to_b.complete() && to_a.complete(); }))
      << to_b.succeeded << " and " << to_a.succeeded << " of 200";
  expect_all_at_rest(a, b);
}

TEST_P(VerbsEngine, three_servers_to_one_client__every_answer_arrives) {
  make();
  EchoService echo;
  std::vector<Node> servers;
  for (int i = 1; i <= 3; ++i) {
    servers.push_back(add(i, with_policy({})));
    ASSERT_TRUE(servers.back().worker().serve(kPort, echo).has_value());
  }
  Node client = add(4, with_policy({}));
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (int i = 1; i <= 3; ++i) {
    loops.push_back(std::make_unique<CallLoop>(client.worker(), connect(client, name(i)), 100, 16, mixed));
  }
  for (auto& loop : loops) loop->start();
  EXPECT_TRUE(run_until(
      client, [&] { return std::ranges::all_of(loops, [](const auto& loop) { return loop->complete(); }); }));
  expect_all_at_rest(client, servers[0], servers[1], servers[2]);
}

TEST_P(VerbsEngine, close__ends_each_call_of_the_peer_once) {
  make();
  HoldingService holding;
  Node server = add(1, with_policy({}));
  ASSERT_TRUE(server.worker().serve(kPort, holding).has_value());
  Node client = add(2, with_policy({}));
  Session session = connect(client, name(1));
  std::array<RecordedCall, 8> calls;
  for (std::uint64_t i = 0; i < calls.size(); ++i) {
    session.start_call(filled(client.worker(), mixed(i), i), calls[i]);
  }
  ASSERT_TRUE(run_until(client, [&] { return holding.held.size() == calls.size(); }));
  holding.held.clear();  // unanswered: each caller is told `cancelled`
  server.worker().close();
  const auto done = [&] { return std::ranges::all_of(calls, [](const auto& call) { return call.done(); }); };
  EXPECT_TRUE(run_until(client, done));
  for (RecordedCall& call : calls) EXPECT_EQ(call.completions, 1);
  EXPECT_TRUE(run_until(client, [&] { return client.worker().idle() && server.worker().idle(); }));
}

TEST_P(VerbsEngine, ipv6__fabric_works) {
  make("fd77::");
  EchoService echo;
  Node server = add(1, with_policy({}));
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = add(2, with_policy({}));
  CallLoop loop(client.worker(), connect(client, name(1)), 50, 4, mixed);
  loop.start();
  EXPECT_TRUE(run_until(client, [&] { return loop.complete(); }));
  expect_all_at_rest(client, server);
}

INSTANTIATE_TEST_SUITE_P(policies, VerbsEngine,
                         ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write),
                         [](const auto& policy) {
                           return policy.param == RendezvousPolicy::pull ? "pull" : "granted_write";
                         });

}  // namespace
}  // namespace bx::testing
