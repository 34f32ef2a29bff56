// SPDX-License-Identifier: BSD-3-Clause
// Several lanes to a peer, and a control lane: how many come about, that everything works over them, that a
// session keeps to one, and that they end together.
#include <algorithm>
#include <array>
#include <ostream>

#include "libbx/fabric/fault_fabric.h"
#include "tests/engine/raw_peer.h"
#include "tests/observe/recorded_log.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

Config lanes(std::uint64_t data, bool control, Config config = {}) {
  config.lanes_per_peer = data;
  config.lanes_control = control ? 1 : 0;
  return config;
}

// The lines of a worker's dump that begin with a word.
std::vector<std::string> dumped(const Node& node, std::string_view object) {
  RecordedLog sink;
  node.worker().dump(sink);
  std::erase_if(sink.dumped, [&](const std::string& line) {
    return line.find(std::string(object) + " ") == std::string::npos || line.find("qp=") == std::string::npos;
  });
  return sink.dumped;
}
std::size_t lanes_of(const Node& node, std::string_view carries) {
  const auto lines = dumped(node, "lane");
  return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find("carries=" + std::string(carries)) != std::string::npos;
  }));
}

// Requests posted on each lane of a worker, the control lane last.
struct LanePosts final : LabelledMetricSink {
  void metric(const LabelledMetric& metric, double value) override {
    if (metric.name == "lane.requests_posted") posted.push_back(value);
  }
  void histogram(const LabelledMetric& /*metric*/, const LogHistogram& /*values*/) override {}
  std::vector<double> posted;
};
std::vector<double> posts_of(const Node& node) {
  LanePosts sink;
  node.worker().report(sink);
  return sink.posted;
}

struct Ends {
  std::uint64_t here_data;
  bool here_control;
  std::uint64_t there_data;
  bool there_control;
};

