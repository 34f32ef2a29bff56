// SPDX-License-Identifier: BSD-3-Clause
// What the conformance suite does not ask of every provider: port and device faults.
#include "libbx/providers/loopback/loopback_device.h"

#include <gtest/gtest.h>

#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/conformance/rig.h"

namespace bx::loopback {
namespace {

using namespace std::chrono_literals;
using conformance::ids;
using conformance::numbers;
using conformance::Rig;
using conformance::RigConfig;
using conformance::send_wr;
using conformance::statuses;
using fabric::DeviceEvent;
using fabric::DeviceEventKind;
using fabric::WcStatus;

class LoopbackDeviceTest : public testing::Test {
 protected:
  LoopbackDeviceTest() : LoopbackDeviceTest(std::make_unique<LoopbackFabric>()) {}
  explicit LoopbackDeviceTest(std::unique_ptr<LoopbackFabric> made)
      : loopback(*made), rig(std::move(made), {"alpha", "beta"}, {}) {}
  std::vector<DeviceEventKind> events(conformance::Endpoint& at) {
    std::vector<DeviceEventKind> kinds;
    DeviceEvent event;
    while (at.host->device().poll_events({&event, 1}) == 1) kinds.push_back(event.kind);
    return kinds;
  }
  LoopbackFabric& loopback;
  Rig rig;
};

TEST_F(LoopbackDeviceTest, set_port__down_and_up_raises_events_once_each_and_not_inside_the_call) {
  loopback.set_port("alpha", PortState::down);
  loopback.set_port("alpha", PortState::down);
  EXPECT_EQ(rig.alpha->event_waker.wakes, 0);
  rig.run_for(1us);
  EXPECT_EQ(rig.alpha->event_waker.wakes, 1);
  loopback.set_port("alpha", PortState::up);
  rig.run_for(1us);
  EXPECT_EQ(rig.alpha->event_waker.wakes, 2);
  EXPECT_EQ(events(*rig.alpha), (std::vector{DeviceEventKind::port_error, DeviceEventKind::port_active}));
}

TEST_F(LoopbackDeviceTest, set_port__down_at_either_end_silences_the_path_until_retries_end) {
  for (const char* end : {"alpha", "beta"}) {
    const auto mine = rig.alpha->make_qp();
    const auto peer = rig.beta->make_qp();
    Rig::connect(*rig.alpha, *mine, *rig.beta, *peer);
    loopback.set_port(end, PortState::down);
    rig.beta->post_recv(1);
    const fabric::SendWr request = send_wr(1, {});
    mine->post_send({&request, 1});
    EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::retry_exceeded});
    loopback.set_port(end, PortState::up);
  }
}

TEST_F(LoopbackDeviceTest, set_port__flap_is_ridden_out_by_retries) {
  loopback.set_port("beta", PortState::down);
  rig.beta->post_recv(1, 2);
  rig.alpha->post(send_wr(1, {}));
  rig.alpha->post(send_wr(2, {}));
  rig.run_for(1500us);
  loopback.set_port("beta", PortState::up);
  const auto done = rig.wait_sends(*rig.alpha, 2);
  EXPECT_EQ(ids(done), numbers(1, 2));
  EXPECT_EQ(statuses(done), std::vector(2, WcStatus::success));
}

TEST_F(LoopbackDeviceTest, fail_device__flushes_all_and_refuses_everything) {
  rig.alpha->post(send_wr(1, {}));
  loopback.fail_device("alpha");
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::flushed});
  EXPECT_EQ(events(*rig.alpha), std::vector{DeviceEventKind::device_fatal});
  fabric::Device& device = rig.alpha->host->device();
  EXPECT_EQ(device.create_cq({.depth = 1}).error().code, ErrorCode::device);
  EXPECT_EQ(device.create_srq({.depth = 1}).error().code, ErrorCode::device);
  EXPECT_EQ(device.create_qp({}).error().code, ErrorCode::device);
  EXPECT_EQ(device.register_memory(rig.alpha->memory, fabric::Access::local).error().code, ErrorCode::device);
  rig.beta->post(send_wr(2, {}));
  EXPECT_EQ(statuses(rig.wait_sends(*rig.beta, 1)), std::vector{WcStatus::retry_exceeded});
}

TEST_F(LoopbackDeviceTest, poll_events__gives_the_oldest_first_and_bounds_what_it_keeps) {
  for (std::size_t i = 0; i < LoopbackDevice::kEventsMax; ++i) {
    loopback.set_port("alpha", i % 2 == 0 ? PortState::down : PortState::up);
  }
  loopback.set_port("alpha", PortState::down);  // one too many
  const auto all = events(*rig.alpha);
  ASSERT_EQ(all.size(), LoopbackDevice::kEventsMax);
  EXPECT_EQ(all.front(), DeviceEventKind::port_error);
  EXPECT_EQ(all[1], DeviceEventKind::port_active);
  EXPECT_EQ(all.back(), DeviceEventKind::device_fatal);  // the user has lost track
}

TEST_F(LoopbackDeviceTest, create_qp__needs_its_queues) {
  fabric::Device& device = rig.alpha->host->device();
  const fabric::QpConfig good{.send_cq = rig.alpha->send_cq.get(),
                              .recv_cq = rig.alpha->recv_cq.get(),
                              .srq = rig.alpha->srq.get(),
                              .send_depth = 1};
  for (int missing = 0; missing < 3; ++missing) {
    fabric::QpConfig bad = good;
    if (missing == 0) bad.send_cq = nullptr;
    if (missing == 1) bad.recv_cq = nullptr;
    if (missing == 2) bad.srq = nullptr;
    EXPECT_EQ(device.create_qp(bad).error().code, ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace bx::loopback
