// SPDX-License-Identifier: GPL-2.0-only
// The counters of NICs that are not here, under the names that all share.
#include "harness/run/counter_names.h"

#include <gtest/gtest.h>

#include "harness/measure/metric_set.h"
#include "harness/run/device_counters.h"
#include "tests/harness/tools/fake_machine.h"

namespace bx::harness {
namespace {

TEST(counter_names, standard_metrics__a_driver_s_own_has_none) {
  EXPECT_TRUE(standard_metrics("rx_vport_unicast_packets").empty());
  EXPECT_TRUE(standard_metrics("rx_prio9_pause").empty());
  EXPECT_TRUE(standard_metrics("rx_prio3").empty());
  EXPECT_TRUE(standard_metrics("").empty());
}

TEST(counter_names, standard_metrics__pauses_as_a_sum_and_by_priority) {
  const auto received = standard_metrics("rx_prio3_pause");
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(received[0].name, "pfc.pause_frames");
  EXPECT_EQ(received[1].name, "pfc.priority3.pause_frames_rx");
  const auto paused = standard_metrics("rx_prio4_pause_duration");
  ASSERT_EQ(paused.size(), 2U);
  EXPECT_EQ(paused[0].name, "pfc.paused_time");
  EXPECT_EQ(paused[0].unit, "ns");
  EXPECT_EQ(paused[0].factor, 1000);
}

TEST(counter_names, report_device__of_a_connectx) {
  const FakeMachine machine;
  const std::string counters = "sys/class/infiniband/mlx5_0/ports/1/hw_counters/";
  machine.put(counters + "out_of_sequence", "17");
  machine.put(counters + "packet_seq_err", "3");
  machine.put(counters + "rnr_nak_retry_err", "2");
  machine.put(counters + "local_ack_timeout_err", "5");
  machine.put(counters + "np_cnp_sent", "4711");
  machine.put(counters + "rp_cnp_handled", "4700");
  machine.put(counters + "np_ecn_marked_roce_packets", "9000");
  machine.put("commands/ethtool_-S_eth2",
              "NIC statistics:\n     rx_packets: 123\n     rx0_cache_full: 7\n     rx_prio0_pause: 10\n"
              "     rx_prio3_pause: 20\n     tx_prio3_pause: 6\n     rx_prio3_pause_duration: 55\n"
              "     rx_prio3_discards: 1\n     rx_discards_phy: 4");
  MetricSet metrics;
  report_device(machine.view(), "mlx5_0", 1, "eth2", metrics);
  const auto value = [&](std::string_view name) { return metrics.value_or(name, -1); };
  EXPECT_EQ(value("nic.out_of_sequence"), 17);
  EXPECT_EQ(value("device.out_of_sequence"), 17);
  EXPECT_EQ(value("nic.sequence_naks_rx"), 3);
  EXPECT_EQ(value("nic.rnr_naks_rx"), 2);
  EXPECT_EQ(value("nic.timeouts"), 5);
  EXPECT_EQ(value("cc.cnps_tx"), 4711);
  EXPECT_EQ(value("cc.cnps_rx"), 4700);
  EXPECT_EQ(value("ecn.marked_rx"), 9000);
  EXPECT_EQ(value("pfc.pause_frames"), 30) << "of all priorities";
  EXPECT_EQ(value("pfc.priority3.pause_frames_rx"), 20);
  EXPECT_EQ(value("pfc.priority3.pause_frames_tx"), 6);
  EXPECT_EQ(value("nic.pause_frames"), 6);
  EXPECT_EQ(value("pfc.paused_time"), 55'000);
  EXPECT_EQ(value("pfc.priority3.discards_rx"), 1);
  EXPECT_EQ(value("nic.receive_drops"), 4);
  EXPECT_EQ(value("ethtool.rx_packets"), -1) << "of no interest here";
}

TEST(counter_names, report_device__of_soft_roce_adds_up_over_devices) {
  const FakeMachine machine;
  for (const char* device : {"rxe1", "rxe2"}) {
    const std::string counters = std::string("sys/class/infiniband/") + device + "/ports/1/hw_counters/";
    machine.put(counters + "sent_pkts", "100");
    machine.put(counters + "out_of_seq_request", "2");
    machine.put(counters + "completer_retry_err", "3");
  }
  MetricSet metrics;
  report_device(machine.view(), "rxe1", 1, "", metrics);
  report_device(machine.view(), "rxe2", 1, "", metrics);
  EXPECT_EQ(metrics.value_or("nic.packets_tx", 0), 200);
  EXPECT_EQ(metrics.value_or("nic.sequence_naks", 0), 4);
  EXPECT_EQ(metrics.value_or("nic.retries", 0), 6);
  EXPECT_TRUE(is_counted_by_rxe("nic.sequence_naks"));
  EXPECT_FALSE(is_counted_by_rxe("nic.retransmissions"));
}

TEST(counter_names, parse_qdiscs__sums_the_interfaces_asked_for) {
  const std::string text =
      R"([{"kind":"netem","dev":"h1","packets":10,"bytes":1000,"drops":1,"overlimits":0,"requeues":0,"options":{}},)"
      R"({"kind":"netem","dev":"p1","packets":20,"bytes":3000,"drops":2,"overlimits":5,"requeues":0},)"
      R"({"kind":"pfifo","dev":"eth0","packets":99,"bytes":9,"drops":9,"overlimits":9,"requeues":9},{},7])";
  const auto sums = parse_qdiscs(text, {"h1", "p1"});
  ASSERT_EQ(sums.size(), 5U);
  EXPECT_EQ(sums[0].name, "packets");
  EXPECT_EQ(sums[0].value, 30U);
  EXPECT_EQ(sums[1].value, 4000U);
  EXPECT_EQ(sums[2].value, 3U);
  EXPECT_EQ(sums[3].value, 5U);
  for (const char* wrong : {"", "{", "{}", "3"}) EXPECT_TRUE(parse_qdiscs(wrong, {"h1"}).empty()) << wrong;
}

TEST(counter_names, report_qdiscs__from_one_command) {
  const FakeMachine machine;
  MetricSet metrics;
  report_qdiscs(machine.view(), {"h1"}, metrics);
  EXPECT_TRUE(metrics.all().empty()) << "there is no tc";
  machine.put("commands/tc_-j_-s_qdisc_show", R"([{"dev":"h1","packets":10,"drops":1}])");
  report_qdiscs(machine.view(), {"h1"}, metrics);
  EXPECT_EQ(metrics.value_or("tc.drops", 0), 1);
}

TEST(counter_names, port_counters__count_from_when_they_were_made) {
  const FakeMachine machine;
  machine.put_rxe();
  machine.put("sys/class/net/p1/mtu", "9000");
  const std::string sent = "sys/class/infiniband/rxe1/ports/1/hw_counters/sent_pkts";
  machine.put(sent, "100");
  machine.put("commands/tc_-j_-s_qdisc_show", R"([{"dev":"h1","drops":1},{"dev":"p1","drops":2}])");
  const PortCounters counters({{"rxe1", 1}}, machine.view());
  machine.put(sent, "130");
  machine.put("commands/tc_-j_-s_qdisc_show", R"([{"dev":"h1","drops":4},{"dev":"p1","drops":7}])");
  MetricSet metrics;
  counters.report(metrics);
  EXPECT_EQ(metrics.value_or("device.sent_pkts", 0), 30);
  EXPECT_EQ(metrics.value_or("nic.packets_tx", 0), 30);
  EXPECT_EQ(metrics.value_or("tc.drops", 0), 8) << "of both ends of the link";
}

}  // namespace
}  // namespace bx::harness
