// SPDX-License-Identifier: BSD-3-Clause
// Contract point 8: destruction order QP, CQ and SRQ, MR, Device; breaking it is a checked programming error.
// CQ overrun is an error event, never silent.
#include <algorithm>

#include "tests/conformance/rig.h"

namespace bx::conformance {
namespace {

using fabric::DeviceEvent;
using fabric::DeviceEventKind;

class Point8Lifetime : public ContractTest {
 protected:
  static std::vector<DeviceEvent> events(Endpoint& at) {
    std::array<DeviceEvent, 16> out;
    const std::size_t count = at.host->device().poll_events(out);
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  static std::size_t overruns(const std::vector<DeviceEvent>& all) {
    return static_cast<std::size_t>(std::ranges::count(all, DeviceEventKind::cq_overrun, &DeviceEvent::kind));
  }
};
BX_CONFORMANCE_GROUP(Point8Lifetime);

TEST_P(Point8Lifetime, destruction__in_order_with_work_outstanding_is_clean) {
  Rig rig(GetParam());
  const Sge bulk = rig.alpha->sge(0, 200'000);
  rig.alpha->post(remote_wr(Opcode::rdma_write, 1, {&bulk, 1}, rig.beta->remote(0)));
  rig.alpha->post(remote_wr(Opcode::rdma_read, 2, {&bulk, 1}, rig.beta->remote(0)));
  rig.alpha->post(send_wr(3, {}));
  rig.run_for(5us);
  rig.alpha->qp.reset();
  rig.alpha->send_cq.reset();
  rig.alpha->recv_cq.reset();
  rig.alpha->srq.reset();
  rig.alpha->mr.reset();
  rig.alpha->memory.clear();
  rig.alpha->memory.shrink_to_fit();  // late DMA would be caught by AddressSanitizer
  rig.beta->host->reactor().run(rig.beta->host->reactor().now() + 50ms);
  EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
}

TEST_P(Point8Lifetime, destruction__of_a_queue_pair_ends_its_completions) {
  Rig rig(GetParam());
  for (std::uint64_t id = 0; id < 4; ++id) rig.alpha->post(send_wr(id, {}));  // RNR for ever
  rig.run_for(50us);
  rig.alpha->qp.reset();
  rig.beta->post_recv(1, 4);
  rig.settle();
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
}

TEST_P(Point8Lifetime, destruction__of_a_region_ends_remote_access_at_once) {
  Rig rig(GetParam());
  auto second = std::vector<std::byte>(4096);
  auto mr = rig.beta->host->device().register_memory(second, Access::remote_all);
  ASSERT_TRUE(mr.has_value());
  const fabric::RemoteSpan there{reinterpret_cast<std::uint64_t>(second.data()), (*mr)->rkey()};
  const Sge element = rig.alpha->sge(0, 4096);
  rig.alpha->post(remote_wr(Opcode::rdma_write, 1, {&element, 1}, there));
  ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
  mr->reset();
  rig.alpha->post(remote_wr(Opcode::rdma_write, 2, {&element, 1}, there));
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::remote_access});
}

TEST_P(Point8Lifetime, objects__can_be_made_and_destroyed_many_times) {
  Rig rig(GetParam());
  fabric::QpNum last{};
  for (int round = 0; round < 500; ++round) {
    const auto mine = rig.alpha->make_qp();
    const auto peer = rig.beta->make_qp();
    EXPECT_NE(mine->address().qp, last);  // a late packet must not meet a new queue pair
    last = mine->address().qp;
    Rig::connect(*rig.alpha, *mine, *rig.beta, *peer);
    rig.beta->post_recv(1);
    const SendWr request = send_wr(1, {});
    ASSERT_EQ(mine->post_send({&request, 1}), 1U);
    ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
    ASSERT_EQ(rig.wait_recvs(*rig.beta, 1).size(), 1U);
  }
}

TEST_P(Point8Lifetime, overrun__of_a_receive_queue_is_an_event_and_fails_its_queue_pairs) {
  RigConfig config;
  config.recv_cq_depth = 2;
  Rig rig(GetParam(), config);
  rig.beta->post_recv(0, 8);
  for (std::uint64_t id = 0; id < 5; ++id) rig.alpha->post(send_wr(id, {}));
  ASSERT_TRUE(rig.run_until([&] { return rig.beta->event_waker.wakes > 0; }));
  EXPECT_EQ(overruns(events(*rig.beta)), 1U);
  EXPECT_EQ(rig.beta->event_waker.wakes_inside_call, 0);
  EXPECT_TRUE(rig.failed(*rig.beta));
  rig.settle();
  EXPECT_EQ(overruns(events(*rig.beta)), 0U);  // once
}

TEST_P(Point8Lifetime, overrun__of_a_send_queue_is_an_event) {
  RigConfig config;
  config.send_cq_depth = 3;
  Rig rig(GetParam(), config);
  rig.beta->post_recv(0, 8);
  for (std::uint64_t id = 0; id < 4; ++id) rig.alpha->post(send_wr(id, {}));
  ASSERT_TRUE(rig.run_until([&] { return rig.alpha->event_waker.wakes > 0; }));
  EXPECT_EQ(overruns(events(*rig.alpha)), 1U);
  EXPECT_EQ(rig.alpha->event_waker.wakes_inside_call, 0);
}

TEST_P(Point8Lifetime, overrun__by_flushed_requests_is_an_event_too) {
  RigConfig config;
  config.send_cq_depth = 3;
  Rig rig(GetParam(), config);
  for (std::uint64_t id = 0; id < 6; ++id) rig.alpha->post(send_wr(id, {}));
  rig.alpha->fail();
  ASSERT_TRUE(rig.run_until([&] { return rig.alpha->event_waker.wakes > 0; }));
  EXPECT_EQ(overruns(events(*rig.alpha)), 1U);
}

TEST_P(Point8Lifetime, overrun__does_not_happen_to_a_queue_that_is_just_full) {
  RigConfig config;
  config.send_cq_depth = 4;
  config.recv_cq_depth = 4;
  Rig rig(GetParam(), config);
  rig.beta->post_recv(0, 64);
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t id = 0; id < 4; ++id) rig.alpha->post(send_wr(id, {}));
    rig.run_for(2ms);
    EXPECT_EQ(ids(rig.alpha->poll(*rig.alpha->send_cq)), numbers(0, 4));
    EXPECT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 4U);
  }
  EXPECT_TRUE(events(*rig.alpha).empty());
  EXPECT_TRUE(events(*rig.beta).empty());
}

