// SPDX-License-Identifier: BSD-3-Clause
// The windows of sessions, peers and the NIC, the receiver's budget divided among peers, and windows that
// follow the delay.
#include <algorithm>
#include <array>

#include "tests/engine/world.h"

namespace bx::testing {
namespace {

// Answers nothing by itself; remembers the first byte of what came, in its order.
class ArrivalService final : public Service {
 public:
  void handle(Request request) noexcept override {
    order.push_back(std::to_integer<int>(request.payload().bytes()[0]));
    request.reply(Buffer{});
  }
  std::vector<int> order;
};

Buffer marked(const Node& node, std::size_t size, int mark) {
  Buffer buffer = node.worker().allocate(size).value();
  buffer.bytes()[0] = static_cast<std::byte>(mark);
  return buffer;
}

// Answers with so many bytes.
class AnsweringService final : public Service {
 public:
  explicit AnsweringService(std::size_t size) : size_(size) {}
  void handle(Request request) noexcept override { request.reply(filled(*worker, size_, 2)); }
  std::optional<Worker> worker;

 private:
  std::size_t size_;
};

// Runs the world until the calls are complete; when that was, to a microsecond.
Duration time_of(const Node& node, CallLoop& loop) {
  const Instant began = node.worker().now();
  Instant now = began;
  loop.start();
  while (!loop.complete() && loop.failed == 0) {
    node.worker().reactor().run(now += std::chrono::microseconds(1));
  }
  EXPECT_TRUE(loop.complete());
  run_dry(node);
  return now - began;
}

class WindowTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kEager = 4000;  // of which a window of 4096 holds one
  Node serve(const std::string& name, Service& service, const Config& config = {}) {
    Node node = world_.add(name, config);
    EXPECT_TRUE(node.worker().serve(kPort, service).has_value());
    return node;
  }
  World world_;
  EchoService echo_;
};

TEST_F(WindowTest, session_window__lets_others_past_and_keeps_the_order_of_a_session) {
  ArrivalService arrivals;
  Node server = serve("server", arrivals);
  Config config;
  config.window_per_session = 4096;
  Node client = world_.add("client", config);
  Session greedy = connect(client, "server");
  Session modest = connect(client, "server");
  std::array<RecordedCall, 8> calls;
  for (int i = 0; i < 5; ++i)
    greedy.start_call(marked(client, kEager, i), calls[static_cast<std::size_t>(i)]);
  greedy.start_call(marked(client, 10, 5), calls[5]);  // needs no room, and goes after what is before it
  modest.start_call(marked(client, kEager, 100), calls[6]);
  modest.start_call(marked(client, 10, 101), calls[7]);
  run_dry(client);
  for (const RecordedCall& call : calls) EXPECT_TRUE(call.succeeded());
  ASSERT_EQ(arrivals.order.size(), calls.size());
  const auto place = [&](int mark) {
    return std::ranges::find(arrivals.order, mark) - arrivals.order.begin();
  };
  for (int i = 0; i < 5; ++i) EXPECT_LT(place(i), place(i + 1));
  EXPECT_LT(place(100), place(1));
  EXPECT_LT(place(100), place(101));
  EXPECT_LT(place(101), place(5));
  EXPECT_GT(counter(client, "stall.session_window"), 0);
  EXPECT_EQ(counter(client, "stall.window"), 0);
  expect_at_rest(client);
}

TEST_F(WindowTest, session_window__off_by_default) {
  ArrivalService arrivals;
  Node server = serve("server", arrivals);
  Node client = world_.add("client");
  Session session = connect(client, "server");
  std::array<RecordedCall, 8> calls;
  for (RecordedCall& call : calls) session.start_call(marked(client, kEager, 1), call);
  run_dry(client);
  EXPECT_EQ(counter(client, "stall.session_window"), 0);
  EXPECT_EQ(counter(client, "stall.nic_window"), 0);
  EXPECT_EQ(counter(client, "window.lent"), 0);
}

// What closes the window of a peer is another peer's, and nothing of its own may ever come to open it.
TEST_F(WindowTest, nic_high__is_shared_and_everybody_goes_on) {
  std::vector<Node> servers;
  for (int i = 0; i < 5; ++i) servers.push_back(serve("server" + std::to_string(i), echo_));
  Config config;
  config.window_nic_high = 4096;
  Node client = world_.add("client", config);
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (int i = 0; i < 5; ++i) {
    loops.push_back(std::make_unique<CallLoop>(client.worker(), connect(client, "server" + std::to_string(i)),
                                               60, 6,
                                               [](std::uint64_t n) { return std::size_t{n % 3 * 4000}; }));
  }
  for (auto& loop : loops) loop->start();
  run_dry(client);
  for (const auto& loop : loops) EXPECT_TRUE(loop->complete());
  EXPECT_GT(counter(client, "stall.nic_window"), 0);
  EXPECT_EQ(counter(client, "window.lent"), 0);
  expect_at_rest(client);
}

TEST_F(WindowTest, nic_high__bounds_puts_too) {
  Node server = serve("server", echo_);
  Config config;
  config.window_nic_high = 16'384;
  Node client = world_.add("client", config);
  Session session = connect(client, "server");
  const Exposed table = server.worker().expose(server.worker().allocate(200'000).value()).value();
  std::array<RecordedCall, 2> puts;
  for (std::size_t i = 0; i < 2; ++i) {
    session.start_put(filled(client.worker(), 100'000, i), table.remote().at(i * 100'000), puts[i]);
  }
  run_dry(client);
  EXPECT_TRUE(puts[0].succeeded() && puts[1].succeeded());
  EXPECT_GT(counter(client, "stall.nic_window"), 0);
  expect_at_rest(client);
}

// How long one session needs whose budget holds one message.
struct Lent {
  Duration time;
  double count;
};
Lent time_with_low_mark(std::uint64_t low) {
  World world;
  EchoService echo;
  Node server = world.add("server");
  EXPECT_TRUE(server.worker().serve(kPort, echo).has_value());
  Config config;
  config.window_per_peer = 4096;
  config.window_nic_low = low;
  Node client = world.add("client", config);
  CallLoop loop(client.worker(), connect(client, "server"), 100, 8,
                [](std::uint64_t) { return std::size_t{4000}; });
  const Duration time = time_of(client, loop);
  expect_at_rest(client);
  return {time, counter(client, "window.lent")};
}

TEST_F(WindowTest, nic_low__lends_to_who_is_beyond_its_budget) {
  const Lent without = time_with_low_mark(0);
  const Lent with = time_with_low_mark(65'536);
  EXPECT_EQ(without.count, 0);
  EXPECT_GT(with.count, 0);
  EXPECT_LT(with.time, without.time);
}

TEST_F(WindowTest, peer_failed__leaves_the_windows_to_the_others) {
  Config config;
  config.window_nic_high = 8192;
  config.window_division = static_cast<std::uint64_t>(WindowDivision::peers);
  EchoService other_echo;
  Node doomed = serve("doomed", echo_, config);
  Node server = serve("server", other_echo, config);
  Node client = world_.add("client", config);
  CallLoop lost(client.worker(), connect(client, "doomed"), 50, 20,
                [](std::uint64_t n) { return std::size_t{n % 2 == 0 ? 4000U : 300'000U}; });
  CallLoop kept(client.worker(), connect(client, "server"), 50, 20,
                [](std::uint64_t n) { return std::size_t{n % 2 == 0 ? 4000U : 300'000U}; });
  lost.start();
  kept.start();
  client.worker().reactor().run(client.worker().now() + std::chrono::microseconds(40));
  doomed.context.reset();
  run_dry(client);
  EXPECT_GT(lost.failed, 0U);
  EXPECT_TRUE(kept.complete());
  EXPECT_TRUE(client.worker().idle());
  client.worker().check_invariants();
}

// When the one answer of `modest` was there, with eight more from `greedy` being fetched beside it.
Duration modest_time(WindowDivision division, std::uint64_t greedy_weight = 1, bool by_write = false) {
  World world;
  constexpr std::size_t kSize = 1'000'000;
  AnsweringService answers_of_greedy(kSize);
  AnsweringService answers_of_modest(kSize);
  Config config;
  config.window_division = static_cast<std::uint64_t>(division);
  config.rendezvous_policy =
      static_cast<std::uint64_t>(by_write ? RendezvousPolicy::granted_write : RendezvousPolicy::pull);
  Config weighted = config;
  weighted.window_weight = greedy_weight;
  Node greedy = world.add("greedy", weighted);
  Node modest = world.add("modest", config);
  answers_of_greedy.worker = greedy.worker();
  answers_of_modest.worker = modest.worker();
  EXPECT_TRUE(greedy.worker().serve(kPort, answers_of_greedy).has_value());
  EXPECT_TRUE(modest.worker().serve(kPort, answers_of_modest).has_value());
  Node client = world.add("client", config);
  Session to_greedy = connect(client, "greedy");
  Session to_modest = connect(client, "modest");
  struct Timed final : CallOp {
    void on_complete() noexcept override { ended = worker.now(); }
    explicit Timed(Worker of) : worker(of) {}
    Worker worker;
    Instant ended{};
  };
  std::array<RecordedCall, 8> many;
  Timed one(client.worker());
  for (RecordedCall& call : many) to_greedy.start_call(Buffer{}, call);
  to_modest.start_call(Buffer{}, one);
  const Instant began = client.worker().now();
  run_dry(client);
  for (const RecordedCall& call : many) EXPECT_TRUE(call.succeeded());
  EXPECT_TRUE(one.result().has_value() && is_filled(one.result()->bytes(), 2));
  expect_at_rest(client);
  EXPECT_EQ(counter(client, "stall.receiver_share") > 0, division == WindowDivision::peers);
  return one.ended - began;
}

TEST_F(WindowTest, division__by_peers_does_not_ask_how_many_transfers_a_peer_has) {
  const Duration by_chunks = modest_time(WindowDivision::chunks);
  const Duration by_peers = modest_time(WindowDivision::peers);
  EXPECT_LT(2 * by_peers, by_chunks);
  EXPECT_LT(2 * modest_time(WindowDivision::peers, 1, true), modest_time(WindowDivision::chunks, 1, true));
}

TEST_F(WindowTest, division__a_peer_of_more_weight_has_more) {
  EXPECT_GT(modest_time(WindowDivision::peers, 7), modest_time(WindowDivision::peers, 1));
}

// Shares that together are more than the budget: whoever finds no room stands in line, and everybody is
// served.
TEST_F(WindowTest, division__with_more_peers_than_shares_serves_all) {
  Config config;
  config.window_division = static_cast<std::uint64_t>(WindowDivision::peers);
  config.window_receiver = 65'536;
  config.window_share_min = 32'768;
  config.rendezvous_chunk = 16'384;
  std::vector<Node> servers;
  for (int i = 0; i < 9; ++i) servers.push_back(serve("server" + std::to_string(i), echo_, config));
  Node client = world_.add("client", config);
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (int i = 0; i < 9; ++i) {
    loops.push_back(std::make_unique<CallLoop>(client.worker(), connect(client, "server" + std::to_string(i)),
                                               10, 3, [](std::uint64_t n) { return 20'000 + 9000 * n; }));
  }
  for (auto& loop : loops) loop->start();
  run_dry(client);
  for (const auto& loop : loops) EXPECT_TRUE(loop->complete());
  EXPECT_GT(counter(client, "stall.receiver_window"), 0);
  expect_at_rest(client);
}

// A fetch over a long way, on which the window that it begins with is far too small.
Duration long_way_time(WindowMode mode, std::size_t size, bool by_write = false) {
  loopback::LoopbackConfig far;
  far.latency = std::chrono::microseconds(40);
  World world(far);
  EchoService echo;
  Config config;
  config.window_mode = static_cast<std::uint64_t>(mode);
  config.rendezvous_policy =
      static_cast<std::uint64_t>(by_write ? RendezvousPolicy::granted_write : RendezvousPolicy::pull);
  Node server = world.add("server", config);
  EXPECT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = world.add("client", config);
  CallLoop loop(
      client.worker(), connect(client, "server"), 3, 1,
      size > 10'000 ? [](std::uint64_t) { return std::size_t{4'000'000}; }
                    : [](std::uint64_t) { return std::size_t{6000}; });
  const Duration time = time_of(client, loop);
  expect_at_rest(client);
  return time;
}

TEST_F(WindowTest, adaptive__grows_to_a_long_path_and_static_does_not) {
  for (const bool by_write : {false, true}) {
    EXPECT_LT(3 * long_way_time(WindowMode::adaptive, 4'000'000, by_write),
              2 * long_way_time(WindowMode::fixed, 4'000'000, by_write));
  }
}

TEST_F(WindowTest, adaptive__shrinks_to_its_least_where_every_delay_is_too_long) {
  Config config;
  config.window_mode = static_cast<std::uint64_t>(WindowMode::adaptive);
  config.window_target_delay = 1000;
  config.window_adaptive_min = 8192;
  config.window_adaptive_max = 8'000'000;
  Node server = serve("server", echo_, config);
  Node client = world_.add("client", config);
  CallLoop loop(client.worker(), connect(client, "server"), 40, 8,
                [](std::uint64_t n) { return std::size_t{n % 2 == 0 ? 7000U : 900'000U}; });
  loop.start();
  run_dry(client);
  EXPECT_TRUE(loop.complete());
  expect_at_rest(client);
  struct Limit final : LabelledMetricSink {
    void metric(const LabelledMetric& metric, double number) override {
      if (metric.name == "worker.window.limit_in") value = number;
    }
    void histogram(const LabelledMetric& /*metric*/, const LogHistogram& /*values*/) override {}
    double value = -1;
  } limit;
  client.worker().report(limit);
  EXPECT_LT(limit.value, static_cast<double>(config.window_receiver));
  EXPECT_GE(limit.value, static_cast<double>(config.window_adaptive_min));
}

}  // namespace
}  // namespace bx::testing
