// SPDX-License-Identifier: BSD-3-Clause
// The dump of a worker's live objects, when asked and by a signal.
#include <csignal>

#include "tests/engine/world.h"
#include "tests/observe/recorded_log.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

class DumpTest : public ::testing::Test {
 protected:
  DumpTest() {
    EXPECT_TRUE(server_.worker().serve(kPort, holding_).has_value());
    session_ = connect(client_, "server");
  }
  ~DumpTest() override { holding_.held.clear(); }  // before the workers whose memory they hold
  World world_;
  HoldingService holding_;
  RecordedLog log_;
  Node client_ = world_.add("client");
  Node server_ = world_.add("server");
  Session session_;
};

TEST_F(DumpTest, dump__shows_what_is_in_progress_and_for_how_long) {
  RecordedCall small;
  RecordedCall large;
  session_.start_call(filled(client_.worker(), 64, 1), small);
  session_.start_call(filled(client_.worker(), 100'000, 1), large);
  client_.worker().reactor().run(client_.worker().now() + 1ms);
  client_.worker().dump(log_);
  EXPECT_TRUE(log_.dumped_line({"bx: dump worker", "host=client", "calls=2", "peers=1"})) << log_.text();
  EXPECT_TRUE(log_.dumped_line({"  memory", "capacity=268435456"})) << log_.text();
  EXPECT_TRUE(log_.dumped_line({"  peer", "name=server:7000", "state=open", "stalled=none"})) << log_.text();
  EXPECT_TRUE(log_.dumped_line({"    session", "id=1", "outstanding=2"})) << log_.text();
  EXPECT_TRUE(log_.dumped_line({"  call", "peer=server:7000", "state=sent", "age_ns=1000000"}))
      << log_.text();
  RecordedLog of_server;
  server_.worker().dump(of_server);
  EXPECT_TRUE(of_server.dumped_line({"host=server", "serving=2"})) << of_server.text();
}

TEST_F(DumpTest, dump__shows_what_a_peer_waits_for) {
  Config few = tiny();
  few.coalesce_max = 0;  // a SEND a request, so that credits run out
  Node client = world_.add("few", few);
  Node slow = world_.add("slow", tiny());
  std::vector<RecordedCall> calls(20);
  ASSERT_TRUE(slow.worker().serve(kPort, holding_).has_value());
  Session to_slow = connect(client, "slow");
  for (RecordedCall& call : calls) to_slow.start_call(Buffer{}, call);
  client.worker().reactor().run(client.worker().now() + 1ms);
  client.worker().dump(log_);
  EXPECT_TRUE(log_.dumped_line({"  peer", "name=slow:7000", "stalled=credit"})) << log_.text();
  EXPECT_TRUE(log_.dumped_line({"  call", "peer=slow:7000", "state=queued"})) << log_.text();
  EXPECT_TRUE(log_.dumped_line({"  more", "count=4"})) << log_.text();  // sixteen calls are shown
  holding_.held.clear();
}

TEST_F(DumpTest, dump_on_signal__dumps_once_at_the_next_turn) {
  client_.worker().set_log(&log_);
  ASSERT_TRUE(dump_on_signal(client_.worker(), SIGUSR1).has_value());
  const auto turn = [&] {
    client_.worker().reactor().waker().wake();
    client_.worker().reactor().run(client_.worker().now() + 1ms);
  };
  turn();
  EXPECT_TRUE(log_.dumped.empty());
  std::raise(SIGUSR1);
  EXPECT_TRUE(log_.dumped.empty());  // the handler does no more than count
  turn();
  EXPECT_TRUE(log_.dumped_line({"bx: dump worker", "host=client"})) << log_.text();
  const std::size_t lines = log_.dumped.size();
  turn();
  EXPECT_EQ(log_.dumped.size(), lines);
}

TEST_F(DumpTest, dump_on_signal__refuses_what_cannot_be_handled) {
  EXPECT_FALSE(dump_on_signal(client_.worker(), SIGKILL).has_value());
  EXPECT_FALSE(dump_on_signal(client_.worker(), 12345).has_value());
}

}  // namespace
}  // namespace bx::testing
