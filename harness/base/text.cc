// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace bx::harness {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the dynamic programme: the one before the last is needed for transpositions.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLengthMax = 80;  // longer words are not misspellings, and cost quadratic time
  if (word.size() > kLengthMax) return std::nullopt;
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::nullopt : std::optional<std::string>(*best);
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::optional<std::string> guess = nearest(word, candidates);
  return guess ? fmt::format("; did you mean '{}'?", *guess) : std::string();
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<std::uint8_t>(text[at]);
    std::size_t length = 1;
    std::uint32_t point = lead;
    std::uint32_t smallest = 0;
    if (lead >= 0x80) {
      if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2, point = lead & 0x1FU, smallest = 0x80;
      } else if ((lead & 0xF0U) == 0xE0) {
        length = 3, point = lead & 0x0FU, smallest = 0x800;
      } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4, point = lead & 0x07U, smallest = 0x10000;
      } else {
        return at;
      }
      if (at + length > text.size()) return at;
      for (std::size_t i = 1; i < length; ++i) {
        const auto next = static_cast<std::uint8_t>(text[at + i]);
        if ((next & 0xC0U) != 0x80) return at;
        point = (point << 6U) | (next & 0x3FU);
      }
      if (point < smallest || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return at;
    }
    at += length;
  }
  return std::nullopt;
}

std::string join(std::span<const std::string> words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == limit) return out + "...";
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace bx::harness
