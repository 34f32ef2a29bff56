// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/pcie_bus.h"

#include <gtest/gtest.h>

namespace bx::sim {
namespace {

// 8 Gb/s: a byte takes a nanosecond.
constexpr PcieConfig kPcie{.rate = {8'000'000'000},
                           .read_latency = nanoseconds{500},
                           .write_latency = nanoseconds{200},
                           .payload_max = 256,
                           .tlp_overhead = 24};

TEST(PcieBus, read__latency_then_bytes_with_their_tlps) {
  PcieBus bus(kPcie);
  EXPECT_EQ(bus.read(Picoseconds{0}, 64), nanoseconds{500 + 64 + 24});
  PcieBus other(kPcie);
  EXPECT_EQ(other.read(Picoseconds{0}, 1000), nanoseconds{500 + 1000 + 4 * 24});
}

TEST(PcieBus, read__latencies_overlap_and_bytes_do_not) {
  PcieBus bus(kPcie);
  EXPECT_EQ(bus.read(Picoseconds{0}, 232), nanoseconds{756});
  EXPECT_EQ(bus.read(Picoseconds{0}, 232), nanoseconds{756 + 256});
  EXPECT_EQ(bus.read(nanoseconds{1000}, 232), nanoseconds{1756});
  EXPECT_EQ(bus.counters().reads, 3U);
  EXPECT_EQ(bus.counters().stalls, 1U);
  EXPECT_EQ(bus.counters().stalled, nanoseconds{256});
}

TEST(PcieBus, write__is_seen_in_order_and_beside_reads) {
  PcieBus bus(kPcie);
  EXPECT_EQ(bus.read(Picoseconds{0}, 1U << 20U) > microseconds{1000}, true);
  const Picoseconds payload = bus.write(Picoseconds{0}, 1000);
  const Picoseconds completion = bus.write(Picoseconds{0}, 64);
  EXPECT_EQ(payload, nanoseconds{1000 + 96 + 200});
  EXPECT_EQ(completion, payload + nanoseconds{64 + 24});
}

TEST(PcieBus, rate__of_zero_is_infinitely_fast) {
  PcieBus bus({.read_latency = nanoseconds{500}});
  EXPECT_EQ(bus.read(Picoseconds{0}, 1U << 20U), nanoseconds{500});
  EXPECT_EQ(bus.read(Picoseconds{0}, 1U << 20U), nanoseconds{500});
}

}  // namespace
}  // namespace bx::sim
