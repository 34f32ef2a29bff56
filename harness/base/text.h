// SPDX-License-Identifier: GPL-2.0-only
// Small text tools behind error messages.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bx::harness {

// Levenshtein distance with adjacent transpositions counted as one step.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, if it is near enough to be a likely misspelling (a third of its length).
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'x'?" or nothing, to be put after a message about an unknown word.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// Offset of the first byte that is not UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// "a, b, c"
std::string join(std::span<const std::string> words, std::string_view separator = ", ");

// The text with control characters written as \xNN and cut after `limit` bytes: safe to print.
std::string printable(std::string_view text, std::size_t limit = 60);

}  // namespace bx::harness
