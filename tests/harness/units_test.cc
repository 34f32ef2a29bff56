// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace bx::harness {
namespace {

TEST(units, parse_bytes__every_unit) {
  EXPECT_EQ(parse_bytes("0B"), 0U);
  EXPECT_EQ(parse_bytes("64B"), 64U);
  EXPECT_EQ(parse_bytes("1kB"), 1000U);
  EXPECT_EQ(parse_bytes("1MB"), 1'000'000U);
  EXPECT_EQ(parse_bytes("2GB"), 2'000'000'000U);
  EXPECT_EQ(parse_bytes("1TB"), 1'000'000'000'000U);
  EXPECT_EQ(parse_bytes("256KiB"), 262'144U);
  EXPECT_EQ(parse_bytes("4 MiB"), 4'194'304U);
  EXPECT_EQ(parse_bytes("1GiB"), 1ULL << 30U);
  EXPECT_EQ(parse_bytes("1TiB"), 1ULL << 40U);
}

TEST(units, parse_bytes__fractions_are_exact_or_refused) {
  EXPECT_EQ(parse_bytes("1.5KiB"), 1536U);
  EXPECT_EQ(parse_bytes("0.001kB"), 1U);
  EXPECT_EQ(parse_bytes("0.1B").error(), "is not a whole number of B");
  EXPECT_EQ(parse_bytes("1.0000000001KiB").error(), "is not a whole number of B");
}

TEST(units, parse_bytes__the_largest_value_fits_and_one_more_does_not) {
  EXPECT_EQ(parse_bytes("18446744073709551615B"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_bytes("18446744073709551616B").error(), "is too large");
  EXPECT_EQ(parse_bytes("99999999999TiB").error(), "is too large");
}

TEST(units, parse_bytes__what_is_no_quantity_says_how_to_write_one) {
  EXPECT_EQ(parse_bytes("").error(), "is not a quantity; write for example 64KiB");
  EXPECT_EQ(parse_bytes("-1B").error(), "is not a quantity; write for example 64KiB");
  EXPECT_EQ(parse_bytes("1.B").error(), "is not a quantity; write for example 64KiB");
  EXPECT_EQ(parse_bytes(".5KiB").error(), "is not a quantity; write for example 64KiB");
  EXPECT_EQ(parse_bytes("64").error(),
            "has no unit; write for example 64KiB (units: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)");
  EXPECT_EQ(parse_bytes("64us").error(),
            "has the unknown unit 'us'; the units are B, KiB, MiB, GiB, TiB, kB, MB, GB, TB");
  EXPECT_EQ(parse_bytes("64KB").error(), "has the ambiguous unit 'KB'; write kB for 1000 or KiB for 1024");
}

TEST(units, parse_duration_ns__units_and_limit) {
  EXPECT_EQ(parse_duration_ns("7ns"), 7U);
  EXPECT_EQ(parse_duration_ns("1us"), 1000U);
  EXPECT_EQ(parse_duration_ns("2.5ms"), 2'500'000U);
  EXPECT_EQ(parse_duration_ns("3s"), 3'000'000'000U);
  EXPECT_EQ(parse_duration_ns("9223372036854775807ns"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_duration_ns("9223372036854775808ns").error(), "is too large");
  EXPECT_EQ(parse_duration_ns("1.5ns").error(), "is not a whole number of ns");
}

TEST(units, parse_rate_bps__units) {
  EXPECT_EQ(parse_rate_bps("100Gbps"), 100'000'000'000U);
  EXPECT_EQ(parse_rate_bps("1.6Tbps"), 1'600'000'000'000U);
  EXPECT_FALSE(parse_rate_bps("100Gb").has_value());
}

TEST(units, parse_ratio__percent_and_plain) {
  EXPECT_DOUBLE_EQ(*parse_ratio("3%"), 0.03);
  EXPECT_DOUBLE_EQ(*parse_ratio("0.5"), 0.5);
  EXPECT_FALSE(parse_ratio("-1%").has_value());
  EXPECT_FALSE(parse_ratio("3%%").has_value());
  EXPECT_FALSE(parse_ratio("nan").has_value());
  EXPECT_FALSE(parse_ratio("").has_value());
}

TEST(units, parse_hosts__single_ranges_and_lists) {
  EXPECT_EQ(parse_hosts("0"), (HostList{0}));
  EXPECT_EQ(parse_hosts("1..4"), (HostList{1, 2, 3, 4}));
  EXPECT_EQ(parse_hosts("7, 0,3..5"), (HostList{0, 3, 4, 5, 7}));
  EXPECT_EQ(parse_hosts("65535"), (HostList{65'535}));
}

TEST(units, parse_hosts__errors) {
  const std::string form = "is not a list of hosts; write for example 0, 1..64 or 0,3..5";
  EXPECT_EQ(parse_hosts("").error(), form);
  EXPECT_EQ(parse_hosts("1,,2").error(), form);
  EXPECT_EQ(parse_hosts("1...3").error(), form);
  EXPECT_EQ(parse_hosts("host1").error(), form);
  EXPECT_EQ(parse_hosts("4..2").error(), "counts down from 4 to 2");
  EXPECT_EQ(parse_hosts("1..3,2").error(), "names host 2 twice");
  EXPECT_EQ(parse_hosts("65536").error(), "names host 65536; the largest number is 65535");
}

TEST(units, format__parses_back_to_the_same_number) {
  for (const std::uint64_t value :
       {0ULL, 1ULL, 1023ULL, 1024ULL, 1025ULL, 65'536ULL, 1ULL << 32U, 1'000'000ULL}) {
    EXPECT_EQ(parse_bytes(format_bytes(value)), value);
    EXPECT_EQ(parse_duration_ns(format_duration_ns(value)), value);
    EXPECT_EQ(parse_rate_bps(format_rate_bps(value)), value);
  }
  EXPECT_EQ(format_bytes(65'536), "64KiB");
  EXPECT_EQ(format_duration_ns(1'500'000), "1500us");
  EXPECT_EQ(format_rate_bps(100'000'000'000), "100Gbps");
  EXPECT_EQ(format_hosts({0, 3, 4, 5, 9}), "0,3..5,9");
}

TEST(units, format_approximately__four_digits_and_a_fitting_unit) {
  EXPECT_EQ(format_approximately(5'480'537, "ns"), "5.481 ms");
  EXPECT_EQ(format_approximately(999, "ns"), "999 ns");
  EXPECT_EQ(format_approximately(0, "ns"), "0 ns");
  EXPECT_EQ(format_approximately(1536, "bytes"), "1.5 KiB");
  EXPECT_EQ(format_approximately(98.04e9, "bps"), "98.04 Gbps");
  EXPECT_EQ(format_approximately(3, "count"), "3");
  EXPECT_EQ(format_approximately(1.0040404, "ratio"), "1.004");
}

}  // namespace
}  // namespace bx::harness
