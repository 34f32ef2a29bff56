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

}  // namespace
}  // namespace bx::testing
