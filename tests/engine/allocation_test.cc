// SPDX-License-Identifier: BSD-3-Clause
// A turn of the worker allocates nothing after start: with sessions open and everything used once, calls of
// every kind go by without one heap allocation, at both ends and in the provider.
#include "tests/engine/world.h"
#include "tests/support/allocation_guard.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

// Calls one after the other, the next from the completion of the last.
class CallChain final : public CallOp {
 public:
  CallChain(Worker worker, Session session, std::size_t size, int calls)
      : worker_(worker), session_(session), size_(size), left_(calls) {}
  void next() noexcept { session_.start_call(worker_.allocate(size_).value(), *this); }
  void on_complete() noexcept override {
    failed += result().has_value() && (*result()).size() == size_ ? 0 : 1;
    result() = Buffer{};
    if (--left_ > 0) {
      next();
    } else {
      worker_.reactor().stop();
    }
  }
  int failed = 0;

 private:
  Worker worker_;
  Session session_;
  std::size_t size_;
  int left_;
};

Task<Session> open(Worker worker) {
  co_return (co_await worker.connect("server", kPort)).value();
}

enum class Limits { normal, tiny };
class AllocationOfPolicy : public ::testing::TestWithParam<std::tuple<Limits, RendezvousPolicy>> {};

class AllocationOfCall : public ::testing::TestWithParam<std::tuple<std::size_t, RendezvousPolicy>> {};

TEST_P(AllocationOfCall, turn__allocates_nothing_after_start) {
  const auto [size, policy] = GetParam();
  Config config;
  config.rendezvous_policy = static_cast<std::uint64_t>(policy);
  World world;
  EchoService echo;
  Node server = world.add("server", config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = world.add("client", config);
  const Session session = block_on(client.worker(), open(client.worker())).value();
  const auto run = [&](int calls) {
    CallChain chain(client.worker(), session, size, calls);
    chain.next();
    client.worker().reactor().run(kNever);
    return chain.failed;
  };
  ASSERT_EQ(run(300), 0);  // whatever grows to its working size has grown

  const test::AllocationCount before;
  const int failed = run(300);
  const auto allocations = before.since();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(allocations, 0U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AllocationOfCall,
                         ::testing::Combine(::testing::Values(0, 64, 4096, 65536, 1U << 20U),
                                            ::testing::Values(RendezvousPolicy::pull,
                                                              RendezvousPolicy::granted_write)));

// Many calls of all kinds at once, and nothing warmed up but the sessions: every working size is known at
// start.
TEST_P(AllocationOfPolicy, start__leaves_nothing_to_grow) {
  const auto [limits, policy] = GetParam();
  Config config = limits == Limits::tiny ? tiny() : Config{};
  config.rendezvous_policy = static_cast<std::uint64_t>(policy);
  World world;
  EchoService echo_a;
  EchoService echo_b;
  Node a = world.add("a", config);
  Node b = world.add("b", config);
  ASSERT_TRUE(a.worker().serve(kPort, echo_a).has_value());
  ASSERT_TRUE(b.worker().serve(kPort, echo_b).has_value());
  constexpr auto kSizeOf = [](std::uint64_t n) { return std::size_t{(n * 7919) % 30'000}; };
  CallLoop to_b(a.worker(), connect(a, "b"), 600, 30, kSizeOf);
  CallLoop to_a(b.worker(), connect(b, "a"), 600, 30, kSizeOf);
  run_dry(a);
  const test::AllocationCount before;
  to_b.start();
  to_a.start();
  a.worker().reactor().run(kNever);
  const auto allocations = before.since();
  EXPECT_TRUE(to_b.complete() && to_a.complete());
  EXPECT_EQ(allocations, 0U);
}

// A coroutine whose first parameter has a frame pool: its calls cost nothing, and neither does another one of
// its kind.
Task<> call_often(Worker worker, Session session, int calls, int& succeeded) {
  for (int i = 0; i < calls; ++i) {
    auto answer = co_await session.call(worker.allocate(static_cast<std::size_t>(i) * 331).value());
    if (answer && answer->size() == static_cast<std::size_t>(i) * 331) ++succeeded;
  }
}

TEST_P(AllocationOfPolicy, coroutines__take_their_frames_from_the_pool) {
  const auto [limits, policy] = GetParam();
  Config config = limits == Limits::tiny ? tiny() : Config{};
  config.rendezvous_policy = static_cast<std::uint64_t>(policy);
  World world;
  EchoService echo;
  Node server = world.add("server", config);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Node client = world.add("client", config);
  const Session session = connect(client, "server");
  int succeeded = 0;
  const auto run = [&] {
    for (int i = 0; i < 10; ++i) client.worker().spawn(call_often(client.worker(), session, 50, succeeded));
    client.worker().reactor().run(kNever);
  };
  run();  // the pool has its frames
  EXPECT_EQ(succeeded, 500);
  const test::AllocationCount before;
  run();
  EXPECT_EQ(before.since(), 0U);
  EXPECT_EQ(succeeded, 1000);
}

INSTANTIATE_TEST_SUITE_P(Policies, AllocationOfPolicy,
                         ::testing::Combine(::testing::Values(Limits::normal, Limits::tiny),
                                            ::testing::Values(RendezvousPolicy::pull,
                                                              RendezvousPolicy::granted_write)));

}  // namespace
}  // namespace bx::testing
