// SPDX-License-Identifier: BSD-3-Clause
// Sessions that share a peer: what each gets while all have more to send than may go.
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

// Who was served, in order: the first byte of a request says.
class RecordingService final : public Service {
 public:
  void handle(Request request) noexcept override {
    served.push_back({std::to_integer<int>(request.payload().bytes()[0]), request.payload().size()});
    request.reply(Buffer{});
  }
  struct Served {
    int who;
    std::size_t bytes;
  };
  std::vector<Served> served;
};

Buffer request_of(const Node& node, int who, std::size_t bytes) {
  Buffer request = filled(node.worker(), bytes, 1);
  request.data()[0] = static_cast<std::byte>(who);
  return request;
}

constexpr int kElephant = 1;
constexpr int kMouse = 2;

// Bytes of the elephant that were served before the mouse's last request, of which there are 50 of 400 bytes;
// the elephant has 300 of 8000.
std::size_t elephant_bytes_ahead(const Config& config) {
  World world;
  RecordingService service;
  Node server = world.add("server", config);
  EXPECT_TRUE(server.worker().serve(kPort, service).has_value());
  Node client = world.add("client", config);
  Session elephant = connect(client, "server");
  Session mouse = connect(client, "server");
  std::vector<std::unique_ptr<RecordedCall>> calls;
  const auto call = [&](Session& session, int who, std::size_t bytes) {
    calls.push_back(std::make_unique<RecordedCall>());
    session.start_call(request_of(client, who, bytes), *calls.back());
  };
  for (int i = 0; i < 300; ++i) call(elephant, kElephant, 8000);
  for (int i = 0; i < 50; ++i) call(mouse, kMouse, 400);
  run_dry(client);
  EXPECT_EQ(service.served.size(), 350U);
  for (const auto& each : calls) EXPECT_TRUE(each->succeeded());
  expect_at_rest(client);
  expect_at_rest(server);
  std::size_t ahead = 0;
  std::size_t mice = 0;
  for (const auto& served : service.served) {
    if (served.who == kMouse && ++mice == 50) break;
    if (served.who == kElephant) ahead += served.bytes;
  }
  return ahead;
}

TEST(Fairness, mouse__waits_for_its_own_bytes_and_not_for_the_elephants) {
  // What was under way before the mouse came: all credits. From then on as many bytes of one as of the other,
  // a turn more at most, and the header of every message counts.
  Config config;
  const std::size_t credits = config.credits_per_peer * 8000;
  EXPECT_LE(elephant_bytes_ahead(config), credits + 50 * 428 + 2 * 8256);
  config.lanes_fair = 0;
  EXPECT_EQ(elephant_bytes_ahead(config), 300 * 8000U);
}

// There what is posted on one lane may overtake what was posted before on the other: all credits' worth of
// it.
TEST(Fairness, mouse__over_several_lanes_as_well) {
  Config config;
  config.lanes_per_peer = 2;
  const std::size_t credits = config.credits_per_peer * 8000;
  EXPECT_LE(elephant_bytes_ahead(config), 2 * credits + 50 * 428 + 2 * 8256);
}

// Four slots for data on each lane: the elephant's lane is always full, and the mouse's four go every round.
TEST(Fairness, mouse__does_not_wait_for_slots_of_another_lane) {
  Config config;
  config.lanes_per_peer = 2;
  config.send_depth = 8;
  EXPECT_LE(elephant_bytes_ahead(config), (config.credits_per_peer + 14 * 4) * 8000);
}

// Requests of two sessions, of weights 1 and 4, each with more than enough.
TEST(Fairness, requests__go_in_proportion_to_weights) {
  World world;
  RecordingService service;
  Node server = world.add("server");
  ASSERT_TRUE(server.worker().serve(kPort, service).has_value());
  Node client = world.add("client");
  Session light = connect(client, "server");
  Session heavy = connect(client, "server");
  heavy.set_weight(4);
  std::vector<std::unique_ptr<RecordedCall>> calls;
  for (int i = 0; i < 400; ++i) {
    for (Session* session : {&light, &heavy}) {
      calls.push_back(std::make_unique<RecordedCall>());
      session->start_call(request_of(client, session == &heavy ? 4 : 1, 2000), *calls.back());
    }
  }
  run_dry(client);
  ASSERT_EQ(service.served.size(), 800U);
  std::array<double, 5> bytes{};
  for (std::size_t i = 20; i < 420; ++i) {
    bytes[static_cast<std::size_t>(service.served[i].who)] += static_cast<double>(service.served[i].bytes);
  }
  EXPECT_NEAR(bytes[4] / bytes[1], 4.0, 0.4);
}

// Answers: the weight is the opener's to say, and the server shares by it.
TEST(Fairness, answers__go_in_proportion_to_weights) {
  World world;
  HoldingService holding;
  Node server = world.add("server");
  ASSERT_TRUE(server.worker().serve(kPort, holding).has_value());
  Node client = world.add("client");
  Session light = connect(client, "server");
  Session heavy = connect(client, "server");
  heavy.set_weight(8);
  struct Counted final : CallOp {
    void on_complete() noexcept override {
      order->push_back(who);
      result() = Buffer{};
    }
    std::vector<int>* order = nullptr;
    int who = 0;
  };
  std::vector<int> order;
  std::vector<std::unique_ptr<Counted>> calls;
  for (int i = 0; i < 400; ++i) {
    for (Session* session : {&light, &heavy}) {
      calls.push_back(std::make_unique<Counted>());
      calls.back()->order = &order;
      calls.back()->who = session == &heavy ? 8 : 1;
      session->start_call(Buffer{}, *calls.back());
    }
  }
  client.worker().reactor().run(client.worker().now() + 1ms);
  ASSERT_EQ(holding.held.size(), 800U);
  for (Request& request : std::exchange(holding.held, {})) {
    request.reply(filled(server.worker(), 4000, 1));
  }
  run_dry(client);
  ASSERT_EQ(order.size(), 800U);
  const auto heavies = std::count(order.begin() + 30, order.begin() + 390, 8);
  EXPECT_NEAR(static_cast<double>(heavies), 320.0, 20.0);  // eight of nine
}

}  // namespace
}  // namespace bx::testing
