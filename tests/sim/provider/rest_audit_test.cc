// SPDX-License-Identifier: GPL-2.0-only
// What a network at rest holds without a right to: each kind of leak, made on purpose, is found and named; a
// network that was busy, paused and full a moment ago is not accused.
#include "sim/provider/rest_audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/provider/network_audit.h"
#include "sim/provider/raw_traffic.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint8_t kLossless = 3;
constexpr std::uint32_t kFrame = 1107;

std::unique_ptr<RawTraffic> make(SimConfig config) {
  config.mtu = 1024;
  auto made = RawTraffic::create(config);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().detail);
  return std::move(*made);
}

// A fabric of two switches whose hosts have all sent; the first four are paused on the way.
std::unique_ptr<RawTraffic> after_an_incast() {
  SimConfig config{.hosts = 8, .topology = {.shape = "dumbbell"}};
  config.buffer.bytes = 2U << 20U;
  auto traffic = make(config);
  std::vector<RawFlow> flows;
  for (std::uint16_t from = 1; from < 8; ++from) flows.push_back({from, 0, 1U << 20U});
  traffic->post(flows);
  EXPECT_TRUE(traffic->run());
  EXPECT_GT(traffic->network().topology().totals().pause_frames, 0U);
  return traffic;
}

// The buffer takes a frame that no queue holds: as if its release had been forgotten.
Admission leak(Switch& fabric, std::uint16_t port) {
  return const_cast<SharedBuffer&>(fabric.buffer()).admit(port, kLossless, kFrame, 0);
}

std::vector<std::string> breaches(RawTraffic& traffic) {
  return audit_network(traffic.network()).breaches;
}

TEST(rest_audit, a_run_with_pauses__leaves_nothing_behind) {
  EXPECT_THAT(breaches(*after_an_incast()), IsEmpty());
}

TEST(rest_audit, buffer__one_frame_not_given_back_is_named_by_its_place) {
  const auto traffic = after_an_incast();
  leak(traffic->network().topology().switch_at(1), 2);
  EXPECT_THAT(
      breaches(*traffic),
      ElementsAre("switch right port 2 priority 3: 1107 bytes of buffer (0 of headroom) never given back",
                  HasSubstr("switch right: 1107 bytes of its buffer in use")));
}

TEST(rest_audit, headroom_and_xoff__are_named_with_it) {
  const auto traffic = after_an_incast();
  Switch& fabric = traffic->network().topology().switch_at(0);
  while (leak(fabric, 1) == Admission::kept) {
  }
  EXPECT_EQ(leak(fabric, 1), Admission::kept);  // in headroom
  const std::vector<std::string> found = breaches(*traffic);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[0], HasSubstr("switch left port 1 priority 3: "));
  EXPECT_THAT(found[0], HasSubstr("(1107 of headroom) never given back, and still in XOFF"));
  EXPECT_THAT(found[1], HasSubstr("and 1107 of headroom"));
}

TEST(rest_audit, buffer__many_leaks_are_counted) {
  const auto traffic = make({.hosts = 40});
  for (std::uint16_t port = 0; port < 40; ++port) leak(traffic->network().topology().switch_at(0), port);
  const std::vector<std::string> found = breaches(*traffic);
  ASSERT_EQ(found.size(), kRestLinesMax + 1);
  EXPECT_EQ(found.back(), "and 25 more things held at rest");  // 40 ports and the switch
}

TEST(rest_audit, buffer__is_not_looked_at_while_frames_are_under_way) {
  const auto traffic = make({.hosts = 3});
  traffic->post({{1, 0, 100'000}});
  Engine& engine = traffic->network().engine();
  engine.run(engine.now() + microseconds{5});
  for (const std::string& line : breaches(*traffic)) EXPECT_THAT(line, testing::Not(HasSubstr("switch")));
  EXPECT_THAT(breaches(*traffic), testing::Contains(HasSubstr("frames still under way")));
}

TEST(rest_audit, pauses__that_nobody_took_back_are_named_until_they_expire) {
  const auto traffic = make({.hosts = 3});
  SimNetwork& network = traffic->network();
  Frame* pause = const_cast<FramePool&>(network.frames()).make();
  pause->kind = FrameKind::pfc;
  pause->wire_bytes = kMinimumWireBytes;
  pause->ingress_port = UINT16_MAX;  // the switch's own: it takes no buffer
  pause->pfc_enable = 1U << kLossless;
  pause->pfc_quanta[kLossless] = 65535;
  network.topology().switch_at(0).port(2).inject(pause);
  network.engine().run(network.engine().now() + microseconds{2});
  EXPECT_THAT(breaches(*traffic), ElementsAre(HasSubstr("a pause has not ended: host2 is paused by switch0:2 "
                                                        "in priority 3")));
  traffic->idle(milliseconds{1});
  EXPECT_THAT(breaches(*traffic), IsEmpty());
}

TEST(rest_audit, payloads__that_no_frame_has_are_counted) {
  const auto traffic = after_an_incast();
  auto& pool = const_cast<FramePool&>(traffic->network().frames());
  Payload* lost = pool.make_payload();
  EXPECT_THAT(breaches(*traffic), ElementsAre("1 payloads in use that no frame has"));
  pool.free_payload(lost);
  EXPECT_THAT(breaches(*traffic), IsEmpty());
}

}  // namespace
}  // namespace bx::sim
