// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/trace_fabric.h"

#include <gtest/gtest.h>

#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/conformance/rig.h"

namespace bx::fabric {
namespace {

using conformance::Provider;
using conformance::Rig;
using conformance::RigConfig;
using conformance::send_wr;

constexpr Provider kTraced{.name = "traced", .make = [](std::uint64_t seed) -> std::unique_ptr<Fabric> {
                             return std::make_unique<TraceFabric>(std::make_unique<loopback::LoopbackFabric>(
                                 loopback::LoopbackConfig{.seed = seed}));
                           }};

const TraceLog& log_of(Rig& rig) {
  return static_cast<TraceFabric&>(*rig.fabric).log();
}

std::size_t count(const TraceLog& log, TraceKind kind) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < log.size(); ++i) found += log[i].kind == kind ? 1 : 0;
  return found;
}

const TraceRecord* last(const TraceLog& log, TraceKind kind) {
  for (std::size_t i = log.size(); i > 0; --i) {
    if (log[i - 1].kind == kind) return &log[i - 1];
  }
  return nullptr;
}

TEST(TraceFabric, creations__and_connects_are_recorded) {
  Rig rig(kTraced);
  const TraceLog& log = log_of(rig);
  EXPECT_EQ(count(log, TraceKind::create_mr), 2U);
  EXPECT_EQ(count(log, TraceKind::create_cq), 4U);
  EXPECT_EQ(count(log, TraceKind::create_srq), 2U);
  EXPECT_EQ(count(log, TraceKind::create_qp), 2U);
  ASSERT_EQ(count(log, TraceKind::connect), 2U);
  EXPECT_EQ(last(log, TraceKind::connect)->host, 1U);
  EXPECT_EQ(last(log, TraceKind::connect)->wr_id, static_cast<std::uint64_t>(rig.alpha->qp->address().qp));
}

TEST(TraceFabric, refusals__are_recorded_with_their_code) {
  Rig rig(kTraced);
  Device& device = rig.alpha->host->device();
  EXPECT_FALSE(device.create_cq({.depth = 0}).has_value());
  EXPECT_FALSE(device.create_srq({.depth = 0}).has_value());
  EXPECT_FALSE(device.create_qp({}).has_value());
  EXPECT_FALSE(device.register_memory({}, Access::local).has_value());
  EXPECT_FALSE(rig.alpha->qp->connect({}, {}).has_value());
  EXPECT_EQ(count(log_of(rig), TraceKind::refused), 5U);
  EXPECT_EQ(last(log_of(rig), TraceKind::refused)->code,
            static_cast<std::uint8_t>(ErrorCode::invalid_argument));
}

TEST(TraceFabric, data_path__is_recorded_call_by_call) {
  Rig rig(kTraced);
  rig.beta->post_recv(70, 1, 0, 500);
  const Sge element = rig.alpha->sge(0, 300);
  EXPECT_EQ(rig.beta->recv_cq->arm(), ArmResult::armed);
  rig.alpha->post(send_wr(5, {&element, 1}));
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 1).size(), 1U);
  const TraceLog& log = log_of(rig);
  const TraceRecord* receive = last(log, TraceKind::post_recv);
  ASSERT_NE(receive, nullptr);
  EXPECT_EQ(receive->wr_id, 70U);
  EXPECT_EQ(receive->length, 500U);
  EXPECT_EQ(receive->host, 1U);
  const TraceRecord* send = last(log, TraceKind::post_send);
  ASSERT_NE(send, nullptr);
  EXPECT_EQ(send->wr_id, 5U);
  EXPECT_EQ(send->length, 300U);
  EXPECT_EQ(send->code, static_cast<std::uint8_t>(Opcode::send));
  EXPECT_EQ(count(log, TraceKind::arm), 1U);
  EXPECT_EQ(count(log, TraceKind::wake), 1U);
  const TraceRecord* completion = last(log, TraceKind::completion);
  ASSERT_NE(completion, nullptr);
  EXPECT_EQ(completion->wr_id, 70U);
  EXPECT_EQ(completion->length, 300U);
  EXPECT_EQ(completion->code, static_cast<std::uint8_t>(WcStatus::success));
  EXPECT_EQ(completion->time, rig.now());
}

TEST(TraceFabric, short_posts_failures_and_destructions__are_recorded) {
  Rig rig(kTraced);
  const std::vector<SendWr> many(20, send_wr(1, {}));
  ASSERT_EQ(rig.alpha->post(many), 16U);
  ASSERT_NE(last(log_of(rig), TraceKind::post_short), nullptr);
  EXPECT_EQ(last(log_of(rig), TraceKind::post_short)->length, 16U);
  rig.alpha->fail();
  EXPECT_EQ(count(log_of(rig), TraceKind::fail), 1U);
  const auto number = static_cast<std::uint32_t>(rig.alpha->qp->address().qp);
  rig.alpha->qp.reset();
  ASSERT_NE(last(log_of(rig), TraceKind::destroy_qp), nullptr);
  EXPECT_EQ(last(log_of(rig), TraceKind::destroy_qp)->object, number);
}

TEST(TraceFabric, device_events__are_recorded) {
  RigConfig config;
  config.recv_cq_depth = 1;
  Rig rig(kTraced, config);
  rig.beta->post_recv(0, 4);
  for (std::uint64_t id = 0; id < 3; ++id) rig.alpha->post(send_wr(id, {}));
  ASSERT_TRUE(rig.run_until([&] { return rig.beta->event_waker.wakes > 0; }));
  std::array<DeviceEvent, 4> events;
  ASSERT_GE(rig.beta->host->device().poll_events(events), 1U);
  EXPECT_GE(count(log_of(rig), TraceKind::device_event), 1U);
}

std::uint64_t digest_of_a_run(std::uint64_t seed) {
  RigConfig config;
  config.seed = seed;
  Rig rig(kTraced, config);
  rig.beta->post_recv(0, 16, 0, 64);
  const Sge element = rig.alpha->sge(0, 64);
  for (std::uint64_t id = 0; id < 16; ++id) rig.alpha->post(send_wr(id, {&element, 1}));
  EXPECT_EQ(rig.wait_sends(*rig.alpha, 16).size(), 16U);
  return log_of(rig).digest();
}

TEST(TraceFabric, digest__is_the_same_for_the_same_seed) {
  EXPECT_EQ(digest_of_a_run(1), digest_of_a_run(1));
  EXPECT_NE(digest_of_a_run(1), digest_of_a_run(2));  // other keys, at the least
}

}  // namespace
}  // namespace bx::fabric
