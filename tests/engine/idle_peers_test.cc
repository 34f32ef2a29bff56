// SPDX-License-Identifier: BSD-3-Clause
// Peers that nobody uses are closed, those in use are not, and whoever comes back connects again.
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration kIdle = 1ms;

class IdlePeersTest : public ::testing::Test {
 protected:
  IdlePeersTest() {
    config_.peers_idle_close = static_cast<std::uint64_t>(kIdle.count());
    config_.lanes_per_peer = 2;
    config_.peers_max = 1;
    server_ = world_.add("server", config_);
    client_ = world_.add("client", config_);
    EXPECT_TRUE(server_.worker().serve(kPort, holding_).has_value());
  }
  void run(Duration time) { client_.worker().reactor().run(client_.worker().now() + time); }
  [[nodiscard]] double closed() const { return counter(client_, "peers.idle_closed"); }
  void expect_gone() {
    run_dry(client_);
    EXPECT_EQ(closed(), 1);
    EXPECT_EQ(counter(client_, "peers.failed"), 0);
    EXPECT_EQ(counter(server_, "peers.idle_closed"), 0);  // the opener closes
    client_.worker().check_invariants();
    server_.worker().check_invariants();
  }
  World world_;
  Config config_;
  HoldingService holding_;
  Node server_;
  Node client_;
};

TEST_F(IdlePeersTest, unused__is_closed_after_the_time_and_before_twice_of_it) {
  const Session session = connect(client_, "server");
  EXPECT_TRUE(session.connected());
  run(kIdle - 100us);
  EXPECT_EQ(closed(), 0);
  run(kIdle + 200us);
  expect_gone();
}

TEST_F(IdlePeersTest, session_of_a_closed_peer__gets_closed_and_connects_again) {
  Session session = connect(client_, "server");
  expect_gone();
  RecordedCall late;
  session.start_call(filled(client_.worker(), 100, 1), late);
  run_dry(client_);
  EXPECT_TRUE(late.failed_with(ErrorCode::closed));
  Session again = connect(client_, "server");  // its place is free at both ends, of which peers.max is 1
  RecordedCall call;
  again.start_call(filled(client_.worker(), 100, 1), call);
  run(100us);
  holding_.answer();
  run(100us);
  EXPECT_TRUE(call.succeeded());
}

TEST_F(IdlePeersTest, call_in_progress__keeps_it) {
  Session session = connect(client_, "server");
  RecordedCall call;
  session.start_call(filled(client_.worker(), 100'000, 1), call);
  run(10 * kIdle);
  EXPECT_EQ(closed(), 0);
  holding_.answer();
  run(100us);
  EXPECT_TRUE(call.succeeded());
  expect_gone();
}

TEST_F(IdlePeersTest, puts_and_gets__keep_it) {
  Exposed table = server_.worker().expose(filled(server_.worker(), 256, 5)).value();
  Session session = connect(client_, "server");
  for (int i = 0; i < 12; ++i) {
    RecordedCall get;
    session.start_get(client_.worker().allocate(256).value(), table.remote(), get);
    run(kIdle * 9 / 10);
    ASSERT_TRUE(get.succeeded());
  }
  EXPECT_EQ(closed(), 0);
  expect_gone();
}

TEST_F(IdlePeersTest, payload_that_is_kept__stays_the_applications) {
  EchoService echo;
  ASSERT_TRUE(server_.worker().serve(kPort + 1, echo).has_value());
  Session session = connect(client_, "server", kPort + 1);
  RecordedCall call;
  session.start_call(filled(client_.worker(), 3000, 8), call);
  expect_gone();
  EXPECT_TRUE(call.succeeded());
  EXPECT_TRUE(is_filled(call.answer.bytes(), 8));
  call.answer = Buffer{};
  client_.worker().check_invariants();
}

}  // namespace
}  // namespace bx::testing