TEST_P(Point8Lifetime, overrun__is_announced_even_without_an_event_waker) {
  RigConfig config;
  config.recv_cq_depth = 1;
  Rig rig(GetParam(), config);
  rig.beta->host->device().set_event_waker(nullptr);
  rig.beta->post_recv(0, 8);
  for (std::uint64_t id = 0; id < 3; ++id) rig.alpha->post(send_wr(id, {}));
  rig.run_for(5ms);
  EXPECT_EQ(overruns(events(*rig.beta)), 1U);
}

TEST_P(Point8Lifetime, create__refuses_what_is_zero_or_above_the_caps) {
  Rig rig(GetParam());
  fabric::Device& device = rig.alpha->host->device();
  const fabric::DeviceCaps& caps = device.caps();
  const auto invalid = [](const auto& result) {
    return !result.has_value() && result.error().code == ErrorCode::invalid_argument;
  };
  EXPECT_TRUE(invalid(device.register_memory({}, Access::local)));
  EXPECT_TRUE(invalid(device.create_cq({.depth = 0})));
  EXPECT_TRUE(invalid(device.create_cq({.depth = caps.cq_depth_max + 1})));
  EXPECT_TRUE(invalid(device.create_srq({.depth = 0})));
  EXPECT_TRUE(invalid(device.create_srq({.depth = caps.srq_depth_max + 1})));
  EXPECT_TRUE(invalid(device.create_srq({.depth = 1, .sges_max = caps.recv_sges_max + 1})));
  const fabric::QpConfig good{.send_cq = rig.alpha->send_cq.get(),
                              .recv_cq = rig.alpha->recv_cq.get(),
                              .srq = rig.alpha->srq.get(),
                              .send_depth = 1};
  for (const auto& spoil : std::vector<std::function<void(fabric::QpConfig&)>>{
           [](fabric::QpConfig& config) { config.send_depth = 0; },
           [&](fabric::QpConfig& config) { config.send_depth = caps.send_depth_max + 1; },
           [&](fabric::QpConfig& config) { config.sges_max = caps.sges_max + 1; },
           [&](fabric::QpConfig& config) { config.inline_max = caps.inline_max + 1; }}) {
    fabric::QpConfig bad = good;
    spoil(bad);
    EXPECT_TRUE(invalid(device.create_qp(bad)));
  }
  EXPECT_TRUE(device.create_qp(good).has_value());
}

