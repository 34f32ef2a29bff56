// SPDX-License-Identifier: BSD-3-Clause
// put and get on memory that a peer has exposed.
#include <deque>

#include "tests/engine/raw_peer.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

class OneSidedTest : public ::testing::Test {
 protected:
  OneSidedTest() { make({}); }
  void make(const Config& config) {
    end(client_);
    end(owner_);
    world_ = std::make_unique<World>();
    owner_ = world_->add("owner", config);
    client_ = world_->add("client", config);
    EXPECT_TRUE(owner_.worker().serve(kPort, echo_).has_value());
    session_ = connect(client_, "owner");
    run_dry(client_);
  }
  Exposed expose(std::size_t size, std::uint64_t salt = 9) {
    return owner_.worker().expose(filled(owner_.worker(), size, salt)).value();
  }
  void expect_rest() {
    run_dry(client_);
    expect_at_rest(client_);
    expect_at_rest(owner_);
  }
  EchoService echo_;
  std::unique_ptr<World> world_;
  Node owner_;
  Node client_;
  Session session_;
};

constexpr std::size_t kChunk = 65'536;

TEST_F(OneSidedTest, put_then_get__of_all_sizes) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{219}, std::size_t{8192},
                                 kChunk - 1, kChunk, kChunk + 1, 5 * kChunk + 17}) {
    Exposed table = expose(size + 64);
    RecordedCall put;
    session_.start_put(filled(client_.worker(), size, 3), table.remote().at(32), put);
    EXPECT_FALSE(put.done());  // never from inside
    run_dry(client_);
    ASSERT_TRUE(put.succeeded()) << size;
    EXPECT_TRUE(put.answer.size() == size && is_filled(put.answer.bytes(), 3));
    EXPECT_TRUE(is_filled(table.bytes().subspan(32, size), 3));
    Buffer around = filled(owner_.worker(), size + 64, 9);
    EXPECT_TRUE(std::ranges::equal(table.bytes().first(32), around.bytes().first(32))) << size;
    EXPECT_TRUE(std::ranges::equal(table.bytes().last(32), around.bytes().last(32))) << size;

    RecordedCall get;
    session_.start_get(client_.worker().allocate(size).value(), table.remote().at(32), get);
    run_dry(client_);
    ASSERT_TRUE(get.succeeded());
    EXPECT_TRUE(get.answer.size() == size && is_filled(get.answer.bytes(), 3));
  }
  EXPECT_EQ(counter(owner_, "messages.received"), 0);  // its program had no part in it
  expect_rest();
}

