// SPDX-License-Identifier: GPL-2.0-only
// What matters most of the engine, over the simulated network: packets, a lossless switch, NICs with their
// latencies. The limits are the smallest there are, and everything still completes.
#include "sim/provider/sim_fabric.h"
#include "tests/engine/sizes.h"
#include "tests/engine/sparse.h"
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

double network_counter(const sim::SimFabric& fabric, std::string_view name) {
  struct Sink final : MetricSink {
    explicit Sink(std::string_view looked_for) : wanted(looked_for) {}
    void metric(std::string_view metric_name, double metric_value, std::string_view /*unit*/) override {
      if (metric_name == wanted) value = metric_value;
    }
    std::string_view wanted;
    std::optional<double> value;
  } sink(name);
  fabric.report(sink);
  EXPECT_TRUE(sink.value.has_value()) << name;
  return sink.value.value_or(-1);
}

class SimEngine : public ::testing::TestWithParam<RendezvousPolicy> {
 protected:
  void make(std::uint32_t hosts) {
    sim::SimConfig config;
    config.hosts = hosts;
    auto made = sim::SimFabric::create(config);
    ASSERT_TRUE(made.has_value()) << made.error().detail;
    fabric_ = std::move(*made);
  }
  static Config small() {
    Config config = tiny();
    config.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
    return config;
  }
  Node add(std::uint32_t number, const Config& config) {
    return open_node(*fabric_, "host" + std::to_string(number), config);
  }
  static std::string name(std::uint32_t number) { return "host" + std::to_string(number); }
  static void expect_complete(const CallLoop& loop) {
    EXPECT_TRUE(loop.complete()) << loop.succeeded << " succeeded, " << loop.failed << " failed, "
                                 << loop.wrong << " wrong; "
                                 << (loop.first_error ? loop.first_error->detail : "no error");
  }
  void expect_clean_network() {
    const sim::Audit audit = fabric_->audit();
    for (const std::string& breach : audit.breaches) ADD_FAILURE() << breach;
    EXPECT_EQ(network_counter(*fabric_, "nic.rnr_naks"), 0);
    EXPECT_EQ(network_counter(*fabric_, "nic.retransmissions"), 0);
  }

  std::unique_ptr<sim::SimFabric> fabric_;
};

// Answers with the length it got.
class LengthService final : public Service {
 public:
  void handle(Request request) noexcept override {
    const std::uint64_t length = request.payload().size();
    Buffer answer = request.allocate(sizeof length).value();
    std::memcpy(answer.data(), &length, sizeof length);
    request.reply(std::move(answer));
  }
};

// Over a million packets, of whose payloads only the beginnings are moved.
TEST_P(SimEngine, call__beyond_4_gib_has_its_length) {
  sim::SimConfig network;
  network.hosts = 2;
  network.payload = "lengths";
  network.payload_kept_bytes = 64;
  auto made = sim::SimFabric::create(network);
  ASSERT_TRUE(made.has_value()) << made.error().detail;
  fabric_ = std::move(*made);
  Config config;
  config.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
  config.rendezvous_chunk = 8U << 20U;
  config.window_per_peer = 16U << 20U;
  config.window_receiver = 16U << 20U;
  config.memory_arena = std::uint64_t{8} << 30U;
  config.memory_user = std::uint64_t{8} << 30U;
  LengthService service;
  Node server = add(0, config);
  ASSERT_TRUE(server.worker().serve(kPort, service).has_value());
  Node client = add(1, config);
  Session session = connect(client, name(0));
  const std::uint64_t size = (std::uint64_t{1} << 32U) + 1;
  const Sparse memory(size);
  UserMemory user = client.worker().register_memory(memory.bytes()).value();
  RecordedCall call;
  session.start_call(user.buffer(), call);
  run_dry(client);
  ASSERT_TRUE(call.succeeded()) << (call.error ? call.error->detail : "");
  std::uint64_t length = 0;
  ASSERT_EQ(call.answer.size(), sizeof length);
  std::memcpy(&length, call.answer.data(), sizeof length);
  EXPECT_EQ(length, size);
  EXPECT_EQ(counter(client, "messages.bytes_sent"), static_cast<double>(size));
  expect_at_rest(client);
  expect_at_rest(server);
}

