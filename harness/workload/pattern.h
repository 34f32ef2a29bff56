// SPDX-License-Identifier: GPL-2.0-only
// What the bytes of a message must be: a function of the call and the offset, so that a byte that went
// missing, was swapped with a neighbour or came from another call is noticed. One addition for eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace bx::harness {

// A request begins with the number of its call and the length of the answer it asks for, 64 bits
// little-endian each; the pattern fills the rest.
inline constexpr std::size_t kRequestHeaderBytes = 16;
struct RequestHeader {
  std::uint64_t call = 0;
  std::uint64_t answer_bytes = 0;
};
// Writes header and pattern; at least kRequestHeaderBytes.
void fill_request(const RequestHeader& header, std::span<std::byte> bytes) noexcept;
// Nothing if it is too short to have a header.
std::optional<RequestHeader> read_request_header(std::span<const std::byte> bytes) noexcept;

// Answers and requests of the same call differ.
enum class PatternOf : std::uint8_t { request, answer };

void fill_pattern(PatternOf what, std::uint64_t call, std::span<std::byte> bytes) noexcept;

// Offset of the first wrong byte.
std::optional<std::size_t> find_wrong_byte(PatternOf what, std::uint64_t call,
                                           std::span<const std::byte> bytes) noexcept;

}  // namespace bx::harness
