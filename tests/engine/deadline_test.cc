// SPDX-License-Identifier: BSD-3-Clause
// Deadlines of calls: those of the knob calls.deadline share a timer, those of the call's own have one each.
#include <deque>
#include <optional>

#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

// Keeps every request.
class Mute final : public Service {
 public:
  void handle(Request request) noexcept override { kept_.push_back(std::move(request)); }
  void drop() { kept_.clear(); }

 private:
  std::vector<Request> kept_;
};

struct TimedCall final : CallOp {
  explicit TimedCall(Worker of) : worker(of) {}
  void on_complete() noexcept override { ended = worker.now(); }
  Worker worker;
  std::optional<Instant> ended;
};

class DeadlineTest : public ::testing::Test {
 protected:
  DeadlineTest() {
    Config config;
    config.call_deadline = 5'000'000;
    server_ = world_.add("server", config);
    client_ = world_.add("client", config);
    EXPECT_TRUE(server_.worker().serve(kPort, service_).has_value());
    session_ = connect(client_, "server");
    run_dry(client_);
  }
  Instant now() { return client_.worker().now(); }
  // Runs until `when`.
  void pass(Duration time) { client_.worker().reactor().run(now() + time); }

  World world_;
  Mute service_;
  Node server_;
  Node client_;
  Session session_;
};

TEST_F(DeadlineTest, call__ends_when_the_knob_says) {
  std::deque<TimedCall> calls;
  std::vector<Instant> started;
  for (int i = 0; i < 3; ++i) {
    started.push_back(now());
    session_.start_call(Buffer{}, calls.emplace_back(client_.worker()));
    pass(1ms);
  }
  run_dry(client_);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(calls[i].ended.has_value());
    EXPECT_EQ(calls[i].result().error().code, ErrorCode::deadline_exceeded);
    EXPECT_GE(*calls[i].ended, started[i] + 5ms);
    EXPECT_LT(*calls[i].ended, started[i] + 5ms + 10us);
  }
  service_.drop();
  run_dry(client_);
}

TEST_F(DeadlineTest, call__keeps_its_own_beside_those_of_the_knob) {
  TimedCall of_knob(client_.worker());
  TimedCall later(client_.worker());
  TimedCall sooner(client_.worker());
  const Instant start = now();
  session_.start_call(Buffer{}, later, {.deadline = start + 9ms});
  session_.start_call(Buffer{}, of_knob);
  session_.start_call(Buffer{}, sooner, {.deadline = start + 2ms});
  run_dry(client_);
  EXPECT_LT(*sooner.ended, start + 2ms + 10us);
  EXPECT_LT(*of_knob.ended, start + 5ms + 10us);
  EXPECT_GE(*of_knob.ended, start + 5ms);
  EXPECT_GE(*later.ended, start + 9ms);
  service_.drop();
  run_dry(client_);
}

// The timer was armed for a call that is over; the one behind it must not end early, nor be forgotten.
TEST_F(DeadlineTest, call__outlives_the_deadline_of_one_before_it) {
  auto first = std::make_unique<TimedCall>(client_.worker());
  session_.start_call(Buffer{}, *first);
  pass(3ms);
  TimedCall second(client_.worker());
  const Instant start = now();
  session_.start_call(Buffer{}, second);
  first.reset();  // abandoned
  run_dry(client_);
  EXPECT_GE(*second.ended, start + 5ms);
  EXPECT_LT(*second.ended, start + 5ms + 10us);
  service_.drop();
  run_dry(client_);
}

TEST_F(DeadlineTest, last_call__takes_the_timer_along) {
  auto call = std::make_unique<TimedCall>(client_.worker());
  session_.start_call(Buffer{}, *call);
  pass(1ms);
  call.reset();
  service_.drop();
  pass(1ms);
  const auto turns = counter(client_, "turns");
  pass(20ms);
  EXPECT_EQ(counter(client_, "turns"), turns);  // nothing woke it at the deadline
}

}  // namespace
}  // namespace bx::testing
