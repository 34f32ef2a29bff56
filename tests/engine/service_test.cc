// SPDX-License-Identifier: BSD-3-Clause
// What services may do with requests, and what their callers see of it.
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

class ServiceTest : public ::testing::Test {
 protected:
  void open(Service& service, const Config& server_config = {}, const Config& client_config = {}) {
    server_ = world_.add("server", server_config);
    ASSERT_TRUE(server_.worker().serve(kPort, service).has_value());
    client_ = world_.add("client", client_config);
    session_ = connect(client_, "server");
  }
  void start(RecordedCall& call, std::size_t size, std::uint64_t salt = 1, CallOptions options = {}) {
    session_.start_call(filled(client_.worker(), size, salt), call, options);
  }
  void run_for(Duration time) { client_.worker().reactor().run(client_.worker().now() + time); }

  World world_;
  Node server_;
  Node client_;
  Session session_;
};

class RejectingService final : public Service {
 public:
  void handle(Request request) noexcept override { request.reject(code); }
  ErrorCode code = ErrorCode::unsupported;
};

class DroppingService final : public Service {
 public:
  void handle(Request /*request*/) noexcept override {}
};

TEST_F(ServiceTest, reject__gives_the_caller_the_code) {
  RejectingService service;
  open(service);
  for (const std::size_t size : {0, 4000, 100'000}) {
    for (const ErrorCode code : {ErrorCode::invalid_argument, ErrorCode::unsupported, ErrorCode::too_large}) {
      service.code = code;
      RecordedCall call;
      start(call, size);
      run_dry(client_);
      EXPECT_TRUE(call.failed_with(code));
      EXPECT_EQ(call.error->scope, ErrorScope::operation);
    }
  }
  expect_at_rest(client_);
  expect_at_rest(server_);
}

TEST_F(ServiceTest, drop__tells_the_caller_cancelled) {
  DroppingService service;
  open(service);
  RecordedCall call;
  start(call, 5000);
  run_dry(client_);
  EXPECT_TRUE(call.failed_with(ErrorCode::cancelled));
  expect_at_rest(server_);
}

TEST_F(ServiceTest, reply__after_the_caller_has_given_up_goes_nowhere) {
  HoldingService service;
  open(service);
  for (const std::size_t size : {10, 4000, 200'000}) {
    RecordedCall call;
    start(call, size, 1, {.deadline = client_.worker().now() + 1ms});
    run_for(2ms);
    EXPECT_TRUE(call.failed_with(ErrorCode::deadline_exceeded));
    ASSERT_EQ(service.held.size(), 1U);
    service.answer();
    run_dry(client_);
    EXPECT_EQ(call.completions, 1);
    expect_at_rest(client_);
    expect_at_rest(server_);
  }
}

TEST_F(ServiceTest, reply__after_the_peer_is_gone_goes_nowhere) {
  HoldingService service;
  open(service);
  {
    RecordedCall call;
    start(call, 4000);
    run_for(1ms);
    client_.context.reset();
    client_.host.reset();
  }
  run_dry(server_);
  ASSERT_EQ(service.held.size(), 1U);
  EXPECT_FALSE(server_.worker().idle());
  service.answer();
  run_dry(server_);
  EXPECT_TRUE(server_.worker().idle());
  server_.worker().check_invariants();
}

// Its place goes to a request that waits, although nothing is sent and nothing comes.
TEST_F(ServiceTest, reply__after_the_peer_is_gone_lets_the_next_be_served) {
  HoldingService service;
  Config config;
  config.requests_max = 1;
  open(service, config);
  Node other = world_.add("other");
  Session theirs = connect(other, "server");
  {
    RecordedCall call;
    theirs.start_call(Buffer{}, call);
    run_for(1ms);
    ASSERT_EQ(service.held.size(), 1U);
    other.context.reset();
    other.host.reset();
  }
  RecordedCall next;
  start(next, 10);
  run_for(1ms);
  service.answer();  // to nobody
  run_for(1ms);
  ASSERT_EQ(service.held.size(), 1U);
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(next.succeeded());
}

TEST_F(ServiceTest, reply__after_the_worker_is_closed_goes_nowhere) {
  HoldingService service;
  open(service);
  RecordedCall call;
  start(call, 4000);
  run_for(1ms);
  server_.worker().close();
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(call.failed_with(ErrorCode::closed));
  EXPECT_TRUE(server_.worker().idle());
}

// The payload lies in a receive slot; as an answer it leaves from there, eagerly or offered.
TEST_F(ServiceTest, reply__with_the_slot_it_was_lent) {
  EchoService echo;
  for (const RendezvousPolicy policy : {RendezvousPolicy::pull, RendezvousPolicy::granted_write}) {
    for (const std::uint64_t eager_back : {8192, 256}) {
      Config server;
      server.rendezvous_policy = static_cast<std::uint64_t>(policy);
      Config client;
      client.eager_max = eager_back;
      World world;
      Node there = world.add("server", server);
      ASSERT_TRUE(there.worker().serve(kPort, echo).has_value());
      // The client's eager.max bounds what it sends as well; the slots of the server take more.
      client.eager_max = 4000;
      Node here = world.add("client", client);
      const Session session = connect(here, "server");
      RecordedCall call;
      Session(session).start_call(filled(here.worker(), 3000, 9), call);
      run_dry(here);
      EXPECT_TRUE(call.succeeded());
      EXPECT_TRUE(is_filled(call.answer.bytes(), 9));
      EXPECT_EQ(counter(there, "memory.copied_out"), 0);
      expect_at_rest(there);
    }
  }
}

// Makes the answer longer than the request, in the place it was lent: up to its capacity.
class GrowingService final : public Service {
 public:
  void handle(Request request) noexcept override {
    Buffer payload = std::move(request.payload());
    capacity = payload.capacity();
    payload.resize(payload.capacity());
    fill(payload.bytes(), 3);
    request.reply(std::move(payload));
  }
  std::size_t capacity = 0;
};

TEST_F(ServiceTest, reply__with_a_lent_slot_grown_to_its_capacity) {
  GrowingService service;
  open(service);
  RecordedCall call;
  start(call, 300);
  run_dry(client_);
  ASSERT_TRUE(call.succeeded());
  EXPECT_EQ(call.answer.size(), service.capacity);
  EXPECT_GT(service.capacity, 8000U);
  EXPECT_TRUE(is_filled(call.answer.bytes(), 3));
}

// Requests that are kept take receive slots; when the spare ones are nearly gone payloads are copied out, and
// other clients go on as if nothing was.
TEST_F(ServiceTest, hold__copies_out_when_slots_run_short_and_leaves_others_alone) {
  HoldingService service;
  Config config;
  config.peers_max = 2;
  config.credits_per_peer = 4;
  config.receive_spare = 8;
  open(service, config);
  EchoService echo;
  ASSERT_TRUE(server_.worker().serve(kPort + 1, echo).has_value());
  std::vector<std::unique_ptr<RecordedCall>> calls;
  for (std::uint64_t i = 0; i < 60; ++i) {
    calls.push_back(std::make_unique<RecordedCall>());
    start(*calls.back(), 2000, i);
  }
  run_for(5ms);
  EXPECT_EQ(service.held.size(), 60U);
  EXPECT_GT(counter(server_, "memory.copied_out"), 40);
  Node other = world_.add("other");
  CallLoop loop(other.worker(), connect(other, "server", kPort + 1), 200, 10,
                [](std::uint64_t n) { return std::size_t{n * 40}; });
  loop.start();
  run_for(10ms);
  EXPECT_TRUE(loop.complete());
  service.answer();
  run_dry(client_);
  for (std::uint64_t i = 0; i < 60; ++i) {
    EXPECT_TRUE(calls[i]->succeeded());
    EXPECT_TRUE(is_filled(calls[i]->answer.bytes(), i));
  }
  expect_at_rest(server_);
}

// With no spare slot and requests.max reached, what waits keeps its receives; another client's still flow.
TEST_F(ServiceTest, hold__at_requests_max_makes_clients_wait_in_order) {
  HoldingService service;
  Config config = tiny();
  config.requests_max = 2;
  open(service, config, tiny());
  std::vector<std::unique_ptr<RecordedCall>> calls;
  for (std::uint64_t i = 0; i < 10; ++i) {
    calls.push_back(std::make_unique<RecordedCall>());
    start(*calls.back(), 50 * i, i);
  }
  std::vector<std::size_t> sizes;
  for (int round = 0; round < 10; ++round) {
    run_for(1ms);
    EXPECT_LE(service.held.size(), 2U);
    for (Request& request : service.held) sizes.push_back(request.payload().size());
    service.answer();
  }
  run_dry(client_);
  for (const auto& call : calls) EXPECT_TRUE(call->succeeded());
  EXPECT_TRUE(std::ranges::is_sorted(sizes));
  EXPECT_EQ(sizes.size(), 10U);
  expect_at_rest(server_);
}

TEST_F(ServiceTest, start_call__beyond_calls_max_is_exhausted_and_never_from_inside) {
  HoldingService service;
  Config config;
  config.calls_max = 2;
  open(service, {}, config);
  std::array<RecordedCall, 3> calls;
  for (RecordedCall& call : calls) start(call, 10);
  EXPECT_FALSE(calls[2].done());
  run_for(1ms);
  EXPECT_TRUE(calls[2].failed_with(ErrorCode::exhausted));
  EXPECT_EQ(calls[2].error->scope, ErrorScope::operation);
  EXPECT_FALSE(calls[0].done());
  service.answer();
  run_for(1ms);
  EXPECT_TRUE(calls[0].succeeded());
  RecordedCall again;
  start(again, 10);
  run_for(1ms);
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(again.succeeded());
}

TEST_F(ServiceTest, deadline__already_past_completes_without_waiting) {
  EchoService echo;
  open(echo);
  RecordedCall call;
  start(call, 1 << 20, 1, {.deadline = Instant{}});
  EXPECT_FALSE(call.done());
  run_for(10us);
  EXPECT_TRUE(call.failed_with(ErrorCode::deadline_exceeded));
  EXPECT_EQ(call.error->scope, ErrorScope::operation);
  run_dry(client_);
  expect_at_rest(client_);
  expect_at_rest(server_);
}

TEST_F(ServiceTest, deadline__without_one_is_that_of_the_config) {
  HoldingService service;
  Config config;
  config.call_deadline = 3'000'000;
  open(service, {}, config);
  RecordedCall call;
  const Instant start_time = client_.worker().now();
  start(call, 10);
  client_.worker().reactor().run(start_time + 3ms - 1ns);
  EXPECT_FALSE(call.done());
  run_for(10us);
  EXPECT_TRUE(call.failed_with(ErrorCode::deadline_exceeded));
}

// The first in the queue waits for an outgoing transfer; when its deadline takes it away, those behind it go.
TEST_F(ServiceTest, deadline__of_the_first_in_the_queue_lets_the_next_go) {
  HoldingService service;
  Config config;
  config.transfers_max = 1;
  Config server = config;
  server.requests_max = 1;
  open(service, server, config);
  RecordedCall served;
  RecordedCall waits_there;
  RecordedCall waits_here;
  RecordedCall behind;
  start(served, 10, 1);
  run_for(1ms);
  start(waits_there, 100'000, 2);  // offered, and kept waiting by requests.max: the one outgoing transfer
  start(waits_here, 100'000, 3, {.deadline = client_.worker().now() + 1ms});
  start(behind, 10, 4);
  run_for(500us);
  const double sent = counter(client_, "messages.sent");
  run_for(1ms);
  EXPECT_TRUE(waits_here.failed_with(ErrorCode::deadline_exceeded));
  EXPECT_EQ(counter(client_, "messages.sent"), sent + 1);
  for (int i = 0; i < 5; ++i) {
    service.answer();
    run_for(1ms);
  }
  EXPECT_TRUE(served.succeeded() && waits_there.succeeded() && behind.succeeded());
  expect_at_rest(server_);
}

TEST_F(ServiceTest, abandon__of_an_operation_that_is_complete_but_not_told) {
  HoldingService service;
  Config config;
  config.calls_max = 1;
  open(service, {}, config);
  RecordedCall first;
  start(first, 10);
  auto second = std::make_unique<RecordedCall>();
  start(*second, 10);  // exhausted: complete already, told in the next turn
  second.reset();
  run_for(1ms);
  service.answer();
  run_dry(client_);
  EXPECT_TRUE(first.succeeded());
}

// Closing the worker from inside what it calls.
class ClosingService final : public Service {
 public:
  void handle(Request request) noexcept override {
    worker->close();
    request.reply(Buffer{});
  }
  std::optional<Worker> worker;
};

TEST_F(ServiceTest, close__from_inside_a_handler) {
  for (const std::size_t size : {10, 4000, 100'000}) {
    ClosingService service;
    World world;
    Node server = world.add("server");
    service.worker = server.worker();
    ASSERT_TRUE(server.worker().serve(kPort, service).has_value());
    Node client = world.add("client");
    Session session = connect(client, "server");
    std::array<RecordedCall, 5> calls;
    for (RecordedCall& call : calls) session.start_call(filled(client.worker(), size, 1), call);
    run_dry(client);
    for (const RecordedCall& call : calls) {
      EXPECT_TRUE(call.failed_with(ErrorCode::closed));
      EXPECT_EQ(call.error->scope, ErrorScope::session);
    }
    EXPECT_TRUE(server.worker().idle());
    EXPECT_TRUE(client.worker().idle());
    server.worker().check_invariants();
    client.worker().check_invariants();
  }
}

struct ClosingCall final : CallOp {
  explicit ClosingCall(Worker of) : worker(of) {}
  void on_complete() noexcept override {
    ++completions;
    worker.close();
    worker.close();  // idempotent
  }
  Worker worker;
  int completions = 0;
};

TEST_F(ServiceTest, close__from_inside_a_completion) {
  EchoService echo;
  open(echo);
  std::array<RecordedCall, 4> before;
  std::array<RecordedCall, 4> after;
  for (RecordedCall& call : before) start(call, 100'000);
  ClosingCall closing(client_.worker());
  session_.start_call(Buffer{}, closing);
  for (RecordedCall& call : after) start(call, 100'000);
  run_dry(client_);
  EXPECT_EQ(closing.completions, 1);
  for (const RecordedCall& call : after) EXPECT_TRUE(call.failed_with(ErrorCode::closed));
  for (const RecordedCall& call : before) EXPECT_EQ(call.completions, 1);
  RecordedCall late;
  session_.start_call(Buffer{}, late);
  run_dry(client_);
  EXPECT_TRUE(late.failed_with(ErrorCode::closed));
  EXPECT_TRUE(client_.worker().idle());
  EXPECT_TRUE(server_.worker().idle());
}

}  // namespace
}  // namespace bx::testing
