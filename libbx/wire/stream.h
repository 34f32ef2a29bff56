// SPDX-License-Identifier: BSD-3-Clause
// Streams are made of calls: one that opens it, and one for each part. Which it is stands in the two highest
// bits of the header's session; a request of neither is an ordinary one. Only a peer that said so in the
// handshake (kCapabilityStreams) is sent them.
//
//   open    request: what the caller has to say    answer: the stream's number, u64
//   pull    request: a StreamPull                  answer: a part; an empty one is the end
//   cancel  request: a StreamPull                  answer: nothing
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace bx::wire {

inline constexpr std::uint32_t kCapabilityStreams = 2;
inline constexpr std::uint32_t kStreamOpenBit = 0x8000'0000;
inline constexpr std::uint32_t kStreamPullBit = 0x4000'0000;

constexpr bool is_of_stream(std::uint32_t session) noexcept {
  return session >= kStreamPullBit;
}
constexpr bool opens_stream(std::uint32_t session) noexcept {
  return (session & kStreamOpenBit) != 0;
}

enum class StreamAsk : std::uint32_t { part = 0, cancel = 1 };

struct StreamPull {
  std::uint64_t stream = 0;
  std::uint32_t number = 0;  // of the part asked for, from 0, modulo 2^32
  StreamAsk ask = StreamAsk::part;
};
inline constexpr std::size_t kStreamPullBytes = 16;
inline constexpr std::size_t kStreamNumberBytes = 8;
static_assert(sizeof(StreamPull) == kStreamPullBytes);

// False if the bytes are not a StreamPull.
inline bool read_pull(std::span<const std::byte> bytes, StreamPull& pull) noexcept {
  if (bytes.size() != kStreamPullBytes) return false;
  std::uint32_t ask = 0;
  std::memcpy(&pull.stream, bytes.data(), 8);
  std::memcpy(&pull.number, bytes.data() + 8, 4);
  std::memcpy(&ask, bytes.data() + 12, 4);
  pull.ask = static_cast<StreamAsk>(ask);
  return ask <= static_cast<std::uint32_t>(StreamAsk::cancel);
}
inline void write_pull(const StreamPull& pull, std::span<std::byte> out) noexcept {
  std::memcpy(out.data(), &pull, kStreamPullBytes);
}

}  // namespace bx::wire
