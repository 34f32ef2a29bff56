// SPDX-License-Identifier: BSD-3-Clause
// Limits of services, back-pressure on callers, priorities, and the way out.
#include <algorithm>
#include <vector>

#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

class ServiceFace : public ::testing::Test {
 protected:
  void open(Service& service, ServeOptions options = {}, const Config& server_config = {},
            const Config& client_config = {}) {
    end(client_);
    end(server_);
    world_ = std::make_unique<World>();
    server_ = world_->add("server", server_config);
    ASSERT_TRUE(server_.worker().serve(kPort, service, options).has_value());
    client_ = world_->add("client", client_config);
    session_ = connect(client_, "server");
  }
  void start(RecordedCall& call, std::size_t size, CallOptions options = {}) {
    session_.start_call(filled(client_.worker(), size, size), call, options);
  }
  void run_for(Duration time) { client_.worker().reactor().run(client_.worker().now() + time); }
  void expect_rest() {
    expect_at_rest(client_);
    expect_at_rest(server_);
  }

  std::unique_ptr<World> world_;
  Node server_;
  Node client_;
  Session session_;
};

using ConcurrencyTest = ServiceFace;

TEST_F(ConcurrencyTest, beyond_the_limit__is_exhausted_at_once_and_room_comes_back) {
  HoldingService service;
  open(service, {.concurrency_max = 2});
  for (const std::size_t size : {10, 4000, 200'000}) {
    std::vector<RecordedCall> calls(5);
    for (RecordedCall& call : calls) start(call, size);
    run_for(1ms);
    EXPECT_EQ(service.held.size(), 2U) << size;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(calls[i].done(), i >= 2) << size;
      EXPECT_EQ(calls[i].failed_with(ErrorCode::exhausted), i >= 2);
    }
    service.answer();
    run_dry(client_);
    EXPECT_TRUE(calls[0].succeeded() && calls[1].succeeded());
    expect_rest();
  }
}

TEST_F(ConcurrencyTest, payload__of_what_is_refused_is_not_fetched) {
  HoldingService service;
  open(service, {.concurrency_max = 1});
  RecordedCall served;
  RecordedCall refused;
  start(served, 10);
  run_for(1ms);
  start(refused, 1 << 20);
  run_for(1ms);
  EXPECT_TRUE(refused.failed_with(ErrorCode::exhausted));
  EXPECT_EQ(counter(server_, "transfers.reads"), 0);
  service.answer();
  run_dry(client_);
  expect_rest();
}

// Each service counts its own.
TEST_F(ConcurrencyTest, full__service_leaves_the_other_alone) {
  HoldingService full;
  EchoService other;
  open(full, {.concurrency_max = 1});
  ASSERT_TRUE(server_.worker().serve(kPort + 1, other).has_value());
  Session theirs = connect(client_, "server", kPort + 1);
  RecordedCall held;
  RecordedCall refused;
  RecordedCall echoed;
  start(held, 10);
  start(refused, 10);
  theirs.start_call(filled(client_.worker(), 10, 1), echoed);
  run_for(1ms);
  EXPECT_TRUE(refused.failed_with(ErrorCode::exhausted));
  EXPECT_TRUE(echoed.succeeded());
  full.answer();
  run_dry(client_);
  EXPECT_TRUE(held.succeeded());
}

// Also if the peer is gone whose requests it held.
TEST_F(ConcurrencyTest, place__comes_back_however_a_request_ends) {
  HoldingService service;
  open(service, {.concurrency_max = 1});
  {
    Node other = world_->add("other");
    Session theirs = connect(other, "server");
    RecordedCall call;
    theirs.start_call(Buffer{}, call);
    run_for(1ms);
    ASSERT_EQ(service.held.size(), 1U);
    other.worker().close();
    run_for(1ms);
  }
  service.held.clear();
  run_for(1ms);
  RecordedCall next;
  start(next, 10);
  run_for(1ms);
  EXPECT_EQ(service.held.size(), 1U);
  service.held.clear();  // dropped unanswered
  run_dry(client_);
  EXPECT_TRUE(next.failed_with(ErrorCode::cancelled));
  RecordedCall last;
  start(last, 10);
  run_for(1ms);
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(last.succeeded());
}

