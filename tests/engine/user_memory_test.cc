// SPDX-License-Identifier: BSD-3-Clause
// Memory of the application's own in calls, copies, leases and the pressure they make, over whole workers.
#include <array>

#include "libbx/engine/worker.h"
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLength = 300'000;

class UserMemoryTest : public ::testing::TestWithParam<RendezvousPolicy> {
 protected:
  void open(Service& service, Config config = {}) {
    config.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
    server_ = world_.add("server", config);
    ASSERT_TRUE(server_.worker().serve(kPort, service).has_value());
    client_ = world_.add("client", config);
    session_ = connect(client_, "server");
    fill(memory_, 5);
  }
  void run_for(Duration time) { client_.worker().reactor().run(client_.worker().now() + time); }

  World world_;
  EchoService echo_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kLength);
  Node server_;
  Node client_;
  Session session_;
};

TEST_P(UserMemoryTest, register_memory__is_sent_from_where_it_lies) {
  open(echo_);
  UserMemory user = client_.worker().register_memory(memory_).value();
  for (const std::size_t size : {std::size_t{100}, std::size_t{4000}, kLength - 7}) {
    RecordedCall call;
    session_.start_call(user.buffer(7, size), call);
    EXPECT_EQ(user.in_use(), size > 220);  // a shorter one is copied into the request
    run_dry(client_);
    ASSERT_TRUE(call.succeeded()) << size;
    EXPECT_TRUE(std::ranges::equal(call.answer.bytes(), std::span(memory_).subspan(7, size)));
    EXPECT_FALSE(user.in_use());
  }
  EXPECT_EQ(counter(client_, "memory.send_in_use"), 0);
  EXPECT_EQ(counter(client_, "memory.user_regions"), 1);
  user.reset();
  EXPECT_EQ(counter(client_, "memory.user_in_use"), 0);
  expect_at_rest(client_);
}

Task<> wait_until_idle(UserMemory& memory, bool& idle) {
  co_await memory.idle();
  idle = true;
}

// The call is given up, but the peer still READs, or is WRITTEN to: the memory is not idle before that ends.
TEST_P(UserMemoryTest, idle__waits_for_what_the_network_still_does) {
  open(echo_);
  UserMemory user = client_.worker().register_memory(memory_).value();
  {
    RecordedCall call;
    session_.start_call(user.buffer(), call, {.deadline = client_.worker().now() + 15us});
    run_for(14us);
    EXPECT_FALSE(call.done());
    run_for(2us);
    EXPECT_TRUE(call.failed_with(ErrorCode::deadline_exceeded));
  }
  bool idle = false;
  client_.worker().spawn(wait_until_idle(user, idle));
  run_for(1us);
  EXPECT_TRUE(user.in_use());
  EXPECT_FALSE(idle);
  run_dry(client_);
  EXPECT_TRUE(idle);
  EXPECT_FALSE(user.in_use());
}

// Its handle gone, a registration lasts until the network is done with it; then nothing is left of it.
TEST_P(UserMemoryTest, reset__does_not_end_what_is_being_sent) {
  open(echo_);
  RecordedCall call;
  {
    UserMemory user = client_.worker().register_memory(memory_).value();
    session_.start_call(user.buffer(), call);
  }
  EXPECT_EQ(counter(client_, "memory.user_regions"), 1);
  run_dry(client_);
  ASSERT_TRUE(call.succeeded());
  EXPECT_TRUE(is_filled(call.answer.bytes(), 5));
  EXPECT_EQ(counter(client_, "memory.user_regions"), 0);
}

TEST_P(UserMemoryTest, register_memory__over_its_quota_is_refused_and_counted) {
  Config config;
  config.memory_user = 1U << 20U;
  config.memory_user_regions = 1;
  open(echo_, config);
  std::vector<std::byte> large(2U << 20U);
  EXPECT_EQ(client_.worker().register_memory(large).error().code, ErrorCode::too_large);
  UserMemory user = client_.worker().register_memory(memory_).value();
  EXPECT_EQ(client_.worker().register_memory(std::span(large).first(10)).error().code, ErrorCode::exhausted);
  EXPECT_EQ(counter(client_, "memory.user_failures"), 2);
}

TEST_P(UserMemoryTest, copy_in__takes_any_memory_and_is_counted) {
  open(echo_);
  const std::array<std::byte, 100> stack{std::byte{1}, std::byte{2}};
  RecordedCall call;
  session_.start_call(client_.worker().copy_in(stack).value(), call);
  run_dry(client_);
  ASSERT_TRUE(call.succeeded());
  EXPECT_TRUE(std::ranges::equal(call.answer.bytes(), stack));
  EXPECT_EQ(counter(client_, "memory.copied_in"), 1);
  EXPECT_TRUE(client_.worker().copy_in({})->empty());
  EXPECT_EQ(counter(client_, "memory.copied_in"), 1);
}

class Recorder final : public PressureListener {
 public:
  void on_memory_pressure(MemoryPressure pressure) noexcept override { told.push_back(pressure); }
  std::vector<MemoryPressure> told;
};

