// SPDX-License-Identifier: BSD-3-Clause
// When registered memory runs out: transfers wait for it, in no one's way, and what can never fit is refused.
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMiB = std::size_t{1} << 20U;

class MemoryTest : public ::testing::TestWithParam<RendezvousPolicy> {
 protected:
  MemoryTest() {
    Config small;
    small.memory_arena = 32 * kMiB;
    small.memory_send = 24 * kMiB;  // all but what the receive slots and headers take
    small.memory_receive = 28 * kMiB;
    small.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
    Config large;
    large.rendezvous_policy = small.rendezvous_policy;
    server_ = world_.add("server", small);
    EXPECT_TRUE(server_.worker().serve(kPort, echo_).has_value());
    client_ = world_.add("client", large);
    session_ = connect(client_, "server");
  }
  void start(RecordedCall& call, std::size_t size, CallOptions options = {}) {
    session_.start_call(filled(client_.worker(), size, size), call, options);
  }
  void run_for(Duration time) { client_.worker().reactor().run(client_.worker().now() + time); }
  void expect_echoed(const RecordedCall& call, std::size_t size) {
    ASSERT_TRUE(call.succeeded());
    EXPECT_EQ(call.answer.size(), size);
    EXPECT_TRUE(is_filled(call.answer.bytes(), size));
  }
  // Takes all of the server's memory, in buffers of one chunk.
  std::vector<Buffer> take_all() {
    std::vector<Buffer> taken;
    for (auto buffer = server_.worker().allocate(4 * kMiB); buffer;
         buffer = server_.worker().allocate(4 * kMiB)) {
      taken.push_back(std::move(*buffer));
    }
    EXPECT_GE(taken.size(), 5U);
    return taken;
  }

  World world_;
  EchoService echo_;
  Node server_;
  Node client_;
  Session session_;
};

TEST_P(MemoryTest, exhausted__transfers_wait_until_memory_comes_back) {
  std::vector<Buffer> taken = take_all();
  RecordedCall call;
  start(call, 6 * kMiB);
  run_for(10ms);
  EXPECT_FALSE(call.done());
  EXPECT_EQ(counter(server_, "stall.memory"), 1);
  taken.clear();  // from outside any turn: it must be noticed all the same
  run_for(10ms);
  expect_echoed(call, 6 * kMiB);
  run_dry(client_);
  expect_at_rest(server_);
}

TEST_P(MemoryTest, exhausted__what_needs_little_does_not_wait_for_what_needs_much) {
  std::vector<Buffer> taken = take_all();
  RecordedCall much;
  RecordedCall little;
  start(much, 20 * kMiB);
  run_for(1ms);
  start(little, 3 * kMiB);
  run_for(1ms);
  EXPECT_FALSE(little.done());
  taken.pop_back();
  run_for(5ms);
  expect_echoed(little, 3 * kMiB);
  EXPECT_FALSE(much.done());
  taken.clear();
  run_for(10ms);
  expect_echoed(much, 20 * kMiB);
}

TEST_P(MemoryTest, exhausted__eager_messages_go_on) {
  const std::vector<Buffer> taken = take_all();
  CallLoop loop(client_.worker(), session_, 500, 20, [](std::uint64_t n) { return std::size_t{n * 16}; });
  loop.start();
  run_dry(client_);
  EXPECT_TRUE(loop.complete());
}

TEST_P(MemoryTest, too_large__for_the_server_is_told_at_once) {
  // Larger than the arena; then smaller, but larger than what the receive slots leave of it.
  for (const std::size_t size : {64 * kMiB, 32 * kMiB, 30 * kMiB}) {
    RecordedCall call;
    start(call, size);
    run_for(1ms);
    EXPECT_TRUE(call.failed_with(ErrorCode::too_large)) << size;
    RecordedCall next;
    start(next, 20 * kMiB);
    run_dry(client_);
    expect_echoed(next, 20 * kMiB);
    next.answer = Buffer{};
    expect_at_rest(client_);
    expect_at_rest(server_);
  }
}

// Answers with much: by default, more than the client's whole arena.
class FloodService final : public Service {
 public:
  void handle(Request request) noexcept override {
    auto answer = request.allocate(size);
    request.reply(std::move(*answer));
  }
  std::size_t size = 64 * kMiB;
};

TEST_P(MemoryTest, too_large__for_the_client_is_told_at_once) {
  FloodService flood;
  ASSERT_TRUE(
      client_.worker().serve(kPort, flood).has_value());  // the roles are changed: the small one calls
  Session session = connect(server_, "client");
  for (int i = 0; i < 3; ++i) {
    RecordedCall call;
    session.start_call(Buffer{}, call);
    run_dry(client_);
    EXPECT_TRUE(call.failed_with(ErrorCode::too_large));
    EXPECT_EQ(call.error->scope, ErrorScope::operation);
  }
  expect_at_rest(client_);
  expect_at_rest(server_);
}

TEST_P(MemoryTest, deadline__of_an_answer_that_waits_for_memory) {
  FloodService flood;
  flood.size = 5 * kMiB;
  ASSERT_TRUE(client_.worker().serve(kPort, flood).has_value());
  Session session = connect(server_, "client");
  RecordedCall waits;
  RecordedCall next;
  std::vector<Buffer> taken = take_all();
  session.start_call(Buffer{}, waits, {.deadline = server_.worker().now() + 5ms});
  run_for(4ms);
  EXPECT_FALSE(waits.done());
  run_for(2ms);
  EXPECT_TRUE(waits.failed_with(ErrorCode::deadline_exceeded));
  taken.clear();
  session.start_call(Buffer{}, next);
  run_dry(client_);
  EXPECT_TRUE(next.succeeded());
  expect_at_rest(client_);
  expect_at_rest(server_);
}

// Whatever the application holds of its side, credits flow, and what is received has memory of its own.
TEST_P(MemoryTest, quota__a_full_send_side_leaves_receiving_alone) {
  Config config;
  config.memory_arena = 64 * kMiB;
  config.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
  Node full = world_.add("full", config);
  ASSERT_TRUE(full.worker().serve(kPort, echo_).has_value());
  Session session = connect(client_, "full");
  std::vector<Buffer> taken;
  for (const std::size_t size : {4 * kMiB, std::size_t{4096}, std::size_t{64}}) {
    for (auto buffer = full.worker().allocate(size); buffer; buffer = full.worker().allocate(size)) {
      taken.push_back(std::move(*buffer));
    }
  }
  EXPECT_EQ(full.worker().allocate(1).error().code, ErrorCode::exhausted);
  EXPECT_EQ(counter(full, "memory.send_in_use"), counter(full, "memory.send_quota"));
  EXPECT_GE(counter(full, "memory.send_failures"), 4);
  CallLoop eager(client_.worker(), session, 500, 20, [](std::uint64_t n) { return std::size_t{n * 16}; });
  CallLoop rendezvous(client_.worker(), session, 20, 4, [](std::uint64_t n) { return kMiB + n * 1000; });
  eager.start();
  rendezvous.start();
  run_dry(client_);
  EXPECT_TRUE(eager.complete());
  EXPECT_TRUE(rendezvous.complete());
  full.worker().check_invariants();
}

INSTANTIATE_TEST_SUITE_P(Policies, MemoryTest,
                         ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write),
                         [](const auto& param) {
                           return param.param == RendezvousPolicy::pull ? "pull" : "write";
                         });

}  // namespace
}  // namespace bx::testing