TEST_P(SimEngine, calls_of_every_size__return_what_was_sent) {
  make(2);
  Config config;
  config.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
  EchoService echo;
  Node server = add(0, config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = add(1, config);
  Session session = connect(client, name(0));
  for (const std::size_t size : {0, 1, 63, 64, 192, 193, 4096, 8192, 8193, 65'536, 65'537, 1 << 20}) {
    RecordedCall call;
    session.start_call(filled(client.worker(), size, size), call);
    run_dry(client);
    ASSERT_TRUE(call.succeeded()) << size;
    EXPECT_EQ(call.answer.size(), size);
    EXPECT_TRUE(is_filled(call.answer.bytes(), size));
  }
  expect_at_rest(client);
  expect_at_rest(server);
  expect_clean_network();
}

TEST_P(SimEngine, both_ways_with_tiny_limits__every_call_completes) {
  make(2);
  EchoService echo_a;
  EchoService echo_b;
  Node a = add(0, small());
  Node b = add(1, small());
  ASSERT_TRUE(a.worker().serve(kPort, echo_a).has_value());
  ASSERT_TRUE(b.worker().serve(kPort, echo_b).has_value());
  CallLoop to_b(a.worker(), connect(a, name(1)), 400, 20, mixed);
  CallLoop to_a(b.worker(), connect(b, name(0)), 400, 20, mixed);
  to_b.start();
  to_a.start();
  run_dry(a);
  expect_complete(to_b);
  expect_complete(to_a);
  expect_at_rest(a);
  expect_at_rest(b);
  expect_clean_network();
}

TEST_P(SimEngine, everybody_to_everybody_with_tiny_limits__every_call_completes) {
  constexpr std::uint32_t kHosts = 4;
  make(kHosts);
  Config config = small();
  config.peers_max = 2 * kHosts;
  std::array<EchoService, kHosts> echoes;
  std::vector<Node> nodes;
  for (std::uint32_t i = 0; i < kHosts; ++i) {
    nodes.push_back(add(i, config));
    ASSERT_TRUE(nodes.back().worker().serve(kPort, echoes[i]).has_value());
  }
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (const Node& from : nodes) {
    for (std::uint32_t to = 0; to < kHosts; ++to) {
      loops.push_back(std::make_unique<CallLoop>(from.worker(), connect(from, name(to)), 80, 6, mixed));
    }
  }
  for (auto& loop : loops) loop->start();
  run_dry(nodes[0]);
  for (const auto& loop : loops) expect_complete(*loop);
  for (const Node& node : nodes) expect_at_rest(node);
  expect_clean_network();
}

TEST_P(SimEngine, deadlines_and_callers_that_give_up_at_many_instants__leak_nothing) {
  make(2);
  EchoService echo;
  Config config = small();
  config.transfers_max = 2;
  config.requests_max = 4;
  Node server = add(0, config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = add(1, config);
  Session session = connect(client, name(0));
  run_dry(client);
  const double idle_here = counter(client, "memory.arena_in_use");
  const double idle_there = counter(server, "memory.arena_in_use");
  for (Duration after{0}; after < 120us; after += 2'713ns) {
    SCOPED_TRACE(::testing::Message() << "after " << after.count() << " ns");
    const Instant end = client.worker().now() + after;
    std::vector<std::unique_ptr<RecordedCall>> calls;
    for (std::uint64_t i = 0; i < 16; ++i) {
      calls.push_back(std::make_unique<RecordedCall>());
      session.start_call(filled(client.worker(), mixed(i), i), *calls.back(),
                         {.deadline = i % 2 == 0 ? end : kNever});
    }
    client.worker().reactor().run(end);
    for (std::uint64_t i = 1; i < 16; i += 4) calls[i].reset();
    run_dry(client);
    for (std::uint64_t i = 0; i < 16; ++i) {
      if (calls[i] == nullptr) continue;
      ASSERT_EQ(calls[i]->completions, 1) << i;
      if (calls[i]->error) {
        EXPECT_EQ(calls[i]->error->code, ErrorCode::deadline_exceeded);
        EXPECT_EQ(i % 2, 0U);
      } else {
        EXPECT_TRUE(is_filled(calls[i]->answer.bytes(), i));
      }
    }
    calls.clear();
    expect_at_rest(client);
    expect_at_rest(server);
    EXPECT_EQ(counter(client, "memory.arena_in_use"), idle_here);
    EXPECT_EQ(counter(server, "memory.arena_in_use"), idle_there);
  }
  expect_clean_network();
}

TEST_P(SimEngine, close_at_many_instants__ends_each_call_once) {
  for (Duration after{0}; after < 60us; after += 5'303ns) {
    SCOPED_TRACE(::testing::Message() << "after " << after.count() << " ns");
    make(2);
    EchoService echo;
    Node server = add(0, small());
    ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
    Node client = add(1, small());
    Session session = connect(client, name(0));
    std::array<RecordedCall, 12> calls;
    for (std::uint64_t i = 0; i < calls.size(); ++i)
      session.start_call(filled(client.worker(), mixed(i), i), calls[i]);
    client.worker().reactor().run(client.worker().now() + after);
    server.worker().close();
    run_dry(client);
    for (RecordedCall& call : calls) {
      ASSERT_EQ(call.completions, 1);
      if (call.error) {
        EXPECT_GE(call.error->scope, ErrorScope::session);
      }
      call.answer = Buffer{};
    }
    EXPECT_TRUE(client.worker().idle());
    EXPECT_TRUE(server.worker().idle());
    client.worker().check_invariants();
    server.worker().check_invariants();
    client.context.reset();
    client.host.reset();
    server.context.reset();
    server.host.reset();
    fabric_.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, SimEngine,
                         ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write),
                         [](const auto& param) {
                           return param.param == RendezvousPolicy::pull ? "pull" : "write";
                         });

}  // namespace
}  // namespace bx::testing
