// SPDX-License-Identifier: GPL-2.0-only
// Hosts that are ports of one NIC: what they share, and whom its events reach.
#include "sim/provider/nic_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "sim/provider/sim_fabric.h"
#include "sim/provider/sim_network.h"

namespace bx::sim {
namespace {

using fabric::DeviceEventKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

SimConfig two_ports(std::uint32_t hosts) {
  SimConfig config;
  config.hosts = hosts;
  config.nic.ports = 2;
  return config;
}

class TwoPortNic : public ::testing::Test {
 protected:
  void open(const SimConfig& config) {
    fabric_ = std::move(*SimFabric::create(config));
    for (const char* name : {"host0", "host1", "host2"}) {
      hosts_.push_back(std::move(*fabric_->open_host(name)));
    }
    fabric_->start_faults(nullptr);
  }
  void run() { hosts_[0]->reactor().run(Instant{} + std::chrono::milliseconds(1)); }
  std::vector<DeviceEventKind> events(std::size_t host) {
    std::array<fabric::DeviceEvent, 8> polled;
    std::vector<DeviceEventKind> kinds;
    const std::size_t count = hosts_[host]->device().poll_events(polled);
    for (std::size_t i = 0; i < count; ++i) kinds.push_back(polled[i].kind);
    return kinds;
  }

  std::unique_ptr<SimFabric> fabric_;
  std::vector<std::unique_ptr<fabric::Host>> hosts_;
};

TEST_F(TwoPortNic, create__hosts_in_pairs_share_a_nic_and_have_links_of_their_own) {
  open(two_ports(4));
  SimNetwork& network = fabric_->network();
  EXPECT_EQ(network.nics(), 2U);
  EXPECT_EQ(&network.nic(0), &network.nic(1));
  EXPECT_NE(&network.nic(1), &network.nic(2));
  EXPECT_NE(&network.port(0), &network.port(1));
}

TEST_F(TwoPortNic, events__of_a_port_reach_its_host_only) {
  SimConfig config = two_ports(4);
  config.faults = {{.kind = FaultKind::link_down, .target = "host1"}};
  open(config);
  run();
  EXPECT_THAT(events(1), ElementsAre(DeviceEventKind::port_error));
  EXPECT_THAT(events(0), IsEmpty());
  EXPECT_THAT(events(2), IsEmpty());
}

TEST(nic_ports, create__refuses_hosts_that_do_not_pair_up) {
  const auto odd = SimFabric::create(two_ports(5));
  ASSERT_FALSE(odd);
  EXPECT_STREQ(odd.error().detail, "nic.ports: give a divisor of the number of hosts");
  SimConfig unlike = two_ports(2);
  unlike.topology.shape = "file";
  unlike.topology.plan = {.hosts = 2,
                          .switches = {"s"},
                          .links = {{{host_node(0), switch_node(0)}, {{100'000'000'000}, nanoseconds{1}}},
                                    {{host_node(1), switch_node(0)}, {{25'000'000'000}, nanoseconds{1}}}}};
  const auto rates = SimFabric::create(unlike);
  ASSERT_FALSE(rates);
  EXPECT_STREQ(rates.error().detail, "nic.ports: the ports of a NIC need links of one rate");
}

}  // namespace
}  // namespace bx::sim
