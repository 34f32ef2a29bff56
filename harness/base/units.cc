// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace bx::harness {
namespace {

__extension__ using Wide = unsigned __int128;

struct UnitName {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array kBytes{
    UnitName{"B", 1},
    UnitName{"KiB", 1ULL << 10U},
    UnitName{"MiB", 1ULL << 20U},
    UnitName{"GiB", 1ULL << 30U},
    UnitName{"TiB", 1ULL << 40U},
    UnitName{"kB", 1'000},
    UnitName{"MB", 1'000'000},
    UnitName{"GB", 1'000'000'000},
    UnitName{"TB", 1'000'000'000'000},
};
constexpr std::array kDurations{
    UnitName{"ns", 1},
    UnitName{"us", 1'000},
    UnitName{"ms", 1'000'000},
    UnitName{"s", 1'000'000'000},
};
constexpr std::array kRates{
    UnitName{"bps", 1},
    UnitName{"kbps", 1'000},
    UnitName{"Mbps", 1'000'000},
    UnitName{"Gbps", 1'000'000'000},
    UnitName{"Tbps", 1'000'000'000'000},
};

std::string list_units(std::span<const UnitName> units) {
  std::string names;
  for (const UnitName& unit : units) {
    if (!names.empty()) names += ", ";
    names += unit.name;
  }
  return names;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A decimal number taken apart: mantissa / 10^decimals.
struct Decimal {
  Wide mantissa = 0;
  unsigned decimals = 0;
};

constexpr unsigned kDigitsMax = 30;  // keeps mantissa * factor within 128 bits

// Consumes the number at the front of `text`; nothing when there is none or it has too many digits.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal value;
  unsigned digits = 0;
  std::size_t at = 0;
  bool point = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      if (digits == 0) return std::nullopt;
      point = true;
      continue;
    }
    if (++digits > kDigitsMax) return std::nullopt;
    value.mantissa = value.mantissa * 10U + static_cast<unsigned>(text[at] - '0');
    if (point) ++value.decimals;
  }
  if (digits == 0 || (point && value.decimals == 0)) return std::nullopt;
  text.remove_prefix(at);
  return value;
}

Parsed<std::uint64_t> parse_quantity(std::string_view text, std::span<const UnitName> units,
                                     std::string_view example, std::uint64_t limit) {
  std::string_view rest = text;
  std::optional<Decimal> number = take_decimal(rest);
  if (!number) return tl::unexpected(fmt::format("is not a quantity; write for example {}", example));
  if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest.empty()) {
    return tl::unexpected(
        fmt::format("has no unit; write for example {} (units: {})", example, list_units(units)));
  }
  const auto unit = std::ranges::find(units, rest, &UnitName::name);
  if (unit == units.end()) {
    return tl::unexpected(
        fmt::format("has the unknown unit '{}'; the units are {}", rest, list_units(units)));
  }
  if (number->mantissa > std::numeric_limits<Wide>::max() / unit->factor) {
    return tl::unexpected(std::string("is too large"));
  }
  Wide value = number->mantissa * unit->factor;
  for (unsigned i = 0; i < number->decimals; ++i) {
    if (value % 10U != 0) {
      return tl::unexpected(fmt::format("is not a whole number of {}", units.front().name));
    }
    value /= 10U;
  }
  if (value > limit) return tl::unexpected(std::string("is too large"));
  return static_cast<std::uint64_t>(value);
}

std::string format_exact(std::uint64_t value, std::span<const UnitName> units) {
  const UnitName* best = &units.front();
  for (const UnitName& unit : units) {
    if (value != 0 && value % unit.factor == 0 && unit.factor > best->factor) best = &unit;
  }
  return fmt::format("{}{}", value / best->factor, best->name);
}

std::string scaled(double value, std::span<const UnitName> units, bool thousand) {
  const UnitName* best = &units.front();
  for (const UnitName& unit : units) {
    const bool decimal = unit.factor == 1 || unit.factor % 10U == 0;
    if (decimal != thousand && unit.factor != 1) continue;
    if (std::abs(value) >= static_cast<double>(unit.factor) && unit.factor > best->factor) best = &unit;
  }
  return fmt::format("{:.4g} {}", value / static_cast<double>(best->factor), best->name);
}

}  // namespace

Parsed<std::uint64_t> parse_bytes(std::string_view text) {
  Parsed<std::uint64_t> value =
      parse_quantity(text, kBytes, "64KiB", std::numeric_limits<std::uint64_t>::max());
  if (!value && text.ends_with("KB")) {
    return tl::unexpected(std::string("has the ambiguous unit 'KB'; write kB for 1000 or KiB for 1024"));
  }
  return value;
}

Parsed<std::uint64_t> parse_duration_ns(std::string_view text) {
  return parse_quantity(text, kDurations, "1us",
                        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
}

Parsed<std::uint64_t> parse_rate_bps(std::string_view text) {
  return parse_quantity(text, kRates, "100Gbps", std::numeric_limits<std::uint64_t>::max());
}

Parsed<double> parse_ratio(std::string_view text) {
  std::string_view digits = text;
  const bool percent = digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value) || value < 0) {
    return tl::unexpected(std::string("is not a ratio; write for example 3% or 0.03"));
  }
  return percent ? value / 100.0 : value;
}

Parsed<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return tl::unexpected(std::string("is too large"));
  if (error != std::errc{} || end != text.data() + text.size()) {
    return tl::unexpected(std::string("is not a whole number"));
  }
  return value;
}

Parsed<HostList> parse_hosts(std::string_view text) {
  const std::string form = "is not a list of hosts; write for example 0, 1..64 or 0,3..5";
  std::vector<bool> named(kHostNumberMax + 1);
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view part = rest.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const std::size_t dots = part.find("..");
    const Parsed<std::uint64_t> first = parse_count(part.substr(0, dots));
    const Parsed<std::uint64_t> last =
        dots == std::string_view::npos ? first : parse_count(part.substr(dots + 2));
    if (!first || !last) return tl::unexpected(form);
    if (*first > *last) return tl::unexpected(fmt::format("counts down from {} to {}", *first, *last));
    if (*last > kHostNumberMax) {
      return tl::unexpected(fmt::format("names host {}; the largest number is {}", *last, kHostNumberMax));
    }
    for (std::uint64_t host = *first; host <= *last; ++host) {
      if (named[host]) return tl::unexpected(fmt::format("names host {} twice", host));
      named[host] = true;
    }
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  HostList hosts;
  for (std::uint32_t host = 0; host <= kHostNumberMax; ++host) {
    if (named[host]) hosts.push_back(host);
  }
  return hosts;
}

std::string format_bytes(std::uint64_t bytes) {
  return format_exact(bytes, std::span(kBytes).first(5));
}
std::string format_duration_ns(std::uint64_t nanoseconds) {
  return format_exact(nanoseconds, kDurations);
}
std::string format_rate_bps(std::uint64_t bits_per_second) {
  return format_exact(bits_per_second, kRates);
}

std::string format_hosts(const HostList& hosts) {
  std::string text;
  for (std::size_t i = 0; i < hosts.size();) {
    std::size_t last = i;
    while (last + 1 < hosts.size() && hosts[last + 1] == hosts[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", hosts[i]) : fmt::format("{}..{}", hosts[i], hosts[last]);
    i = last + 1;
  }
  return text;
}

std::string format_approximately(double value, std::string_view unit) {
  if (unit == "ns") return scaled(value, kDurations, true);
  if (unit == "bytes") return scaled(value, kBytes, false);
  if (unit == "bps") return scaled(value, kRates, true);
  if (unit == "count") {
    return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                                : fmt::format("{:.4g}", value);
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace bx::harness
