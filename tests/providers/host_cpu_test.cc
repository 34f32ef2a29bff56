// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/host_cpu.h"

#include <gtest/gtest.h>

namespace bx::virtual_time {
namespace {

constexpr Instant at(std::int64_t ns) {
  return Instant{Duration{ns}};
}

// Every cost a different power of ten, so that a sum shows what it is made of.
HostCpuCosts decimal_costs() {
  HostCpuCosts costs;
  costs.turn = Duration{1};
  costs.completion = Duration{10};
  costs.empty_poll = Duration{100};
  costs.send = Duration{1'000};
  costs.doorbell = Duration{10'000};
  costs.receive = Duration{100'000};
  costs.handler = Duration{1'000'000};
  costs.copy_ps_byte = 500;
  costs.tcp_segment = Duration{1'000};
  costs.tcp_ps_byte = 250;
  costs.tcp_segment_bytes = 1000;
  costs.wake_polled = Duration{50};
  costs.wake_event = Duration{4'000};
  costs.interrupt = Duration{1'500};
  return costs;
}

TEST(HostCpu, charge_turn__adds_each_kind_of_work_at_its_cost) {
  HostCpu cpu(decimal_costs());
  const fabric::Work work{.completions = 2,
                          .polls_empty = 3,
                          .sends_posted = 4,
                          .doorbells = 5,
                          .receives_posted = 6,
                          .handlers = 7,
                          .bytes_copied = 200'000'000};
  EXPECT_EQ(cpu.charge_turn(at(0), work), at(107'654'321));
  EXPECT_EQ(cpu.busy_time(), Duration{107'654'321});
  EXPECT_EQ(cpu.breakdown().turns, cpu.busy_time());
}

TEST(HostCpu, charge_turn__of_nothing_costs_the_turn) {
  HostCpu cpu(decimal_costs());
  EXPECT_EQ(cpu.charge_turn(at(5), {}), at(6));
}

TEST(HostCpu, charge__queues_behind_what_is_still_running) {
  HostCpu cpu(decimal_costs());
  EXPECT_EQ(cpu.charge_turn(at(0), {.handlers = 1}), at(1'000'001));
  EXPECT_EQ(cpu.charge_turn(at(500), {}), at(1'000'002));
  EXPECT_EQ(cpu.free_at(), at(1'000'002));
  EXPECT_EQ(cpu.charge_turn(at(2'000'000), {}), at(2'000'001));
  EXPECT_EQ(cpu.busy_time(), Duration{1'000'003});
}

TEST(HostCpu, charge__carries_fractions_of_a_nanosecond) {
  HostCpuCosts costs = decimal_costs();
  costs.turn = Duration{0};
  costs.copy_ps_byte = 80;
  HostCpu cpu(costs);
  for (int i = 0; i < 1000; ++i) cpu.charge_turn(at(0), {.bytes_copied = 1});
  EXPECT_EQ(cpu.busy_time(), Duration{80});
}

TEST(HostCpu, charge_tcp__counts_whole_segments_and_bytes) {
  HostCpu cpu(decimal_costs());
  EXPECT_EQ(cpu.charge_tcp(at(0), 2001), at(3 * 1'000 + 500));  // 500.25 ns for the bytes
  EXPECT_EQ(cpu.breakdown().tcp, Duration{3'500});
  EXPECT_EQ(cpu.charge_tcp(at(0), 0), at(3'500));
  EXPECT_EQ(cpu.charge_tcp(at(9'000), 0), at(9'000));
  EXPECT_EQ(cpu.busy_time(), Duration{3'500});
}

TEST(HostCpu, wake__costs_an_interrupt_in_event_mode_only) {
  HostCpu polled(decimal_costs(), WaitMode::polled);
  EXPECT_EQ(polled.wake_latency(at(0)), Duration{50});
  EXPECT_EQ(polled.charge_wake(at(0)), at(0));
  HostCpu event(decimal_costs(), WaitMode::event);
  EXPECT_EQ(event.wake_latency(at(0)), Duration{4'000});
  EXPECT_EQ(event.charge_wake(at(0)), at(1'500));
  EXPECT_EQ(event.breakdown().wakes, Duration{1'500});
}

TEST(HostCpu, wake__adaptive_costs_an_interrupt_after_the_spin) {
  HostCpu cpu(decimal_costs(), WaitMode::adaptive);  // idle since 0
  const Duration spin = cpu.costs().spin;
  const Instant last = at(spin.count());
  EXPECT_EQ(cpu.wake_latency(last), Duration{50});
  EXPECT_EQ(cpu.charge_wake(last + Duration{50}), last + Duration{50});
  EXPECT_EQ(cpu.busy_time(), Duration{0});
  EXPECT_EQ(cpu.wake_latency(last + Duration{1}), Duration{4'000});
  EXPECT_EQ(cpu.charge_wake(last + Duration{4'001}), last + Duration{5'501});
  EXPECT_EQ(cpu.wake_latency(last + Duration{5'501}), Duration{50});  // it has just been busy
}

}  // namespace
}  // namespace bx::virtual_time