TEST_F(OneSidedTest, coroutines__await_both) {
  Exposed table = expose(100'000);
  const auto use = [](Worker worker, Session session, RemoteRegion remote) -> Task<int> {
    auto put = co_await session.put(filled(worker, 100'000, 4), remote);
    if (!put) co_return 1;
    auto got = co_await session.get(worker.allocate(100'000).value(), remote);
    co_return got&& is_filled(got->bytes(), 4) ? 0 : 2;
  };
  EXPECT_EQ(block_on(client_.worker(), use(client_.worker(), session_, table.remote())).value(), 0);
  expect_rest();
}

// What was put is there when a message sent after its completion is.
TEST_F(OneSidedTest, put__is_visible_to_who_is_told_of_it) {
  Exposed table = expose(200'000);
  struct Looking final : Service {
    void handle(Request request) noexcept override {
      seen = is_filled(table->bytes(), 5);
      request.reply(Buffer{});
    }
    Exposed* table = nullptr;
    bool seen = false;
  } service;
  service.table = &table;
  ASSERT_TRUE(owner_.worker().serve(kPort + 1, service).has_value());
  Session telling = connect(client_, "owner", kPort + 1);
  struct Put final : CallOp {
    void on_complete() noexcept override { session.start_call(Buffer{}, told); }
    Session session;
    RecordedCall told;
  } put;
  put.session = telling;
  session_.start_put(filled(client_.worker(), 200'000, 5), table.remote(), put);
  run_dry(client_);
  EXPECT_TRUE(put.told.succeeded());
  EXPECT_TRUE(service.seen);
  expect_rest();
}

TEST_F(OneSidedTest, windows__bound_what_is_in_flight_both_ways) {
  Config config;
  config.window_per_peer = 65'536;
  config.window_receiver = 65'536;
  config.rendezvous_chunk = 16'384;
  make(config);
  Exposed table = expose(4U << 20U);
  RecordedCall put;
  RecordedCall get;
  session_.start_put(filled(client_.worker(), 1U << 20U, 1), table.remote(), put);
  session_.start_get(client_.worker().allocate(1U << 20U).value(), table.remote().at(2U << 20U), get);
  while (!put.done() || !get.done()) {
    const WorkerGauges gauges = client_.worker().gauges();
    ASSERT_LE(gauges.bytes_in_flight_out, 65'536U);
    ASSERT_LE(gauges.bytes_in_flight_in, 65'536U);
    client_.worker().reactor().run(client_.worker().now() + 1us);
  }
  EXPECT_TRUE(put.succeeded() && get.succeeded());
  put.answer = {};
  get.answer = {};
  expect_rest();
}

TEST_F(OneSidedTest, range__is_refused_before_the_nic_is_asked) {
  Exposed table = expose(1000);
  for (const RemoteRegion& remote : {table.remote().at(1), table.remote().at(1000), table.remote().at(1001),
                                     table.remote().at(~std::uint64_t{0})}) {
    RecordedCall put;
    RecordedCall get;
    session_.start_put(filled(client_.worker(), 1000, 1), remote, put);
    session_.start_get(client_.worker().allocate(1000).value(), remote, get);
    run_dry(client_);
    EXPECT_TRUE(put.failed_with(ErrorCode::invalid_argument));
    EXPECT_TRUE(get.failed_with(ErrorCode::invalid_argument));
  }
  EXPECT_TRUE(is_filled(table.bytes(), 9));
  expect_rest();
}

TEST_F(OneSidedTest, owner_started_again__its_old_regions_are_refused) {
  const RemoteRegion old = expose(1000).remote();
  client_.worker().reactor().run(client_.worker().now() + 1ms);
  end(owner_);
  run_dry(client_);
  owner_ = world_->add("owner");
  ASSERT_TRUE(owner_.worker().serve(kPort, echo_).has_value());
  session_ = connect(client_, "owner");
  RecordedCall put;
  session_.start_put(filled(client_.worker(), 10, 1), old, put);
  run_dry(client_);
  EXPECT_TRUE(put.failed_with(ErrorCode::invalid_argument));
  EXPECT_EQ(counter(client_, "peers.failed"), 1);  // the one before
}

// The NIC alone knows of a revocation: it fails the lane, and touches nothing.
TEST_F(OneSidedTest, revoked__fails_the_lane_and_not_a_byte_is_written) {
  Exposed table = expose(300'000);
  const RemoteRegion remote = table.remote();
  Buffer back = table.revoke();
  RecordedCall put;
  session_.start_put(filled(client_.worker(), 300'000, 1), remote, put);
  run_dry(client_);
  EXPECT_TRUE(put.failed_with(ErrorCode::device));
  EXPECT_EQ(put.error->scope, ErrorScope::session);
  EXPECT_TRUE(is_filled(back.bytes(), 9));
  EXPECT_TRUE(client_.worker().idle());
  session_ = connect(client_, "owner");  // and the next lane works
  RecordedCall call;
  session_.start_call(Buffer{}, call);
  run_dry(client_);
  EXPECT_TRUE(call.succeeded());
}

TEST_F(OneSidedTest, revoked_on_the_way__writes_nothing_afterwards) {
  Exposed table = expose(1U << 20U);
  RecordedCall put;
  session_.start_put(filled(client_.worker(), 1U << 20U, 1), table.remote(), put);
  client_.worker().reactor().run(client_.worker().now() + 20us);
  ASSERT_FALSE(put.done());
  Buffer back = table.revoke();
  fill(back.bytes(), 8);  // the owner's again
  run_dry(client_);
  EXPECT_TRUE(put.failed_with(ErrorCode::device));
  EXPECT_TRUE(is_filled(back.bytes(), 8));
}

// At each of many instants: one completion, memory back only when the NIC is done, and nothing leaks.
TEST_F(OneSidedTest, cancel__at_any_instant) {
  Exposed table = expose(600'000);
  const double idle = counter(client_, "memory.arena_in_use");
  for (Duration when = 0us; when < 80us; when += 3us) {
    RecordedCall put;
    RecordedCall get;
    session_.start_put(filled(client_.worker(), 300'000, 1), table.remote(), put);
    session_.start_get(client_.worker().allocate(300'000).value(), table.remote().at(300'000), get);
    client_.worker().reactor().run(client_.worker().now() + when);
    put.cancel();
    get.cancel();
    // Chunks are still on their way: the memory must not be given to anybody.
    Buffer other = filled(client_.worker(), 300'000, 7);
    run_dry(client_);
    EXPECT_TRUE(is_filled(other.bytes(), 7)) << when.count();
    EXPECT_TRUE(put.completions == 1 && get.completions == 1) << when.count();
    put.answer = {};
    get.answer = {};
    other.reset();
    EXPECT_EQ(counter(client_, "memory.arena_in_use"), idle) << when.count();
    expect_at_rest(client_);
  }
}

TEST_F(OneSidedTest, deadline__ends_it_and_the_worker_goes_on) {
  Exposed table = expose(4U << 20U);
  RecordedCall put;
  session_.start_put(filled(client_.worker(), 4U << 20U, 1), table.remote(), put,
                     {.deadline = client_.worker().now() + 50us});
  run_dry(client_);
  EXPECT_TRUE(put.failed_with(ErrorCode::deadline_exceeded));
  expect_rest();
}

TEST_F(OneSidedTest, transfers_max__is_exhausted) {
  Config config;
  config.transfers_max = 1;
  make(config);
  Exposed table = expose(1000);
  RecordedCall first;
  RecordedCall second;
  session_.start_put(filled(client_.worker(), 1000, 1), table.remote(), first);
  session_.start_put(filled(client_.worker(), 1000, 1), table.remote(), second);
  run_dry(client_);
  EXPECT_TRUE(first.succeeded());
  EXPECT_TRUE(second.failed_with(ErrorCode::exhausted));
  first.answer = {};
  expect_rest();
}

TEST_F(OneSidedTest, close__ends_what_is_under_way) {
  Exposed table = expose(1U << 20U);
  RecordedCall put;
  RecordedCall get;
  session_.start_put(filled(client_.worker(), 1U << 19U, 1), table.remote(), put);
  session_.start_get(client_.worker().allocate(1U << 19U).value(), table.remote().at(1U << 19U), get);
  client_.worker().reactor().run(client_.worker().now() + 20us);
  client_.worker().close();
  run_dry(client_);
  EXPECT_TRUE(put.failed_with(ErrorCode::closed) && get.failed_with(ErrorCode::closed));
  EXPECT_TRUE(client_.worker().idle());
  client_.worker().check_invariants();
}

// An answer to a put is nothing that an honest peer sends.
TEST_F(OneSidedTest, answered__loses_the_lane) {
  RawPeer raw(*world_, "raw");
  raw.listen(kPort);
  Session session = connect(client_, "raw");
  RecordedCall put;
  session.start_put(filled(client_.worker(), 1U << 20U, 1),
                    {.addr = raw.address(), .length = 1U << 20U, .rkey = raw.rkey(), .owner = 0}, put);
  client_.worker().reactor().run(client_.worker().now() + 10us);
  for (std::uint64_t slot = 0; slot < 4; ++slot) raw.send(raw.response_to((std::uint64_t{1} << 32U) | slot));
  run_dry(client_);
  EXPECT_TRUE(put.failed_with(ErrorCode::protocol));
}

}  // namespace
}  // namespace bx::testing
