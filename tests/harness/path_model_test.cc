// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/path_model.h"

#include <gtest/gtest.h>

#include "harness/scenario/topology_file.h"
#include "harness/workload/plan.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kGbps = 1'000'000'000;

// Two servers at 25G and one at 400G on the left, clients at 100G left and right, 40G between in two links.
Settings drawn() {
  Diagnostics diagnostics;
  const auto plan = parse_topology(R"(hosts = 5
switches = ["left", "right"]
delay = "1us"
[[link]]
ends = ["host0", "right"]
rate = "100Gbps"
delay = "3us"
[[link]]
ends = ["host1..2", "left"]
rate = "25Gbps"
[[link]]
ends = ["host3", "left"]
rate = "400Gbps"
[[link]]
ends = ["host4", "left"]
rate = "100Gbps"
[[link]]
ends = ["left", "right"]
rate = "20Gbps"
count = 2
)",
                                   "t.toml", diagnostics);
  EXPECT_TRUE(plan) << diagnostics.text();
  Settings settings;
  settings.fabric.topology.shape = "file";
  settings.fabric.topology.plan = *plan;
  settings.fabric.hosts = 5;
  return settings;
}

LinkModel between(std::uint32_t receiver, const std::vector<std::uint32_t>& senders) {
  return PathModel(drawn()).to(receiver, senders);
}

TEST(path_model, to__the_narrowest_cut_between_senders_and_receiver) {
  EXPECT_EQ(between(4, {1}).cut_bps, 25 * kGbps);        // the sender's link
  EXPECT_EQ(between(4, {1, 2}).cut_bps, 50 * kGbps);     // both senders'
  EXPECT_EQ(between(4, {1, 1, 1}).cut_bps, 25 * kGbps);  // one link, however often it is named
  EXPECT_EQ(between(4, {3}).cut_bps, 100 * kGbps);       // the receiver's
  EXPECT_EQ(between(0, {1, 2, 3}).cut_bps, 40 * kGbps);  // the two links between the switches
  EXPECT_EQ(between(0, {1}).cut_bps, 25 * kGbps);
  EXPECT_EQ(between(0, {3}).sender_rate_bps, 400 * kGbps);
  EXPECT_EQ(between(0, {3}).rate_bps, 100 * kGbps);
  EXPECT_EQ(between(0, {3}).delay_ps, 2'000'000U);  // 3 us and 1 us
}

TEST(path_model, to__equal_links_give_the_plain_form) {
  Settings settings;
  settings.fabric.topology.shape = "leaf-spine";
  settings.fabric.hosts = 8;
  const std::vector<std::uint32_t> senders{1, 2, 5, 6};
  const std::vector<std::uint64_t> answers{65536, 1, 4097, 1048576};
  EXPECT_EQ(incast_bound_ps(PathModel(settings).to(0, senders), answers),
            incast_bound_ps(link_model(settings), answers));
  EXPECT_EQ(flow_bound_ps(PathModel(settings).to(0, {senders.data(), 1}), 4097),
            flow_bound_ps(link_model(settings), 4097));
}

TEST(path_model, to__a_slow_uplink_of_a_shape_counts) {
  Settings settings;
  settings.fabric.topology.shape = "dumbbell";
  settings.fabric.hosts = 4;
  settings.fabric.topology.uplink_rate_bps = 10 * kGbps;
  const std::vector<std::uint32_t> near{1};
  const std::vector<std::uint32_t> far{2, 3};
  EXPECT_EQ(PathModel(settings).to(0, near).cut_bps, 100 * kGbps);
  EXPECT_EQ(PathModel(settings).to(0, far).cut_bps, 10 * kGbps);
}

TEST(path_model, bounds__by_hand_where_sender_and_receiver_differ) {
  // 4096 B are 4178 on the wire. A sender at 25G, a receiver at 100G, 1 us each way.
  const LinkModel slow_sender = between(4, {1});
  EXPECT_EQ(flow_bound_ps(slow_sender, 8192), 2 * 4178 * 320U + 4178 * 80U + 2'000'000U);
  const LinkModel slow_receiver = between(1, {4});
  EXPECT_EQ(flow_bound_ps(slow_receiver, 8192), 2 * 4178 * 320U + 4178 * 80U + 2'000'000U);
  const std::vector<std::uint64_t> answers{4096, 4096};
  EXPECT_EQ(incast_bound_ps(slow_receiver, answers), 4178 * 80U + 2 * 4178 * 320U + 2'000'000U);
}

}  // namespace
}  // namespace bx::harness
