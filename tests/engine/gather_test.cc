// SPDX-License-Identifier: BSD-3-Clause
// Messages in several parts arrive as one, whichever way they go and however the parts lie.
#include <bx/gather.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

// Answers with what it got, cut into `parts` parts, most of them of the application's own memory.
class GatheringService final : public Service {
 public:
  explicit GatheringService(std::size_t count) : parts(count) {}
  void handle(Request request) noexcept override {
    const Buffer payload = std::move(request.payload());
    Gather answer;
    std::size_t at = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t end = payload.size() * (i + 1) / parts;
      Buffer part = request.allocate(end - at).value();
      std::copy_n(std::as_const(payload).data() + at, end - at, part.data());  // maybe of nothing
      at = end;
      EXPECT_TRUE(answer.add(std::move(part)).has_value());
    }
    request.reply(std::move(answer));
  }
  std::size_t parts;
};

struct Way {
  const char* name;
  Config config;
};

Config limits_of(RendezvousPolicy policy, bool small) {
  Config config = small ? tiny() : Config{};
  config.rendezvous_policy = static_cast<std::uint64_t>(policy);
  return config;
}

class GatherWorld : public ::testing::Test {
 protected:
  void open(Service& service, const Config& config, const loopback::LoopbackConfig& network = {}) {
    end(client_);
    end(server_);
    world_.emplace(network);
    server_ = world_->add("server", config);
    ASSERT_TRUE(server_.worker().serve(kPort, service).has_value());
    client_ = world_->add("client", config);
    session_ = connect(client_, "server");
  }
  // Bytes as fill() makes them, in `parts` parts of uneven lengths.
  Gather parts_of(std::size_t size, std::size_t parts) {
    std::vector<std::byte> whole(size);
    fill(whole, size);
    Gather message;
    std::size_t at = 0;
    for (std::size_t i = 1; i <= parts; ++i) {
      const std::size_t end = i == parts ? size : size * i * i / (parts * parts);
      EXPECT_TRUE(message.add(client_.worker().copy_in(std::span(whole).subspan(at, end - at)).value()));
      at = end;
    }
    return message;
  }
  void run_for(Duration time) { client_.worker().reactor().run(client_.worker().now() + time); }
  void expect_echoed(Gather message, std::size_t size) {
    RecordedCall call;
    session_.start_call(std::move(message), call);
    run_dry(client_);
    ASSERT_TRUE(call.succeeded()) << size << (call.error ? call.error->detail : "");
    EXPECT_EQ(call.answer.size(), size);
    EXPECT_TRUE(is_filled(std::as_const(call.answer).bytes(), size)) << size;
  }

  std::optional<World> world_;
  Node server_;
  Node client_;
  Session session_;
};

class GatherTest : public GatherWorld, public ::testing::WithParamInterface<Way> {};

TEST_P(GatherTest, call__brings_the_parts_together_both_ways) {
  for (const std::size_t parts : {1U, 2U, 3U, 8U}) {
    GatheringService service(parts);
    open(service, GetParam().config);
    for (const std::size_t size :
         {0, 1, 8, 192, 193, 256, 257, 1000, 4096, 8192, 8193, 65'536, 70'001, 300'000}) {
      expect_echoed(parts_of(size, parts), size);
    }
    expect_at_rest(client_);
    expect_at_rest(server_);
  }
}

TEST_P(GatherTest, many_at_once__all_complete) {
  GatheringService service(5);
  open(service, GetParam().config);
  std::vector<RecordedCall> calls(40);
  for (std::size_t i = 0; i < calls.size(); ++i) session_.start_call(parts_of(i * 700, 1 + i % 8), calls[i]);
  run_dry(client_);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ASSERT_TRUE(calls[i].succeeded()) << i;
    EXPECT_EQ(calls[i].answer.size(), i * 700);
    EXPECT_TRUE(is_filled(std::as_const(calls[i].answer).bytes(), i * 700));
  }
  expect_at_rest(client_);
  expect_at_rest(server_);
}

INSTANTIATE_TEST_SUITE_P(Limits, GatherTest,
                         ::testing::Values(Way{"pull", limits_of(RendezvousPolicy::pull, false)},
                                           Way{"write", limits_of(RendezvousPolicy::granted_write, false)},
                                           Way{"tiny_pull", limits_of(RendezvousPolicy::pull, true)},
                                           Way{"tiny_write",
                                               limits_of(RendezvousPolicy::granted_write, true)}),
                         [](const auto& way) { return std::string(way.param.name); });

using GatherLimits = GatherWorld;

TEST_F(GatherLimits, eager__is_gathered_by_the_nic_and_short_ones_are_copied) {
  EchoService echo;
  open(echo, {});
  expect_echoed(parts_of(4000, 8), 4000);
  EXPECT_EQ(counter(client_, "messages.gathered"), 1);
  EXPECT_EQ(counter(client_, "messages.gather_copied"), 0);
  expect_echoed(parts_of(100, 3), 100);
  EXPECT_EQ(counter(client_, "messages.gathered"), 1);
  EXPECT_EQ(counter(client_, "messages.gather_copied"), 1);
}

