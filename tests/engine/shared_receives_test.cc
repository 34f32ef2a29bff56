// SPDX-License-Identifier: BSD-3-Clause
// Receives that all peers of a worker share, granted when asked for; and ends whose depths differ.
#include <array>

#include "tests/engine/raw_peer.h"

namespace bx::testing {
namespace {

// Each of four peers is entitled to six receives, has two from the start, and may borrow up to twelve.
Config shared() {
  Config config;
  config.credits_mode = static_cast<std::uint64_t>(CreditMode::shared);
  config.peers_max = 4;
  config.credits_pool = 24;
  config.credits_floor = 2;
  config.credits_per_peer = 12;
  config.coalesce_max = 0;
  return config;
}

std::size_t small(std::uint64_t n) {
  return n % 97;
}

class SharedReceivesTest : public ::testing::Test {
 protected:
  // Long enough for all that can happen before somebody is asked to answer.
  static void world_run(const Node& any) {
    any.worker().reactor().run(any.worker().now() + std::chrono::milliseconds(1));
  }
  Node serve(const std::string& name, Service& service, const Config& config) {
    Node node = world_.add(name, config);
    EXPECT_TRUE(node.worker().serve(kPort, service).has_value());
    return node;
  }
  World world_;
  EchoService echo_;
};

Duration time_of_many_calls(const Config& of_server) {
  World world;
  EchoService echo;
  Node server = world.add("server", of_server);
  EXPECT_TRUE(server.worker().serve(kPort, echo).has_value());
  Config config;
  config.coalesce_max = 0;
  Node client = world.add("client", config);
  CallLoop loop(client.worker(), connect(client, "server"), 400, 32, small);
  const Instant began = client.worker().now();
  loop.start();
  run_dry(client);
  EXPECT_TRUE(loop.complete());
  expect_at_rest(client);
  expect_at_rest(server);
  return client.worker().now() - began;
}

TEST_F(SharedReceivesTest, lone_talker__borrows_what_nobody_uses) {
  Node server = serve("server", echo_, shared());
  Config config;
  config.coalesce_max = 0;
  Node client = world_.add("client", config);
  CallLoop loop(client.worker(), connect(client, "server"), 400, 32, small);
  loop.start();
  run_dry(client);
  EXPECT_TRUE(loop.complete());
  EXPECT_GT(counter(client, "credits.requests_sent"), 0);
  EXPECT_EQ(counter(client, "credits.requests_sent"), counter(server, "credits.requests_received"));
  EXPECT_GT(counter(server, "credits.lent"), 0);
  expect_at_rest(client);
  expect_at_rest(server);
  Config only_floor = shared();  // what it would have without asking
  only_floor.credits_per_peer = only_floor.credits_floor;
  EXPECT_LT(time_of_many_calls(shared()), time_of_many_calls(only_floor));
}

// Messages that wait in their receives, of a peer that has borrowed all there is to borrow, cost another
// nothing of its floor.
TEST_F(SharedReceivesTest, quiet_peer__finds_its_floor_whatever_the_others_hold) {
  Config config = shared();
  config.receive_spare = 0;
  config.requests_max = 1;
  HoldingService holding;
  Node server = serve("server", holding, config);
  Config of_client;
  of_client.coalesce_max = 0;
  Node greedy = world_.add("greedy", of_client);
  Node quiet = world_.add("quiet", of_client);
  Session from_greedy = connect(greedy, "server");
  Session from_quiet = connect(quiet, "server");
  std::vector<std::unique_ptr<RecordedCall>> many;
  for (std::uint64_t i = 0; i < 50; ++i) {
    many.push_back(std::make_unique<RecordedCall>());
    from_greedy.start_call(filled(greedy.worker(), 50, i), *many.back());
  }
  world_run(greedy);
  EXPECT_EQ(holding.held.size(), 1U);
  const double before = counter(server, "messages.received");
  EXPECT_GT(before, config.credits_floor);
  RecordedCall one;
  from_quiet.start_call(filled(quiet.worker(), 50, 7), one);
  world_run(quiet);
  EXPECT_EQ(counter(server, "messages.received"), before + 1);
  for (int i = 0; i < 51; ++i) {
    holding.answer();
    world_run(greedy);
  }
  run_dry(greedy);
  EXPECT_TRUE(one.succeeded());
  for (const auto& call : many) EXPECT_TRUE(call->succeeded());
  expect_at_rest(server);
}

TEST_F(SharedReceivesTest, many_peers__all_go_on_over_a_pool_of_floors) {
  Config config = shared();
  config.credits_pool = 8;
  config.receive_spare = 0;
  config.requests_max = 2;
  Node server = serve("server", echo_, config);
  std::vector<Node> clients;
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(world_.add("client" + std::to_string(i), config));
    loops.push_back(std::make_unique<CallLoop>(
        clients.back().worker(), connect(clients.back(), "server"), 200, 10, [](std::uint64_t n) {
          return std::array<std::size_t, 4>{0, 100, 3000, 20'000}[n % 4];
        }));
  }
  for (auto& loop : loops) loop->start();
  run_dry(server);
  for (const auto& loop : loops) EXPECT_TRUE(loop->complete());
  expect_at_rest(server);
  for (const Node& client : clients) expect_at_rest(client);
}

// A peer that goes while messages of it wait in their receives, and others are with the application: the pool
// is whole again, and its place the next one's.
TEST_F(SharedReceivesTest, peer_gone__its_receives_are_the_pools) {
  Config config = shared();
  config.peers_max = 1;
  config.credits_pool = 12;
  config.receive_spare = 2;
  config.lend_percent = 100;
  config.requests_max = 3;
  for (int round = 0; round < 4; ++round) {
    HoldingService holding;
    World world;
    Node server = world.add("server", config);
    ASSERT_TRUE(server.worker().serve(kPort, holding).has_value());
    for (int i = 0; i < 5; ++i) {
      Node client = world.add("client" + std::to_string(i));
      Session session = connect(client, "server");
      std::vector<std::unique_ptr<RecordedCall>> calls;
      for (std::uint64_t n = 0; n < 30; ++n) {
        calls.push_back(std::make_unique<RecordedCall>());
        session.start_call(filled(client.worker(), 3000, n), *calls.back());
      }
      world_run(client);
      EXPECT_EQ(holding.held.size(), 3U);
      if (round % 2 == 0) holding.answer();
      calls.clear();
      client.context.reset();
      run_dry(server);
      server.worker().check_invariants();
      holding.held.clear();
      run_dry(server);
      EXPECT_TRUE(server.worker().idle());
      server.worker().check_invariants();
    }
  }
}

// A peer that speaks the protocol as it was before requests for credit is never granted more than it was told
// of at the start, and one that asks is.
TEST_F(SharedReceivesTest, grants__go_beyond_the_start_only_for_who_knows_of_it) {
  for (const bool knows : {false, true}) {
    Node server = serve("server" + std::to_string(knows), echo_, shared());
    RawPeer raw(world_, "raw" + std::to_string(knows));
    if (knows) raw.hello.capabilities = wire::kCapabilityCreditRequests;
    raw.connect("server" + std::to_string(knows), kPort);
    world_run(server);
    const auto& theirs = std::get<wire::Hello>(raw.heard.at(0));
    EXPECT_EQ(theirs.credits, 2U);
    EXPECT_EQ(theirs.credits_max, knows ? 12U : 0U);
    wire::Message request = raw.message(wire::MessageKind::request);
    request.header.flags = wire::MessageFlags::asks_now;
    raw.send(request);
    world_run(server);
    std::uint32_t granted = 0;
    for (const auto& one : raw.received()) granted = std::max(granted, one.message.header.credit_grant);
    EXPECT_EQ(granted, knows ? 12U : 3U);
    EXPECT_FALSE(raw.failed());
  }
}

TEST_F(SharedReceivesTest, hostile_sender__without_a_credit_loses_its_lane_only) {
  Node server = serve("server", echo_, shared());
  Node client = world_.add("client", shared());
  Session session = connect(client, "server");
  RawPeer raw(world_, "raw");
  raw.hello.capabilities = wire::kCapabilityCreditRequests;
  raw.connect("server", kPort);
  world_run(server);
  for (int i = 0; i < 12; ++i) raw.send(raw.message(wire::MessageKind::request));
  CallLoop loop(client.worker(), session, 300, 20, small);
  loop.start();
  run_dry(client);
  EXPECT_TRUE(loop.complete());
  EXPECT_TRUE(raw.stream_lost());
  EXPECT_EQ(counter(server, "peers.failed"), 1);
  EXPECT_TRUE(server.worker().idle());
  server.worker().check_invariants();
}

// Each end goes by the depth of the other.
TEST_F(SharedReceivesTest, depths__may_differ_between_the_ends) {
  Config deep;
  deep.credits_per_peer = 200;
  deep.send_depth = 16;
  Config shallow;
  shallow.credits_per_peer = 2;
  shallow.receive_spare = 0;
  const std::array<Config, 3> configs = {deep, shallow, shared()};
  int pair = 0;
  for (const Config& of_server : configs) {
    for (const Config& of_client : configs) {
      SCOPED_TRACE(pair);
      const std::string name = std::to_string(pair++);
      EchoService there;
      EchoService here;
      Node server = serve("server" + name, there, of_server);
      Node client = serve("client" + name, here, of_client);
      CallLoop to_server(client.worker(), connect(client, "server" + name), 300, 30, small);
      CallLoop to_client(server.worker(), connect(server, "client" + name), 300, 30, small);
      to_server.start();
      to_client.start();
      run_dry(client);
      EXPECT_TRUE(to_server.complete());
      EXPECT_TRUE(to_client.complete());
      expect_at_rest(client);
      expect_at_rest(server);
    }
  }
}

TEST_F(SharedReceivesTest, ask__of_a_peer_with_receives_of_its_own_brings_grants_earlier_and_no_more) {
  Config config;
  config.coalesce_max = 0;
  config.credits_per_peer = 8;
  Node server = serve("server", echo_, config);
  config.credits_ask = 1;
  Node client = world_.add("client", config);
  CallLoop loop(client.worker(), connect(client, "server"), 400, 32, small);
  loop.start();
  run_dry(client);
  EXPECT_TRUE(loop.complete());
  EXPECT_GT(counter(server, "credits.requests_received"), 0);
  EXPECT_EQ(counter(server, "credits.lent"), 0);
  expect_at_rest(client);
  expect_at_rest(server);
}

TEST_F(SharedReceivesTest, create__refuses_a_pool_that_is_less_than_the_floors) {
  Config config = shared();
  config.peers_max = 13;
  auto host = world_.fabric.open_host("host").value();
  const auto context = Context::create(*host, config);
  ASSERT_FALSE(context.has_value());
  EXPECT_EQ(context.error().code, ErrorCode::exhausted);
  EXPECT_EQ(context.error().sys, 26);  // that many would do
  EXPECT_NE(std::string_view(context.error().detail).find("credits.pool"), std::string_view::npos);
  config = shared();
  config.credits_per_peer = 2;
  config.credits_floor = 3;
  const auto contradiction = Context::create(*host, config);
  ASSERT_FALSE(contradiction.has_value());
  EXPECT_NE(std::string_view(contradiction.error().detail).find("credits.floor"), std::string_view::npos);
}

}  // namespace
}  // namespace bx::testing
