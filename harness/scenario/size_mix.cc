// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/size_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace bx::harness {
namespace {

// Sizes from 0 B belong to the doubling of 1 B: [0, 1].
std::uint64_t draw_log_uniform(Prng& prng, std::uint64_t low, std::uint64_t high) {
  const auto lowest = static_cast<std::uint64_t>(std::bit_width(std::max<std::uint64_t>(low, 1)) - 1);
  const auto highest = static_cast<std::uint64_t>(std::bit_width(std::max<std::uint64_t>(high, 1)) - 1);
  // Ends in the middle of a doubling make it less likely in proportion: the draws outside are drawn again. At
  // least half of the doublings but two lie inside, so this ends quickly; low = high needs no draw at all.
  while (low != high) {
    const std::uint64_t doubling = prng.between(lowest, highest);
    const std::uint64_t start = doubling == 0 ? 0 : std::uint64_t{1} << doubling;
    const std::uint64_t width = doubling == 0 ? 2 : start;
    const std::uint64_t first = std::max(start, low);
    const std::uint64_t last = std::min(start + (width - 1), high);
    // Accept the doubling with the probability of its part that lies inside, then draw within that part.
    if (prng.below(width) <= last - first) return prng.between(first, last);
  }
  return low;
}

}  // namespace

std::uint64_t SizeMix::draw(Prng& prng) const {
  switch (kind) {
    case Kind::fixed:
      return low;
    case Kind::uniform:
      return prng.between(low, high);
    case Kind::log_uniform:
      return draw_log_uniform(prng, low, high);
    case Kind::list:
      break;
  }
  std::uint64_t total = 0;
  for (const Choice& choice : choices) total += choice.weight;
  std::uint64_t at = prng.below(total);
  for (const Choice& choice : choices) {
    if (at < choice.weight) return choice.bytes;
    at -= choice.weight;
  }
  return choices.back().bytes;
}

std::uint64_t SizeMix::smallest() const {
  return kind == Kind::list ? std::ranges::min_element(choices, {}, &Choice::bytes)->bytes : low;
}

std::uint64_t SizeMix::largest() const {
  return kind == Kind::list ? std::ranges::max_element(choices, {}, &Choice::bytes)->bytes : high;
}

std::string SizeMix::shown() const {
  switch (kind) {
    case Kind::fixed:
      return format_bytes(low);
    case Kind::uniform:
      return fmt::format("uniform {}..{}", format_bytes(low), format_bytes(high));
    case Kind::log_uniform:
      return fmt::format("log-uniform {}..{}", format_bytes(low), format_bytes(high));
    case Kind::list:
      break;
  }
  std::string text;
  for (const Choice& choice : choices) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{}*{}", format_bytes(choice.bytes), choice.weight);
  }
  return text;
}

Parsed<SizeMix> parse_size_mix(std::string_view text) {
  SizeMix mix;
  std::string_view range = text;
  const std::size_t dots = range.find("..");
  if (dots == std::string_view::npos) {
    const Parsed<std::uint64_t> bytes = parse_bytes(range);
    if (!bytes) return tl::unexpected(bytes.error());
    return SizeMix::fixed(*bytes);
  }
  mix.kind = SizeMix::Kind::log_uniform;
  if (range.starts_with("uniform ")) {
    mix.kind = SizeMix::Kind::uniform;
    range.remove_prefix(8);
  } else if (range.starts_with("log-uniform ")) {
    range.remove_prefix(12);
  }
  const std::size_t split = range.find("..");
  const Parsed<std::uint64_t> low = parse_bytes(range.substr(0, split));
  const Parsed<std::uint64_t> high = parse_bytes(range.substr(split + 2));
  if (!low || !high) {
    return tl::unexpected(
        std::string("is not a range of sizes; write for example 64B..4MiB, uniform 64B..4MiB or "
                    "log-uniform 64B..4MiB"));
  }
  if (*low > *high) return tl::unexpected(std::string("begins above its end"));
  mix.low = *low;
  mix.high = *high;
  return mix;
}

}  // namespace bx::harness
