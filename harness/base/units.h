// SPDX-License-Identifier: GPL-2.0-only
// Quantities as people write them ("100Gbps", "1us", "256KiB", "3%", "1..64") and as the code holds them:
// exact integers in bytes, nanoseconds and bits per second. A value that would need rounding or that
// overflows is an error, never an approximation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace bx::harness {

// The error is a sentence without a subject: "has no unit; write for example 1us (ns, us, ms, s)".
template <class T>
using Parsed = tl::expected<T, std::string>;

// B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
Parsed<std::uint64_t> parse_bytes(std::string_view text);
// ns, us, ms, s. At most 2^63 - 1 ns.
Parsed<std::uint64_t> parse_duration_ns(std::string_view text);
// bps, kbps, Mbps, Gbps, Tbps.
Parsed<std::uint64_t> parse_rate_bps(std::string_view text);
// "3%" or "0.03": 0.03.
Parsed<double> parse_ratio(std::string_view text);
// Digits only.
Parsed<std::uint64_t> parse_count(std::string_view text);

// "0", "1..64", "0,3..5": ascending, each host once.
using HostList = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kHostNumberMax = 65'535;
Parsed<HostList> parse_hosts(std::string_view text);

// The shortest exact form, which parses back to the same number.
std::string format_bytes(std::uint64_t bytes);
std::string format_duration_ns(std::uint64_t nanoseconds);
std::string format_rate_bps(std::uint64_t bits_per_second);
std::string format_hosts(const HostList& hosts);

// Four significant digits and a unit that fits, for tables: 5480537 ns is "5.481 ms". `unit` is one of "ns",
// "bytes", "bps", "ratio", "count".
std::string format_approximately(double value, std::string_view unit);

}  // namespace bx::harness
