// SPDX-License-Identifier: BSD-3-Clause
// Calls under the smallest limits: everything has to wait for everything, and all of it must go on. The
// deadline of a call is the alarm: nothing here may reach it.
#include <array>
#include <ostream>

#include "tests/engine/world.h"

namespace bx::testing {
namespace {

std::size_t small(std::uint64_t n) {
  return n % 97;
}
std::size_t eager(std::uint64_t n) {
  return 193 + n % 60;
}
std::size_t rendezvous(std::uint64_t n) {
  return 300 + 977 * (n % 23);
}
std::size_t mixed(std::uint64_t n) {
  constexpr std::array<std::size_t, 7> kSizes = {0, 1, 200, 256, 257, 4097, 20'000};
  return kSizes[(n * 5 + n / 7) % kSizes.size()];
}

struct Load {
  const char* name;
  CallLoop::SizeOf size_of;
};

void PrintTo(const Load& load, std::ostream* out) {
  *out << load.name;
}

// Defaults, or every other way to share receives and bound bytes at once.
enum class Ways : std::uint8_t { plain, all };

void share_everything(Config& config) {
  config.credits_mode = static_cast<std::uint64_t>(CreditMode::shared);
  config.credits_floor = 2;
  config.credits_pool = 2 * config.peers_max + 1;
  config.credits_per_peer = 3;
  config.window_per_session = 4096;
  config.window_nic_low = 1000;
  config.window_nic_high = 4096;
  config.window_mode = static_cast<std::uint64_t>(WindowMode::adaptive);
  config.window_adaptive_min = 4096;
  config.window_adaptive_max = 16'384;
  config.window_target_delay = 2000;
  config.window_division = static_cast<std::uint64_t>(WindowDivision::peers);
  config.window_share_min = 4096;
}

class TinyLimits : public ::testing::TestWithParam<std::tuple<Load, RendezvousPolicy, Ways>> {
 protected:
  static Config config() {
    Config config = tiny();
    config.rendezvous_policy = static_cast<std::uint64_t>(std::get<1>(GetParam()));
    if (std::get<2>(GetParam()) == Ways::all) share_everything(config);
    return config;
  }
  static CallLoop::SizeOf size_of() { return std::get<0>(GetParam()).size_of; }
};

void expect_complete(const CallLoop& loop) {
  EXPECT_TRUE(loop.complete()) << loop.succeeded << " succeeded, " << loop.failed << " failed, " << loop.wrong
                               << " wrong; " << (loop.first_error ? loop.first_error->detail : "no error");
}

TEST_P(TinyLimits, one_session__every_call_completes) {
  World world;
  EchoService echo;
  Node server = world.add("server", config());
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = world.add("client", config());
  CallLoop loop(client.worker(), connect(client, "server"), 3000, 40, size_of());
  loop.start();
  run_dry(client);
  expect_complete(loop);
  expect_at_rest(client);
  expect_at_rest(server);
}

// Each is server and client of the other over two lanes, everything of both in use at once.
TEST_P(TinyLimits, both_ways__every_call_completes) {
  World world;
  EchoService echo_a;
  EchoService echo_b;
  Node a = world.add("a", config());
  Node b = world.add("b", config());
  ASSERT_TRUE(a.worker().serve(kPort, echo_a).has_value());
  ASSERT_TRUE(b.worker().serve(kPort, echo_b).has_value());
  CallLoop to_b(a.worker(), connect(a, "b"), 1500, 20, size_of());
  CallLoop to_a(b.worker(), connect(b, "a"), 1500, 20, size_of());
  to_b.start();
  to_a.start();
  run_dry(a);
  expect_complete(to_b);
  expect_complete(to_a);
  expect_at_rest(a);
  expect_at_rest(b);
}

// One outgoing transfer is shared by all peers: a place that one gives back is another's to take.
TEST_P(TinyLimits, several_servers__every_call_completes) {
  World world;
  std::array<EchoService, 4> echoes;
  std::vector<Node> servers;
  for (std::size_t i = 0; i < echoes.size(); ++i) {
    servers.push_back(world.add("server" + std::to_string(i), config()));
    ASSERT_TRUE(servers.back().worker().serve(kPort, echoes[i]).has_value());
  }
  Node client = world.add("client", config());
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (std::size_t i = 0; i < echoes.size(); ++i) {
    loops.push_back(std::make_unique<CallLoop>(client.worker(), connect(client, "server" + std::to_string(i)),
                                               500, 8, size_of()));
  }
  for (auto& loop : loops) loop->start();
  run_dry(client);
  for (const auto& loop : loops) expect_complete(*loop);
  expect_at_rest(client);
  for (const Node& server : servers) expect_at_rest(server);
}

TEST_P(TinyLimits, several_clients__every_call_completes) {
  World world;
  EchoService echo;
  Node server = world.add("server", config());
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  std::vector<Node> clients;
  std::vector<std::unique_ptr<CallLoop>> loops;
  for (std::size_t i = 0; i < 4; ++i) {
    clients.push_back(world.add("client" + std::to_string(i), config()));
    loops.push_back(std::make_unique<CallLoop>(clients.back().worker(), connect(clients.back(), "server"),
                                               500, 8, size_of()));
  }
  for (auto& loop : loops) loop->start();
  run_dry(server);
  for (const auto& loop : loops) expect_complete(*loop);
  expect_at_rest(server);
  for (const Node& client : clients) expect_at_rest(client);
}

INSTANTIATE_TEST_SUITE_P(
    Loads, TinyLimits,
    ::testing::Combine(::testing::Values(Load{"small", small}, Load{"eager", eager},
                                         Load{"rendezvous", rendezvous}, Load{"mixed", mixed}),
                       ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write),
                       ::testing::Values(Ways::plain, Ways::all)),
    [](const auto& param) {
      return std::string(std::get<0>(param.param).name) +
             (std::get<1>(param.param) == RendezvousPolicy::pull ? "_pull" : "_write") +
             (std::get<2>(param.param) == Ways::all ? "_shared" : "");
    });

// As many reserved slots of the send queue as the check lets pass: what data may use must still come back.
TEST(Limits, control_reserve__leaves_data_slots_that_come_back) {
  Config config;
  config.send_depth = 68;
  config.send_control_reserve = 64;
  World world;
  EchoService echo;
  Node server = world.add("server", config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = world.add("client", config);
  CallLoop loop(client.worker(), connect(client, "server"), 500, 32, small);
  loop.start();
  run_dry(client);
  expect_complete(loop);
}

// A handler that calls on in its turn, with one request served at a time and others waiting: the answer to
// the inner call must not queue up behind the requests that wait for the outer one to end.
class ForwardingService final : public Service {
 public:
  void handle(Request request) noexcept override {
    auto call = std::make_unique<Forwarded>();
    call->request = std::move(request);
    call->owner = this;
    Buffer payload = std::move(call->request.payload());
    Forwarded& started = *call;
    calls.push_back(std::move(call));
    next.start_call(std::move(payload), started);
  }
  struct Forwarded final : CallOp {
    void on_complete() noexcept override {
      if (result()) {
        request.reply(std::move(*result()));
      } else {
        request.reject(result().error().code);
      }
    }
    Request request;
    ForwardingService* owner = nullptr;
  };
  Session next;
  std::vector<std::unique_ptr<Forwarded>> calls;
};

TEST_P(TinyLimits, nested_calls__do_not_wait_for_what_waits_for_them) {
  World world;
  EchoService echo;
  ForwardingService forward;
  Node back = world.add("back", config());
  Node front = world.add("front", config());
  Node client = world.add("client", config());
  ASSERT_TRUE(back.worker().serve(kPort, echo).has_value());
  ASSERT_TRUE(front.worker().serve(kPort, forward).has_value());
  forward.next = connect(front, "back");
  CallLoop loop(client.worker(), connect(client, "front"), 300, 10, size_of());
  loop.start();
  run_dry(client);
  expect_complete(loop);
  expect_at_rest(client);
  expect_at_rest(front);
  expect_at_rest(back);
}

}  // namespace
}  // namespace bx::testing
