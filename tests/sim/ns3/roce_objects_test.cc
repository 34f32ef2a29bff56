// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_objects.h"

#include <gtest/gtest.h>

#include "tests/sim/ns3/ip_world.h"

namespace bx::sim {
namespace {

using testing::kForever;
using testing::kLossless;

std::uint64_t read(const ns3::Object& object, const char* attribute) {
  ns3::UintegerValue value;
  object.GetAttribute(attribute, value);
  return value.Get();
}

// Three NICs into one, with little buffer: pauses and marks.
TEST(RoceObjects, traces_and_attributes__agree_with_the_counters) {
  IpWorldConfig config{.hosts = 4};
  config.star.fabric.buffer.total_bytes = 1U << 20U;
  config.star.fabric.ecn[kLossless] = {.kmin_bytes = 50'000, .kmax_bytes = 100'000, .pmax = 1};
  IpWorld world(config);
  const auto fabric = ns3::CreateObject<RoceSwitch>();
  const auto nic = ns3::CreateObject<RoceNic>();
  fabric->attach(world.topology.switch_at(0));
  nic->attach(world.sides[1].nic);
  std::uint64_t marks = 0;
  std::uint64_t xoffs = 0;
  std::uint64_t pauses = 0;
  fabric->TraceConnectWithoutContext("Mark", ns3::Callback<void, std::uint16_t, std::uint8_t>(
                                                 [&](std::uint16_t port, std::uint8_t priority) {
                                                   EXPECT_EQ(port, 0);
                                                   EXPECT_EQ(priority, kLossless);
                                                   ++marks;
                                                 }));
  fabric->TraceConnectWithoutContext(
      "Xoff", ns3::Callback<void, std::uint16_t, std::uint8_t>([&](auto, auto) { ++xoffs; }));
  nic->TraceConnectWithoutContext("Pause", ns3::Callback<void, std::uint8_t>([&](std::uint8_t priorities) {
                                    EXPECT_EQ(priorities, 1U << kLossless);
                                    ++pauses;
                                  }));
  for (std::uint16_t from = 1; from < 4; ++from) {
    world.write(*world.connect(from, 0).first, from, 0, 1U << 20U, 2);
  }
  world.engine.run(kForever);
  EXPECT_GT(marks, 0U);
  EXPECT_EQ(marks, world.topology.totals().ecn_marks);
  std::uint64_t decided = 0;
  for (std::uint16_t port = 0; port < 4; ++port) {
    decided += world.topology.switch_at(0).ingress(port, kLossless).xoffs;
  }
  EXPECT_GT(xoffs, 0U);
  EXPECT_EQ(xoffs, decided);
  EXPECT_GT(pauses, 0U);
  EXPECT_EQ(read(*nic, "PacketsTx"), world.sides[1].nic.counters().packets_tx);
  EXPECT_EQ(read(*fabric, "PauseFrames"), world.topology.totals().pause_frames);
  EXPECT_EQ(read(*fabric, "BufferBytes"), 0U);
  ns3::TimeValue paused;
  nic->GetAttribute("PausedTime", paused);
  EXPECT_EQ(paused.Get().GetPicoSeconds(), world.sides[1].nic.port().paused_time().count());
  EXPECT_GT(paused.Get().GetPicoSeconds(), 0);
  nic->Dispose();
  fabric->Dispose();
}

TEST(RoceObjects, discard__a_frame_for_no_queue_pair_is_traced) {
  IpWorld world;
  const auto nic = ns3::CreateObject<RoceNic>();
  nic->attach(world.sides[1].nic);
  std::vector<std::uint32_t> discarded;
  nic->TraceConnectWithoutContext("Discard",
                                  ns3::Callback<void, std::uint16_t, std::uint32_t>(
                                      [&](std::uint16_t, std::uint32_t qp) { discarded.push_back(qp); }));
  RcQueuePair& qp = world.sides[0].make_qp();
  World::bring_up(qp, {.peer_host = 1, .peer_qp = 4711, .ack_timeout = 0, .traffic_class = kLossless << 5U});
  world.write(qp, 0, 1, 64, 1);
  world.engine.run(kForever);
  EXPECT_EQ(discarded, std::vector<std::uint32_t>{4711});
  nic->Dispose();
}

TEST(RoceObjects, type_ids__are_found_by_name) {
  for (const char* name : {"bx::sim::RoceNic", "bx::sim::RoceSwitch", "bx::sim::NicNetDevice"}) {
    ns3::TypeId id;
    EXPECT_TRUE(ns3::TypeId::LookupByNameFailSafe(name, &id)) << name;
  }
}

}  // namespace
}  // namespace bx::sim
