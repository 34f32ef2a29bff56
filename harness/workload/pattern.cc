// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/pattern.h"

#include <algorithm>
#include <cstring>

namespace bx::harness {
namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;  // odd: 2^64 words pass before one repeats

// The finaliser of splitmix64: neighbouring calls have nothing in common.
std::uint64_t first_word(PatternOf what, std::uint64_t call) noexcept {
  std::uint64_t z = call * 2 + (what == PatternOf::answer ? 1 : 0) + kStep;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

void put_word(std::span<std::byte> bytes, std::uint64_t word) noexcept {
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(word >> (8 * i));
}

std::uint64_t get_word(std::span<const std::byte> bytes) noexcept {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8; ++i) word |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return word;
}

}  // namespace

void fill_request(const RequestHeader& header, std::span<std::byte> bytes) noexcept {
  put_word(bytes, header.call);
  put_word(bytes.subspan(8), header.answer_bytes);
  fill_pattern(PatternOf::request, header.call, bytes.subspan(kRequestHeaderBytes));
}

std::optional<RequestHeader> read_request_header(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kRequestHeaderBytes) return std::nullopt;
  return RequestHeader{get_word(bytes), get_word(bytes.subspan(8))};
}

void fill_pattern(PatternOf what, std::uint64_t call, std::span<std::byte> bytes) noexcept {
  std::uint64_t word = first_word(what, call);
  std::size_t at = 0;
  for (; at + sizeof word <= bytes.size(); at += sizeof word, word += kStep) {
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  if (at < bytes.size()) std::memcpy(bytes.data() + at, &word, bytes.size() - at);
}

std::optional<std::size_t> find_wrong_byte(PatternOf what, std::uint64_t call,
                                           std::span<const std::byte> bytes) noexcept {
  std::uint64_t word = first_word(what, call);
  std::size_t at = 0;
  for (; at + sizeof word <= bytes.size(); at += sizeof word, word += kStep) {
    std::uint64_t found = 0;
    std::memcpy(&found, bytes.data() + at, sizeof found);
    if (found != word) break;
  }
  // What is left is the wrong word, the last few bytes or nothing.
  std::byte expected[sizeof word];
  std::memcpy(expected, &word, sizeof word);
  const std::size_t length = std::min(sizeof word, bytes.size() - at);
  for (std::size_t i = 0; i < length; ++i) {
    if (bytes[at + i] != expected[i]) return at + i;
  }
  return std::nullopt;
}

}  // namespace bx::harness