TEST(Lanes, connect__takes_what_both_ends_have) {
  for (const Ends& ends : {Ends{1, false, 1, false}, Ends{4, false, 4, false}, Ends{8, true, 8, true},
                           Ends{4, true, 2, true}, Ends{2, true, 4, true}, Ends{4, true, 1, false},
                           Ends{1, true, 4, true}, Ends{3, true, 3, false}, Ends{3, false, 2, true}}) {
    World world;
    EchoService echo;
    Node server = world.add("server", lanes(ends.there_data, ends.there_control));
    ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
    Node client = world.add("client", lanes(ends.here_data, ends.here_control));
    std::vector<std::unique_ptr<CallLoop>> loops;
    for (int i = 0; i < 9; ++i) {
      loops.push_back(
          std::make_unique<CallLoop>(client.worker(), connect(client, "server"), 40, 3,
                                     [](std::uint64_t n) { return std::size_t{(n * 1777) % 30'000}; }));
      loops.back()->start();
    }
    run_dry(client);
    for (const auto& loop : loops) EXPECT_TRUE(loop->complete());
    const std::size_t data = std::min(ends.here_data, ends.there_data);
    const std::size_t control = ends.here_control && ends.there_control ? 1 : 0;
    for (const Node* node : {&client, &server}) {
      EXPECT_EQ(lanes_of(*node, "data"), data);
      EXPECT_EQ(lanes_of(*node, "control"), control);
      const auto posts = posts_of(*node);
      EXPECT_TRUE(std::all_of(posts.begin(), posts.end(), [](double count) { return count > 0; }));
      expect_at_rest(*node);
    }
  }
}

// Everything waits for everything, over more than one lane.
struct Load {
  const char* name;
  RendezvousPolicy policy;
  std::uint64_t data;
  bool control;
};
void PrintTo(const Load& load, std::ostream* out) {
  *out << load.name;
}
class TinyLanes : public ::testing::TestWithParam<Load> {
 protected:
  static Config config() {
    Config config = lanes(GetParam().data, GetParam().control, tiny());
    config.rendezvous_policy = static_cast<std::uint64_t>(GetParam().policy);
    return config;
  }
};
std::size_t mixed(std::uint64_t n) {
  constexpr std::array<std::size_t, 7> kSizes = {0, 1, 200, 256, 257, 4097, 20'000};
  return kSizes[(n * 5 + n / 7) % kSizes.size()];
}

TEST_P(TinyLanes, both_ways__every_call_of_every_session_completes) {
  World world;
  EchoService echo_a;
  EchoService echo_b;
  Node a = world.add("a", config());
  Node b = world.add("b", config());
  ASSERT_TRUE(a.worker().serve(kPort, echo_a).has_value());
  ASSERT_TRUE(b.worker().serve(kPort, echo_b).has_value());
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (int i = 0; i < 5; ++i) {
    loops.push_back(std::make_unique<CallLoop>(a.worker(), connect(a, "b"), 300, 7, mixed));
    loops.push_back(std::make_unique<CallLoop>(b.worker(), connect(b, "a"), 300, 7, mixed));
  }
  for (auto& loop : loops) loop->start();
  run_dry(a);
  for (const auto& loop : loops) {
    EXPECT_TRUE(loop->complete()) << (loop->first_error ? loop->first_error->detail : "no error");
  }
  expect_at_rest(a);
  expect_at_rest(b);
}

INSTANTIATE_TEST_SUITE_P(Loads, TinyLanes,
                         ::testing::Values(Load{"pull_3", RendezvousPolicy::pull, 3, false},
                                           Load{"pull_1_control", RendezvousPolicy::pull, 1, true},
                                           Load{"pull_4_control", RendezvousPolicy::pull, 4, true},
                                           Load{"write_3", RendezvousPolicy::granted_write, 3, false},
                                           Load{"write_1_control", RendezvousPolicy::granted_write, 1, true},
                                           Load{"write_4_control", RendezvousPolicy::granted_write, 4, true}),
                         [](const auto& param) { return std::string(param.param.name); });

// A session's messages go over one lane both ways, and another session's over the next.
TEST(Lanes, session__keeps_to_its_lane) {
  World world;
  EchoService echo;
  Node server = world.add("server", lanes(2, false));
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = world.add("client", lanes(2, false));
  const Session first = connect(client, "server");
  const Session second = connect(client, "server");
  const auto run = [&](Session session) {
    CallLoop loop(client.worker(), session, 100, 8, [](std::uint64_t n) { return std::size_t{n * 90}; });
    loop.start();
    run_dry(client);
    EXPECT_TRUE(loop.complete());
  };
  run(second);
  for (const Node* node : {&client, &server}) {
    const auto posts = posts_of(*node);
    ASSERT_EQ(posts.size(), 2U);
    EXPECT_LE(posts[0], 50);  // grants without a message to ride on
    EXPECT_GE(posts[1], 12);
  }
  const auto before = posts_of(client);
  run(first);
  const auto after = posts_of(client);
  EXPECT_GT(after[0], before[0]);
  EXPECT_EQ(after[1], before[1]);
}

// The peer's program looks at memory when a message of the same session says so; the put was not waited for.
TEST(Lanes, put__is_visible_to_the_message_behind_it) {
  World world;
  HoldingService holding;
  const Config config = lanes(4, true);
  Node server = world.add("server", config);
  ASSERT_TRUE(server.worker().serve(kPort, holding).has_value());
  Node client = world.add("client", config);
  for (std::uint64_t salt = 1; salt <= 6; ++salt) {
    Session session = connect(client, "server");
    Exposed table = server.worker().expose(filled(server.worker(), 3000, 99)).value();
    RecordedCall put;
    session.start_put(filled(client.worker(), 3000, salt), table.remote(), put);
    while (!put.done()) client.worker().reactor().run(client.worker().now() + 1us);
    RecordedCall call;
    session.start_call(Buffer{}, call);
    while (holding.held.empty()) client.worker().reactor().run(client.worker().now() + 100ns);
    EXPECT_TRUE(is_filled(table.bytes(), salt));
    holding.answer();
    run_dry(client);
    EXPECT_TRUE(call.succeeded());
  }
}

// Control: ends and grants of transfers, and pure grants. Nothing else.
TEST(Lanes, control_lane__carries_what_ends_and_grants) {
  World world;
  EchoService echo;
  Config config = lanes(1, true);
  config.rendezvous_policy = static_cast<std::uint64_t>(RendezvousPolicy::granted_write);
  Node server = world.add("server", config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = world.add("client", config);
  RecordedCall small;
  Session session = connect(client, "server");
  session.start_call(filled(client.worker(), 64, 1), small);
  run_dry(client);
  EXPECT_TRUE(small.succeeded());
  for (const Node* node : {&client, &server}) {
    EXPECT_EQ(posts_of(*node), (std::vector<double>{1, 0}));
  }
  RecordedCall large;
  session.start_call(filled(client.worker(), 65'536, 1), large);
  run_dry(client);
  EXPECT_TRUE(large.succeeded());
  // Request: offer, WRITE and announcement; answer: the same the other way. Each end grants one WRITE and
  // ends one transfer over the control lane.
  for (const Node* node : {&client, &server}) {
    const auto posts = posts_of(*node);
    EXPECT_EQ(posts[0], 1 + 3);
    EXPECT_GE(posts[1], 2);
    EXPECT_LE(posts[1], 4);
    expect_at_rest(*node);
  }
}

// " qp=0x11" of a line.
std::string qp_in(const std::string& line) {
  const std::size_t from = line.find(" qp=");
  return from == std::string::npos ? "" : line.substr(from, line.find(' ', from + 1) - from);
}

// A fabric that notes the traffic classes its queue pairs are connected with, in order.
class ClassNotingFabric final : public fabric::FabricDecorator {
 public:
  using FabricDecorator::FabricDecorator;
  std::vector<int> classes;

 protected:
  std::unique_ptr<fabric::Host> decorate_host(std::unique_ptr<fabric::Host> inner) override {
    return std::make_unique<NotingHost>(std::move(inner), classes);
  }

 private:
  struct NotingQp final : fabric::QpDecorator {
    NotingQp(std::unique_ptr<fabric::QueuePair> inner, std::vector<int>& noted)
        : QpDecorator(std::move(inner)), classes(noted) {}
    Result<> connect(const fabric::QpAddress& peer, const fabric::PathConfig& path) override {
      classes.push_back(path.traffic_class);
      return QpDecorator::connect(peer, path);
    }
    std::vector<int>& classes;
  };
  struct NotingDevice final : fabric::DeviceDecorator {
    NotingDevice(fabric::Device& inner, std::vector<int>& noted) : DeviceDecorator(inner), classes(noted) {}
    std::unique_ptr<fabric::QpDecorator> decorate_qp(std::unique_ptr<fabric::QueuePair> inner,
                                                     const fabric::QpConfig& /*config*/) override {
      return std::make_unique<NotingQp>(std::move(inner), classes);
    }
    std::vector<int>& classes;
  };
  struct NotingHost final : fabric::HostDecorator {
    NotingHost(std::unique_ptr<fabric::Host> inner, std::vector<int>& noted)
        : HostDecorator(std::move(inner)), noting(HostDecorator::inner().device(), noted) {}
    fabric::Device& device() noexcept override { return noting; }
    NotingDevice noting;
  };
};

TEST(Lanes, control_lane__has_a_traffic_class_of_its_own) {
  ClassNotingFabric noting(std::make_unique<loopback::LoopbackFabric>());
  EchoService echo;
  Config config = lanes(2, true);
  config.path_traffic_class = 96;
  config.path_control_traffic_class = 184;
  Node server = open_node(noting, "server", config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = open_node(noting, "client", config);
  EXPECT_TRUE(connect(client, "server").connected());
  EXPECT_EQ(noting.classes, (std::vector<int>{96, 96, 184, 96, 96, 184}));
}

// Whichever lane breaks, the peer goes with all of them, and its place is free for a newcomer.
TEST(Lanes, failure__of_any_lane_ends_the_peer_and_all_drain) {
  std::array<bool, 4> struck{};
  for (std::uint64_t nth = 1; nth <= 16; ++nth) {
    fabric::FaultPlan plan;
    plan.planned.push_back({fabric::FaultKind::queue_pair_failure, nth, "client"});
    fabric::FaultFabric faulty(std::make_unique<loopback::LoopbackFabric>(), plan);
    EchoService echo;
    Config config = lanes(3, true);
    config.peers_max = 1;
    Node server = open_node(faulty, "server", config);
    ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
    Node client = open_node(faulty, "client", config);
    RecordedLog log;
    client.worker().set_log(&log);
    std::array<RecordedCall, 6> calls;
    std::array<Session, 6> sessions;
    for (Session& session : sessions) session = connect(client, "server");
    for (std::size_t i = 0; i < calls.size(); ++i) {
      sessions[i].start_call(filled(client.worker(), i % 2 == 0 ? 5000 : 200'000, 1), calls[i]);
    }
    const auto lines = dumped(client, "lane");
    run_dry(client);
    ASSERT_EQ(lines.size(), 4U);
    ASSERT_EQ(faulty.injected(fabric::FaultKind::queue_pair_failure), 1U);
    for (const RecordedCall& call : calls) EXPECT_EQ(call.completions, 1);
    ASSERT_EQ(log.errors.size(), 1U);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (qp_in(lines[i]) == qp_in(log.errors[0])) struck[i] = true;
    }
    for (const Node* node : {&client, &server}) {
      EXPECT_EQ(counter(*node, "peers.failed"), 1);
      EXPECT_TRUE(dumped(*node, "lane").empty());
      EXPECT_TRUE(node->worker().idle());
      node->worker().check_invariants();
    }
    CallLoop loop(client.worker(), connect(client, "server"), 20, 4, mixed);
    loop.start();
    run_dry(client);
    EXPECT_TRUE(loop.complete());
  }
  EXPECT_EQ(std::count(struck.begin(), struck.end(), true), 4);
}

TEST(Lanes, create__refuses_lanes_that_the_completion_queue_cannot_hold_and_says_how_many_it_can) {
  loopback::LoopbackConfig fabric;
  fabric.caps.cq_depth_max = 64 * (3 * 128 + 18) + 17;
  World world(fabric);
  auto host = world.fabric.open_host("host").value();
  const auto refused = Context::create(*host, lanes(3, true));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_EQ(refused.error().sys, 3);
  EXPECT_NE(std::string_view(refused.error().detail).find("lanes.per_peer"), std::string_view::npos);
  EXPECT_TRUE(Context::create(*host, lanes(2, true)).has_value());
}

// A peer of before there were several lanes says nothing of them, and gets one.
TEST(Lanes, old_peer__is_spoken_to_over_one_lane) {
  World world;
  EchoService echo;
  Node server = world.add("server", lanes(4, true));
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  RawPeer caller(world, "caller");
  caller.connect("server", kPort);
  run_dry(server);
  EXPECT_EQ(dumped(server, "lane").size(), 1U);
  wire::Message request = caller.message(wire::MessageKind::request);
  request.header.session = 7;
  request.header.call = 5;
  caller.send(request, std::array<std::byte, 3>{});
  run_dry(server);
  const auto answers = caller.received();
  ASSERT_FALSE(answers.empty());
  EXPECT_EQ(answers.front().message.header.kind, wire::MessageKind::response);
  EXPECT_EQ(answers.front().message.header.call, 5U);

  RawPeer old(world, "old");
  old.listen(kPort);
  Node client = world.add("client", lanes(4, true));
  const Session session = connect(client, "old");
  EXPECT_TRUE(session.connected());
  EXPECT_EQ(lanes_of(client, "data"), 1U);
  EXPECT_EQ(lanes_of(client, "control"), 0U);
}

TEST(Lanes, acceptor_that_takes_more_than_offered__is_refused) {
  World world;
  RawPeer greedy(world, "greedy");
  greedy.hello.more_lanes.count = 2;
  greedy.hello.more_lanes.at[0] = greedy.hello.more_lanes.at[1] = {greedy.hello.qp, 1};
  greedy.listen(kPort);
  Node client = world.add("client", lanes(2, false));
  EXPECT_EQ(try_connect(client, "greedy").error().code, ErrorCode::protocol);
  RawPeer controlling(world, "controlling");
  controlling.hello.control_lane = {controlling.hello.qp, 1};
  controlling.listen(kPort);
  EXPECT_EQ(try_connect(client, "controlling").error().code, ErrorCode::protocol);
  run_dry(client);
  client.worker().check_invariants();
}

}  // namespace
}  // namespace bx::testing
