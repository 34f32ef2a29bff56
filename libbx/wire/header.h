// SPDX-License-Identifier: BSD-3-Clause
// The fixed header of a message; message.h says where it stands. In memory it lies as it does on the wire, so
// that reading or writing it is one bounds check and one copy of 28 bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace bx::wire {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 28;

enum class MessageKind : std::uint8_t {
  request = 1,       // a call, its payload eager or offered
  response = 2,      // its answer, likewise
  credit_grant = 3,  // nothing but the header; goes into a control receive and costs no credit
  write_grant = 4,   // receiver -> sender: write this part of your offered payload here
  transfer_done =
      5,  // receiver -> sender: the offered payload is pulled (or not wanted): its memory is yours
};

enum class MessageFlags : std::uint8_t {
  none = 0,
  offered = 1,        // the payload is not here but offered: an Offer follows
  granted_write = 2,  // with offered: ask for WRITE grants instead of pulling
  followed = 4,       // others stand behind it in the same SEND (batch.h)
  asks_soon = 8,      // the sender is running out of credits and has more to send (core/credits.h, soft)
  asks_now = 16,      // the same, hard
};
// Beside any others, and only to a peer that takes them.
inline constexpr auto kAsks = static_cast<MessageFlags>(8 | 16);
constexpr bool has(MessageFlags set, MessageFlags flag) {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(flag)) != 0;
}
constexpr MessageFlags without_asks(MessageFlags set) {
  return static_cast<MessageFlags>(static_cast<unsigned>(set) & ~static_cast<unsigned>(kAsks));
}
constexpr MessageFlags operator|(MessageFlags a, MessageFlags b) {
  return static_cast<MessageFlags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

struct MessageHeader {
  std::uint8_t version = kVersion;
  MessageKind kind = MessageKind::credit_grant;
  MessageFlags flags = MessageFlags::none;
  std::uint8_t status = 0;         // of a response: 0 for success, else 1 + ErrorCode
  std::uint16_t epoch = 0;         // generation of the connection; another one is void
  std::uint16_t control_ack = 0;   // pure grants received so far, modulo 2^16
  std::uint32_t credit_grant = 0;  // receives ever posted for you, modulo 2^32
  std::uint32_t session = 0;
  std::uint64_t call = 0;  // the caller's id of the call
  std::uint32_t payload_bytes = 0;

  friend bool operator==(const MessageHeader&, const MessageHeader&) = default;
};
static_assert(offsetof(MessageHeader, epoch) == 4 && offsetof(MessageHeader, credit_grant) == 8 &&
              offsetof(MessageHeader, call) == 16 && offsetof(MessageHeader, payload_bytes) == 24);
static_assert(std::endian::native == std::endian::little, "headers are copied as they lie in memory");

// `out` has kHeaderBytes.
inline void store_header(const MessageHeader& header, std::byte* out) noexcept {
  std::memcpy(out, &header, kHeaderBytes);
}
// The copy of a header that lies at `in`, for the bytes there may change; nothing is checked.
class LoadedHeader {
 public:
  explicit LoadedHeader(const std::byte* in) noexcept { std::memcpy(bytes_.data(), in, kHeaderBytes); }
  [[nodiscard]] const MessageHeader& operator*() const noexcept {
    return *std::launder(reinterpret_cast<const MessageHeader*>(bytes_.data()));  // the copy made it one
  }

 private:
  alignas(MessageHeader) std::array<std::byte, sizeof(MessageHeader)> bytes_;
};

// Whether a message of so many bytes is a well-formed request or response that brings its payload along,
// which is what most are. If not, decode() (message.h) says what it is, or what is wrong with it.
inline bool is_eager(const MessageHeader& header, std::size_t message_bytes) noexcept {
  // Version, kind, flags and status at once; a response may have any status.
  constexpr std::uint32_t kRequest = kVersion | static_cast<std::uint32_t>(MessageKind::request) << 8U;
  constexpr std::uint32_t kResponse = kVersion | static_cast<std::uint32_t>(MessageKind::response) << 8U;
  std::uint32_t first = 0;
  std::memcpy(&first, &header, sizeof first);
  first &= ~(static_cast<std::uint32_t>(kAsks) << 16U);
  return (first == kRequest || (first & 0xffffffU) == kResponse) &&
         header.payload_bytes == message_bytes - kHeaderBytes;
}

}  // namespace bx::wire