using PressureTest = ServiceFace;

TEST_F(PressureTest, pressure__says_what_a_call_would_meet) {
  EXPECT_EQ(session_.pressure(), Pressure::closed);  // never connected
  HoldingService service;
  Config server_config;
  server_config.requests_max = 4;
  server_config.credits_per_peer = 4;
  server_config.coalesce_max = 0;
  server_config.receive_spare = 0;
  Config client_config;
  client_config.calls_max = 40;
  client_config.coalesce_max = 0;
  open(service, {}, server_config, client_config);
  EXPECT_EQ(session_.pressure(), Pressure::none);
  std::vector<RecordedCall> calls(40);
  std::size_t started = 0;
  while (session_.pressure() == Pressure::none) {
    start(calls[started++], 10);
    run_for(1ms);
  }
  EXPECT_EQ(session_.pressure(), Pressure::waiting);
  EXPECT_LT(started, 12U);
  while (session_.pressure() == Pressure::waiting) start(calls[started++], 10);
  EXPECT_EQ(session_.pressure(), Pressure::full);
  EXPECT_EQ(started, calls.size());
  for (int i = 0; i < 50; ++i) {
    service.answer();
    run_for(1ms);
  }
  EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](const auto& call) { return call.succeeded(); }));
  EXPECT_EQ(session_.pressure(), Pressure::none);
  client_.worker().close();
  EXPECT_EQ(session_.pressure(), Pressure::closed);
}

TEST_F(PressureTest, try_start_call__leaves_the_request_with_the_caller) {
  HoldingService service;
  Config config;
  config.requests_max = 2;
  config.credits_per_peer = 2;
  config.receive_spare = 0;
  open(service, {}, config);
  std::vector<RecordedCall> calls(20);
  Buffer request;
  Result<> tried;
  std::size_t started = 0;
  while (started < calls.size()) {
    request = filled(client_.worker(), 4000, 4000);
    tried = session_.try_start_call(request, calls[started]);
    if (!tried) break;
    ++started;
    EXPECT_EQ(request.size(), 0U);
    run_for(1ms);
  }
  ASSERT_FALSE(tried.has_value());
  EXPECT_EQ(tried.error().code, ErrorCode::would_block);
  EXPECT_EQ(request.size(), 4000U);
  EXPECT_TRUE(is_filled(std::as_const(request).bytes(), 4000));
  EXPECT_EQ(counter(client_, "calls.started"), started);
  for (int i = 0; i < 20; ++i) {
    service.answer();
    run_for(1ms);
  }
  RecordedCall again;
  ASSERT_TRUE(session_.try_start_call(request, again).has_value());
  run_for(1ms);
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(again.succeeded());
  client_.worker().close();
  request = Buffer{};
  EXPECT_EQ(session_.try_start_call(request, again).error().code, ErrorCode::closed);
}

Task<> call_when_ready(Worker worker, Session session, std::vector<int>& order, int number) {
  auto ready = co_await session.ready();
  if (!ready) {
    order.push_back(-number);
    co_return;
  }
  EXPECT_EQ(session.pressure(), Pressure::none) << number;
  auto answer = co_await session.call(filled(worker, 4000, 1));
  EXPECT_TRUE(answer.has_value());
  order.push_back(number);
}

