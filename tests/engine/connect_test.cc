// SPDX-License-Identifier: BSD-3-Clause
// How workers come to share a lane, how many may, and every way in which it does not come about.
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

bool call_works(const Node& node, Session session, std::size_t size = 5000) {
  RecordedCall call;
  session.start_call(filled(node.worker(), size, 3), call);
  run_dry(node);
  return call.succeeded() && call.answer.size() == size && is_filled(call.answer.bytes(), 3);
}

class ConnectTest : public ::testing::Test {
 protected:
  Node serve(const std::string& name, Service& service, const Config& config = {}) {
    Node node = world_.add(name, config);
    EXPECT_TRUE(node.worker().serve(kPort, service).has_value());
    return node;
  }
  World world_;
  EchoService echo_;
};

TEST_F(ConnectTest, connect__again_shares_the_lane) {
  Node server = serve("server", echo_);
  Node client = world_.add("client");
  std::vector<Session> sessions;
  for (int i = 0; i < 50; ++i) sessions.push_back(connect(client, "server"));
  EXPECT_EQ(counter(client, "peers.opened"), 1);
  EXPECT_EQ(counter(server, "peers.opened"), 1);
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (const Session& session : sessions) {
    loops.push_back(std::make_unique<CallLoop>(client.worker(), session, 20, 2,
                                               [](std::uint64_t n) { return std::size_t{n * 900}; }));
    loops.back()->start();
  }
  run_dry(client);
  for (const auto& loop : loops) EXPECT_TRUE(loop->complete());
  expect_at_rest(client);
  expect_at_rest(server);
}

Task<> connect_into(Worker worker, std::string host, std::vector<Result<Session>>& out) {
  out.push_back(co_await worker.connect(host, kPort));
}

TEST_F(ConnectTest, connect__while_another_is_under_way_waits_for_it) {
  Node server = serve("server", echo_);
  Node client = world_.add("client");
  std::vector<Result<Session>> results;
  for (int i = 0; i < 5; ++i) client.worker().spawn(connect_into(client.worker(), "server", results));
  run_dry(client);
  ASSERT_EQ(results.size(), 5U);
  for (auto& result : results) EXPECT_TRUE(result && call_works(client, *result));
  EXPECT_EQ(counter(server, "peers.opened"), 1);
}