TEST_P(UserMemoryTest, pressure__is_told_when_slots_run_short_and_when_they_are_back) {
  HoldingService holding;
  Config config;
  config.receive_spare = 8;
  open(holding, config);
  Recorder recorder;
  server_.worker().set_pressure_listener(&recorder);
  std::vector<std::unique_ptr<RecordedCall>> calls;
  const auto start_calls = [&](int count) {
    for (int i = 0; i < count; ++i) {
      calls.push_back(std::make_unique<RecordedCall>());
      session_.start_call(filled(client_.worker(), 2000, 1), *calls.back());
    }
    run_for(1ms);
  };
  start_calls(6);  // three quarters of the spare slots
  EXPECT_TRUE(recorder.told.empty());
  EXPECT_EQ(server_.worker().gauges().leases, 6U);
  EXPECT_EQ(counter(server_, "memory.copied_out"), 0);
  start_calls(4);
  EXPECT_EQ(counter(server_, "memory.copied_out"), 4);
  EXPECT_EQ(counter(server_, "memory.leases"), 6);
  EXPECT_GT(counter(server_, "memory.leases_bytes"), 6 * 8192);
  EXPECT_EQ(counter(server_, "memory.receive_buffers"), 4);
  EXPECT_EQ(recorder.told, std::vector{MemoryPressure::high});
  holding.answer();
  run_dry(client_);
  EXPECT_EQ(recorder.told, (std::vector{MemoryPressure::high, MemoryPressure::none}));
  EXPECT_EQ(counter(server_, "memory.leases"), 0);
  EXPECT_EQ(counter(server_, "memory.leases_peak"), 6);
  server_.worker().set_pressure_listener(nullptr);
}

TEST_P(UserMemoryTest, pressure__is_told_while_a_payload_waits_for_memory) {
  open(echo_);
  Config config;
  config.memory_arena = 32U << 20U;
  config.memory_send = 24U << 20U;
  Node small = world_.add("small", config);
  ASSERT_TRUE(small.worker().serve(kPort, echo_).has_value());
  Session session = connect(client_, "small");
  Recorder recorder;
  small.worker().set_pressure_listener(&recorder);
  std::vector<Buffer> taken;
  for (auto buffer = small.worker().allocate(4U << 20U); buffer;
       buffer = small.worker().allocate(4U << 20U)) {
    taken.push_back(std::move(*buffer));
  }
  RecordedCall call;
  session.start_call(filled(client_.worker(), 3U << 20U, 2), call);
  run_for(1ms);
  EXPECT_EQ(recorder.told, std::vector{MemoryPressure::high});
  EXPECT_EQ(small.worker().gauges().memory_pressure, MemoryPressure::high);
  taken.clear();
  run_dry(client_);
  EXPECT_TRUE(call.succeeded());
  EXPECT_EQ(recorder.told, (std::vector{MemoryPressure::high, MemoryPressure::none}));
  EXPECT_EQ(counter(small, "memory.pressure"), 1);
  small.worker().set_pressure_listener(nullptr);
}

TEST_P(UserMemoryTest, lend_percent__of_0_copies_every_payload) {
  Config config;
  config.lend_percent = 0;
  open(echo_, config);
  CallLoop loop(client_.worker(), session_, 50, 4, [](std::uint64_t) { return std::size_t{2000}; });
  loop.start();
  run_dry(client_);
  EXPECT_TRUE(loop.complete());
  EXPECT_EQ(counter(server_, "memory.copied_out"), 50);
  EXPECT_EQ(counter(server_, "memory.leases_peak"), 0);
}

INSTANTIATE_TEST_SUITE_P(Policies, UserMemoryTest,
                         ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write),
                         [](const auto& param) {
                           return param.param == RendezvousPolicy::pull ? "pull" : "write";
                         });

// The device of a real NIC locks pages; this one says that it does.
TEST(Preflight, create__fails_with_what_to_set_and_preflight_has_the_numbers) {
  struct Limited final : memory::SystemMemory {
    std::byte* map(std::size_t bytes, memory::MapKind kind) noexcept override {
      return real.map(bytes, kind);
    }
    void unmap(std::span<std::byte> bytes) noexcept override { real.unmap(bytes); }
    bool advise(std::span<std::byte> bytes, memory::Advice advice) noexcept override {
      return real.advise(bytes, advice);
    }
    [[nodiscard]] std::size_t page_bytes() const noexcept override { return real.page_bytes(); }
    [[nodiscard]] std::uint64_t lockable_bytes() const noexcept override { return lockable; }
    memory::LinuxMemory real;
    std::uint64_t lockable = 8U << 20U;
  } system;
  loopback::LoopbackConfig fabric;
  fabric.caps.pins_memory = true;
  World world(fabric);
  auto host = world.fabric.open_host("host").value();
  const auto worker = engine::Worker::create(*host, {}, &system);
  ASSERT_FALSE(worker.has_value());
  EXPECT_EQ(worker.error().code, ErrorCode::exhausted);
  EXPECT_EQ(worker.error().sys, 8);
  EXPECT_NE(std::string_view(worker.error().detail).find("ulimit -l"), std::string_view::npos);
  const Findings findings = engine::Worker::preflight(*host, {}, &system);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().severity, Finding::Severity::error);
  EXPECT_NE(findings.front().text.find("256 MiB"), std::string::npos) << findings.front().text;
  EXPECT_NE(findings.front().text.find("is 8 MiB"), std::string::npos) << findings.front().text;
  system.lockable = 300U << 20U;
  auto started = engine::Worker::create(*host, {}, &system);
  ASSERT_TRUE(started.has_value());
  EXPECT_EQ((*started)->findings().front().severity, Finding::Severity::warning);
}

}  // namespace
}  // namespace bx::testing