// More callers than there are credits: nobody ever queues, and all get their turn, in order.
TEST_F(PressureTest, ready__lets_as_many_go_as_there_is_room_for) {
  EchoService echo;
  Config config;
  config.credits_per_peer = 3;
  open(echo, {}, config);
  std::vector<int> order;
  for (int i = 1; i <= 60; ++i) client_.worker().spawn(call_when_ready(client_.worker(), session_, order, i));
  run_dry(client_);
  ASSERT_EQ(order.size(), 60U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  expect_rest();
}

Task<> only_wait(Session session, int& resumed) {
  const auto ready = co_await session.ready();
  if (ready) ++resumed;
}

// Those who are resumed and do nothing keep nobody waiting.
TEST_F(PressureTest, ready__goes_on_to_the_next_if_nobody_calls) {
  HoldingService service;
  Config config;
  config.credits_per_peer = 2;
  config.requests_max = 1;
  config.receive_spare = 0;
  open(service, {}, config);
  std::vector<RecordedCall> calls(4);
  for (RecordedCall& call : calls) start(call, 4000);
  run_for(1ms);
  int resumed = 0;
  for (int i = 0; i < 20; ++i) client_.worker().spawn(only_wait(session_, resumed));
  run_for(1ms);
  ASSERT_EQ(resumed, 0) << static_cast<int>(session_.pressure()) << service.held.size() << calls[0].done();
  for (int i = 0; i < 10; ++i) {
    service.answer();
    run_for(1ms);
  }
  EXPECT_EQ(resumed, 20);
}

TEST_F(PressureTest, ready__ends_with_the_session) {
  HoldingService service;
  Config config;
  config.credits_per_peer = 2;
  config.requests_max = 1;
  config.receive_spare = 0;
  open(service, {}, config);
  std::vector<RecordedCall> calls(4);
  for (RecordedCall& call : calls) start(call, 4000);
  run_for(1ms);
  std::vector<int> order;
  client_.worker().spawn(call_when_ready(client_.worker(), session_, order, 7));
  run_for(1ms);
  EXPECT_TRUE(order.empty());
  server_.worker().close();
  run_dry(client_);
  EXPECT_EQ(order, std::vector<int>{-7});
}

// Records in which order requests of one byte came.
class OrderService final : public Service {
 public:
  void handle(Request request) noexcept override {
    const Buffer payload = std::move(request.payload());
    order.push_back(std::to_integer<int>(payload.data()[0]));
    request.reply(Buffer{});
  }
  std::vector<int> order;
};

class PriorityTest : public ServiceFace {
 protected:
  // Starts `normal` calls and behind them `high` urgent ones, all before anything can leave but the first;
  // gives the places at which the urgent ones came.
  std::vector<std::size_t> places_of_urgent(int normal, int high) {
    OrderService service;
    Config config;
    config.credits_per_peer = 2;
    config.coalesce_max = 0;
    open(service, {}, config, config);
    std::vector<RecordedCall> calls(static_cast<std::size_t>(normal + high));
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const bool urgent = i >= static_cast<std::size_t>(normal);
      Buffer byte = client_.worker().allocate(1).value();
      byte.data()[0] = urgent ? std::byte{1} : std::byte{0};
      session_.start_call(std::move(byte), calls[i],
                          {.priority = urgent ? Priority::high : Priority::normal});
    }
    run_dry(client_);
    for (const RecordedCall& call : calls) EXPECT_TRUE(call.succeeded());
    expect_rest();
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < service.order.size(); ++i) {
      if (service.order[i] == 1) places.push_back(i);
    }
    return places;
  }
};

TEST_F(PriorityTest, high__overtakes_what_waits) {
  const std::vector<std::size_t> places = places_of_urgent(50, 3);
  ASSERT_EQ(places.size(), 3U);
  EXPECT_LE(places.back(), 5U);  // one had left before
}

TEST_F(PriorityTest, normal__goes_behind_so_many_high_ones) {
  const std::vector<std::size_t> places = places_of_urgent(20, 60);
  ASSERT_EQ(places.size(), 60U);
  std::size_t row = 0;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    row = i > 0 && places[i] == places[i - 1] + 1 ? row + 1 : 1;
    // Once no normal one is left there is nothing to be fair to.
    if (places[i] < 70) longest = std::max(longest, row);
  }
  EXPECT_EQ(longest, kHighInARow);
  EXPECT_LT(places[50], 60U);  // and still the high ones had most of the places
}

class DrainTest : public ServiceFace {
 protected:
  static Task<> drain_task(Worker worker, std::optional<Result<>>& out, Instant deadline) {
    out = co_await worker.drain(deadline);
  }
  void start_drain(Instant deadline = kNever) {
    server_.worker().spawn(drain_task(server_.worker(), drained_, deadline));
    run_for(1ms);
  }
  std::optional<Result<>> drained_;
};

TEST_F(DrainTest, drain__of_an_idle_worker_closes_it) {
  EchoService echo;
  open(echo);
  start_drain();
  run_dry(client_);
  ASSERT_TRUE(drained_.has_value());
  EXPECT_TRUE(drained_->has_value());
  EXPECT_EQ(session_.pressure(), Pressure::closed);
  EXPECT_EQ(try_connect(client_, "server").error().code, ErrorCode::unreachable);
}