TEST_P(Point8Lifetime, connect__refuses_attributes_out_of_range_and_a_second_time) {
  Rig rig(GetParam());
  const auto qp = rig.alpha->make_qp();
  const auto peer = rig.beta->qp->address();
  const auto refused = [&](const std::function<void(PathConfig&)>& spoil) {
    PathConfig path = rig.alpha->config.path;
    spoil(path);
    const auto result = qp->connect(peer, path);
    return !result.has_value() && result.error().code == ErrorCode::invalid_argument;
  };
  EXPECT_TRUE(refused([](PathConfig& path) { path.mtu_bytes = 1000; }));
  EXPECT_TRUE(refused([](PathConfig& path) { path.mtu_bytes = 128; }));
  EXPECT_TRUE(refused([](PathConfig& path) { path.mtu_bytes = 8192; }));
  EXPECT_TRUE(refused([](PathConfig& path) { path.ack_timeout = 32; }));
  EXPECT_TRUE(refused([](PathConfig& path) { path.retry_cnt = 8; }));
  EXPECT_TRUE(refused([](PathConfig& path) { path.rnr_retry = 8; }));
  EXPECT_TRUE(refused([](PathConfig& path) { path.min_rnr_timer = 32; }));
  EXPECT_TRUE(refused([](PathConfig& path) { path.rd_atomic_max = 255; }));
  EXPECT_FALSE(refused([](PathConfig&) {}));  // a refusal changed nothing
  EXPECT_TRUE(refused([](PathConfig&) {}));   // connected already
}

TEST_P(Point8Lifetime, host__can_be_opened_once_at_a_time) {
  Rig rig(GetParam());
  const auto again = rig.fabric->open_host(GetParam().hosts[0]);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::exhausted);
  const auto unknown = rig.fabric->open_host("nowhere");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::unreachable);
  EXPECT_EQ(rig.alpha->host->name(), GetParam().hosts[0]);
}

using Point8LifetimeDeathTest = Point8Lifetime;
BX_CONFORMANCE_GROUP(Point8LifetimeDeathTest);

TEST_P(Point8LifetimeDeathTest, destruction__of_a_completion_queue_before_its_queue_pairs) {
  Rig rig(GetParam());
  EXPECT_DEATH(rig.alpha->send_cq.reset(), "check failed");
  EXPECT_DEATH(rig.alpha->recv_cq.reset(), "check failed");
}

TEST_P(Point8LifetimeDeathTest, destruction__of_a_shared_receive_queue_before_its_queue_pairs) {
  Rig rig(GetParam());
  EXPECT_DEATH(rig.alpha->srq.reset(), "check failed");
}

TEST_P(Point8LifetimeDeathTest, destruction__of_a_host_before_its_regions) {
  Rig rig(GetParam());
  rig.alpha->qp.reset();
  rig.alpha->send_cq.reset();
  rig.alpha->recv_cq.reset();
  rig.alpha->srq.reset();
  EXPECT_DEATH(rig.alpha->host.reset(), "check failed");
}

TEST_P(Point8LifetimeDeathTest, destruction__of_a_host_before_its_queues) {
  Rig rig(GetParam());
  rig.alpha->qp.reset();
  rig.alpha->mr.reset();
  EXPECT_DEATH(rig.alpha->host.reset(), "check failed");
}

TEST_P(Point8LifetimeDeathTest, destruction__of_a_fabric_before_its_hosts) {
  Rig rig(GetParam());
  EXPECT_DEATH(rig.fabric.reset(), "check failed");
}

}  // namespace
}  // namespace bx::conformance