TEST_F(ConnectTest, connect__to_itself) {
  Node node = serve("node", echo_);
  const Session session = connect(node, "node");
  for (const std::size_t size : {0, 100, 5000, 300'000}) EXPECT_TRUE(call_works(node, session, size));
  expect_at_rest(node);
}

TEST_F(ConnectTest, connect__to_two_services_of_one_worker) {
  HoldingService holding;
  Node server = serve("server", echo_);
  ASSERT_TRUE(server.worker().serve(kPort + 1, holding).has_value());
  Node client = world_.add("client");
  const Session echo = connect(client, "server");
  Session hold = connect(client, "server", kPort + 1);
  RecordedCall held;
  hold.start_call(Buffer{}, held);
  client.worker().reactor().run(client.worker().now() + 1ms);
  EXPECT_EQ(holding.held.size(), 1U);
  holding.answer();
  EXPECT_TRUE(call_works(client, echo));
  EXPECT_TRUE(held.succeeded());
  EXPECT_EQ(echo_.served, 1);
}

TEST_F(ConnectTest, connect__to_nobody_is_unreachable) {
  Node client = world_.add("client");
  const Node silent = world_.add("silent");
  EXPECT_EQ(try_connect(client, "nowhere").error().code, ErrorCode::unreachable);
  EXPECT_EQ(try_connect(client, "silent").error().code, ErrorCode::unreachable);
  run_dry(client);
  client.worker().check_invariants();
  EXPECT_TRUE(client.worker().idle());
}

// A host that accepts streams and never says a word.
struct Mute final : fabric::StreamAcceptor {
  void on_accept(std::unique_ptr<fabric::Stream> stream) noexcept override {
    streams.push_back(std::move(stream));
  }
  std::vector<std::unique_ptr<fabric::Stream>> streams;
};

TEST_F(ConnectTest, connect__to_somebody_mute_ends_at_the_deadline) {
  auto host = world_.fabric.open_host("mute").value();
  Mute mute;
  const auto listener = host->streams().listen(kPort, mute).value();
  Config config;
  config.connect_deadline = 7'000'000;
  Node client = world_.add("client", config);
  const Instant before = client.worker().now();
  const auto session = try_connect(client, "mute");
  EXPECT_EQ(session.error().code, ErrorCode::deadline_exceeded);
  EXPECT_GE(client.worker().now() - before, 7ms);
  EXPECT_LT(client.worker().now() - before, 8ms);
  EXPECT_EQ(try_connect(client, "mute").error().code, ErrorCode::deadline_exceeded);  // not remembered
}

TEST_F(ConnectTest, connect__beyond_peers_max_names_the_number) {
  Config one;
  one.peers_max = 1;
  Node full = serve("full", echo_, one);
  Node a = world_.add("a", one);
  const Node b = serve("b", echo_);
  const Session session = connect(a, "full");
  Error error = try_connect(a, "b").error();  // here
  EXPECT_EQ(error.code, ErrorCode::exhausted);
  EXPECT_EQ(error.sys, 1);
  error = try_connect(b, "full").error();  // there
  EXPECT_EQ(error.code, ErrorCode::exhausted);
  EXPECT_EQ(error.sys, 1);
  EXPECT_EQ(error.scope, ErrorScope::session);
  EXPECT_TRUE(call_works(a, session));
  a.context.reset();  // its place is free again
  run_dry(full);
  EXPECT_TRUE(try_connect(b, "full").has_value());
}

TEST_F(ConnectTest, connect__without_memory_for_receives_is_exhausted_at_either_end) {
  Config poor;  // with room for the slots of one peer, about 8 MiB, and not for those of two
  poor.memory_arena = 24U << 20U;
  poor.credits_per_peer = 1024;
  poor.peers_max = 8;
  Node server = serve("server", echo_, poor);
  Node first = world_.add("first");
  EXPECT_TRUE(try_connect(first, "server").has_value());
  Node client = world_.add("client");
  const Error there = try_connect(client, "server").error();
  EXPECT_EQ(there.code, ErrorCode::exhausted);
  EXPECT_NE(std::string_view(there.detail).find("memory"), std::string_view::npos);
  Node rich = serve("rich", echo_);
  EXPECT_EQ(try_connect(server, "rich").error().code, ErrorCode::exhausted);
  server.worker().check_invariants();
}

TEST_F(ConnectTest, connect__abandoned_leaves_the_lane_for_the_next) {
  Node server = serve("server", echo_);
  Node client = world_.add("client");
  {
    Task<Result<Session>> task = connect_task(client.worker(), "server", kPort);
    Task<> outer = [](Task<Result<Session>>& inner) -> Task<> { (void)co_await inner; }(task);
    client.worker().start(outer);
    client.worker().reactor().run(client.worker().now() + 5us);
  }
  run_dry(client);
  EXPECT_TRUE(call_works(client, connect(client, "server")));
  EXPECT_EQ(counter(server, "peers.opened"), 1);
}

TEST_F(ConnectTest, close__ends_connects_under_way_and_those_to_come) {
  Node server = serve("server", echo_);
  Node client = world_.add("client");
  std::vector<Result<Session>> results;
  client.worker().spawn(connect_into(client.worker(), "server", results));
  client.worker().reactor().run(client.worker().now() + 5us);
  client.worker().close();
  run_dry(client);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error().code, ErrorCode::closed);
  EXPECT_EQ(try_connect(client, "server").error().code, ErrorCode::closed);
  EXPECT_EQ(client.worker().serve(kPort, echo_).error().code, ErrorCode::closed);
}

TEST_F(ConnectTest, close__stops_listening) {
  Node server = serve("server", echo_);
  Node client = world_.add("client");
  server.worker().close();
  EXPECT_EQ(try_connect(client, "server").error().code, ErrorCode::unreachable);
}

TEST_F(ConnectTest, serve__on_a_port_that_is_taken_or_impossible) {
  Node server = serve("server", echo_);
  EXPECT_EQ(server.worker().serve(kPort, echo_).error().code, ErrorCode::exhausted);
  EXPECT_EQ(server.worker().serve(0, echo_).error().code, ErrorCode::invalid_argument);
}

// The place of a peer that is gone goes to another, which comes to us with the epoch that the old one had.
TEST_F(ConnectTest, session__of_a_peer_that_is_gone_never_reaches_another) {
  Node a = serve("a", echo_);
  Node b = serve("b", echo_);
  Session to_b = connect(a, "b");
  b.context.reset();
  b.host.reset();
  run_dry(a);
  Node c = world_.add("c");
  const Session to_a = connect(c, "a");
  RecordedCall call;
  to_b.start_call(Buffer{}, call);
  run_dry(a);
  EXPECT_TRUE(call.failed_with(ErrorCode::closed));
  EXPECT_TRUE(call_works(c, to_a));  // and c was not harmed
}

// Buffers that the application keeps over the ends of several peers take receive slots for good; the next
// peer is refused when none are left, and admitted when they come back.
TEST_F(ConnectTest, connect__when_all_slots_are_kept_from_earlier_peers) {
  HoldingService holding;
  Config config = tiny();
  config.peers_max = 2;
  config.requests_max = 64;
  config.memory_receive = 8U << 20U;  // no more than slots and headers take: slots are lent to the last
  Node server = serve("server", holding, config);
  bool refused = false;
  for (int i = 0; i < 12 && !refused; ++i) {
    Node client = world_.add("client" + std::to_string(i), tiny());
    auto session = try_connect(client, "server");
    if (!session) {
      EXPECT_EQ(session.error().code, ErrorCode::exhausted) << session.error().detail;
      refused = true;
      break;
    }
    std::array<RecordedCall, 2> calls;
    for (RecordedCall& call : calls) session->start_call(filled(client.worker(), 250, 1), call);
    client.worker().reactor().run(client.worker().now() + 1ms);
    server.worker().check_invariants();
  }
  run_dry(server);
  EXPECT_TRUE(refused);
  holding.held.clear();
  Node client = world_.add("late", tiny());
  Session session = connect(client, "server");
  RecordedCall call;
  session.start_call(Buffer{}, call);
  client.worker().reactor().run(client.worker().now() + 1ms);
  holding.answer();
  run_dry(client);
  EXPECT_TRUE(call.succeeded());
  server.worker().check_invariants();
}

// Clients that send more requests than are served at once and then vanish leave nothing behind.
TEST_F(ConnectTest, vanish__with_requests_waiting_leaves_no_slot_behind) {
  HoldingService holding;
  Config config = tiny();
  config.peers_max = 2;
  Node server = serve("server", holding, config);
  Node first = world_.add("first", tiny());
  Session busy = connect(first, "server");
  RecordedCall kept;
  busy.start_call(Buffer{}, kept);
  first.worker().reactor().run(first.worker().now() + 1ms);
  for (int i = 0; i < 20; ++i) {
    Node client = world_.add("client" + std::to_string(i), tiny());
    Session session = connect(client, "server");
    std::array<RecordedCall, 4> calls;
    for (RecordedCall& call : calls) session.start_call(filled(client.worker(), 200, 1), call);
    client.worker().reactor().run(client.worker().now() + 1ms);
    client.context.reset();
    client.host.reset();
    server.worker().reactor().run(server.worker().now() + 1ms);
    server.worker().check_invariants();
  }
  holding.answer();
  run_dry(server);
  EXPECT_TRUE(kept.succeeded());
  EXPECT_TRUE(server.worker().idle());
}

}  // namespace
}  // namespace bx::testing