TEST_F(DrainTest, drain__answers_what_it_has_and_refuses_the_rest) {
  for (const std::size_t size : {10, 4000, 300'000}) {
    HoldingService service;
    drained_.reset();
    open(service);
    RecordedCall held;
    start(held, size);
    run_for(1ms);
    ASSERT_EQ(service.held.size(), 1U);
    start_drain();
    EXPECT_TRUE(server_.worker().draining());
    EXPECT_FALSE(drained_.has_value());
    RecordedCall late;
    start(late, size);
    run_for(1ms);
    EXPECT_TRUE(late.failed_with(ErrorCode::draining)) << size;
    EXPECT_EQ(late.error->scope, ErrorScope::operation);
    service.answer();
    run_dry(client_);
    EXPECT_TRUE(held.succeeded()) << size;
    EXPECT_EQ(held.answer.size(), size);
    ASSERT_TRUE(drained_.has_value());
    EXPECT_TRUE(drained_->has_value());
    EXPECT_EQ(session_.pressure(), Pressure::closed);
    held.answer = Buffer{};
  }
}

// The last answers are small and unsignalled, and the client looks at them late: it must have them all the
// same, and not learn first that the server has left.
TEST_F(DrainTest, last_answers__are_read_before_the_end_is) {
  HoldingService service;
  Config client_config;
  client_config.turn_completions_max = 1;
  open(service, {}, {}, client_config);
  std::vector<RecordedCall> calls(12);
  for (RecordedCall& call : calls) start(call, 20);
  run_for(1ms);
  ASSERT_EQ(service.held.size(), calls.size());
  service.answer();
  start_drain();
  run_dry(client_);
  for (const RecordedCall& call : calls) EXPECT_TRUE(call.succeeded());
  ASSERT_TRUE(drained_.has_value());
}

TEST_F(DrainTest, deadline__closes_with_something_unfinished) {
  HoldingService service;
  open(service);
  RecordedCall held;
  start(held, 10);
  run_for(1ms);
  start_drain(server_.worker().now() + 5ms);
  EXPECT_FALSE(drained_.has_value());
  run_dry(client_);
  ASSERT_TRUE(drained_.has_value());
  EXPECT_EQ(drained_->error().code, ErrorCode::deadline_exceeded);
  EXPECT_TRUE(held.failed_with(ErrorCode::closed));
  service.answer();  // to nobody
  run_dry(client_);
}

// A worker that is itself waiting for an answer has not finished.
TEST_F(DrainTest, drain__waits_for_calls_of_its_own) {
  HoldingService service;
  open(service);
  Session back = [&] {
    EXPECT_TRUE(client_.worker().serve(kPort, service).has_value());
    return connect(server_, "client");
  }();
  RecordedCall own;
  back.start_call(filled(server_.worker(), 10, 1), own);
  run_for(1ms);
  start_drain();
  EXPECT_FALSE(drained_.has_value());
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(own.succeeded());
  ASSERT_TRUE(drained_.has_value());
}

TEST_F(DrainTest, requests_that_wait__are_refused_when_their_turn_comes) {
  HoldingService service;
  Config config;
  config.requests_max = 1;
  open(service, {}, config);
  std::vector<RecordedCall> calls(3);
  for (RecordedCall& call : calls) start(call, 4000);
  run_for(1ms);
  ASSERT_EQ(service.held.size(), 1U);
  start_drain();
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(calls[0].succeeded());
  EXPECT_TRUE(calls[1].failed_with(ErrorCode::draining));
  EXPECT_TRUE(calls[2].failed_with(ErrorCode::draining));
  ASSERT_TRUE(drained_.has_value());
}

TEST_F(DrainTest, drain__that_nobody_awaits_goes_on) {
  HoldingService service;
  open(service);
  RecordedCall held;
  start(held, 10);
  run_for(1ms);
  {
    DrainAwaiter awaiter = server_.worker().drain(server_.worker().now() + 1h);
    awaiter.await_suspend(std::noop_coroutine());
  }
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(held.succeeded());
  EXPECT_EQ(session_.pressure(), Pressure::closed);
}

}  // namespace
}  // namespace bx::testing