// The header takes one element; a device of four gathers three parts.
TEST_F(GatherLimits, device__of_few_elements_gets_a_copy_of_more_parts) {
  EchoService echo;
  loopback::LoopbackConfig network;
  network.caps.sges_max = 4;
  open(echo, {}, network);
  expect_echoed(parts_of(4000, 3), 4000);
  EXPECT_EQ(counter(client_, "messages.gather_copied"), 0);
  expect_echoed(parts_of(4000, 4), 4000);
  EXPECT_EQ(counter(client_, "messages.gather_copied"), 1);
}

TEST_F(GatherLimits, parts_max__of_1_copies_all) {
  EchoService echo;
  Config config;
  config.gather_parts_max = 1;
  open(echo, config);
  for (const std::size_t size : {100, 4000, 100'000}) expect_echoed(parts_of(size, 2), size);
  EXPECT_EQ(counter(client_, "messages.gathered"), 0);
  EXPECT_EQ(counter(client_, "messages.gather_copied"), 3);
}

TEST_F(GatherLimits, long_ones__are_written_whatever_the_policy) {
  EchoService echo;
  open(echo, {});
  expect_echoed(parts_of(200'000, 4), 200'000);
  EXPECT_EQ(counter(client_, "messages.gather_copied"), 0);
  EXPECT_GT(counter(server_, "transfers.writes_granted"), 0);
  EXPECT_EQ(counter(server_, "transfers.reads"), 0);
}

// Parts of the application's own memory, of the arena and of a receive slot, in one message.
TEST_F(GatherLimits, parts__of_any_memory) {
  HoldingService service;
  open(service, {});
  RecordedCall first;
  session_.start_call(filled(client_.worker(), 3000, 1), first);
  run_for(1ms);
  service.answer();
  run_dry(client_);
  ASSERT_TRUE(first.succeeded());
  std::vector<std::byte> own(10'000);
  fill(own, 2);
  {
    auto memory = client_.worker().register_memory(own);
    ASSERT_TRUE(memory.has_value());
    RecordedCall call;
    session_.start_call(
        Gather(filled(client_.worker(), 500, 3), memory->buffer(1000, 4000), std::move(first.answer)), call);
    run_for(1ms);
    service.answer();
    run_dry(client_);
    ASSERT_TRUE(call.succeeded());
    const auto bytes = std::as_const(call.answer).bytes();
    ASSERT_EQ(bytes.size(), 7500U);
    EXPECT_TRUE(is_filled(bytes.first(500), 3));
    EXPECT_EQ(std::memcmp(bytes.data() + 500, own.data() + 1000, 4000), 0);
    EXPECT_TRUE(is_filled(bytes.last(3000), 1));
    EXPECT_FALSE(memory->in_use());
  }
  expect_at_rest(client_);
  expect_at_rest(server_);
}

TEST_F(GatherLimits, memory__of_parts_is_back_after_every_ending) {
  HoldingService service;
  open(service, {});
  for (const std::size_t size : {4000, 200'000}) {
    RecordedCall cancelled;
    session_.start_call(parts_of(size, 5), cancelled);
    cancelled.cancel();
    {
      RecordedCall abandoned;
      session_.start_call(parts_of(size, 5), abandoned);
    }
    run_for(1ms);
    EXPECT_TRUE(cancelled.failed_with(ErrorCode::cancelled));
    service.answer();
    run_dry(client_);
    EXPECT_EQ(counter(client_, "memory.send_buffers"), 0);
  }
  RecordedCall lost;
  session_.start_call(parts_of(200'000, 5), lost);
  client_.worker().close();
  run_dry(client_);
  EXPECT_TRUE(lost.failed_with(ErrorCode::closed));
  EXPECT_EQ(counter(client_, "memory.send_buffers"), 0);
}

TEST_F(GatherLimits, copy__without_memory_is_exhausted_at_either_end) {
  Config config;
  config.memory_arena = 32U << 20U;
  config.memory_send = 8U << 20U;
  config.gather_parts_max = 1;
  GatheringService service(2);
  open(service, config);
  constexpr std::size_t kPart = 3U << 20U;
  RecordedCall call;
  session_.start_call(
      Gather(client_.worker().allocate(kPart).value(), client_.worker().allocate(kPart).value()), call);
  run_dry(client_);
  EXPECT_TRUE(call.failed_with(ErrorCode::exhausted));
  expect_at_rest(client_);
}

TEST(GatherParts, add__beyond_the_most_is_exhausted_and_keeps_the_part) {
  World world;
  const Node node = world.add("node");
  Gather message;
  for (std::size_t i = 0; i < Gather::kPartsMax; ++i) {
    EXPECT_TRUE(message.add(Buffer{}).has_value());  // nothing takes no place
    EXPECT_TRUE(message.add(node.worker().allocate(10).value()).has_value());
  }
  Buffer more = node.worker().allocate(10).value();
  const auto refused = message.add(std::move(more));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_EQ(refused.error().sys, static_cast<int>(Gather::kPartsMax));
  EXPECT_EQ(more.size(), 10U);
  EXPECT_EQ(message.size(), 80U);
}

}  // namespace
}  // namespace bx::testing
