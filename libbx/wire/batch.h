// SPDX-License-Identifier: BSD-3-Clause
// Several small messages to one peer in one SEND: they share a credit, a receive and a completion. The first
// is a message as in message.h but for its flag `followed`; behind it stand others, each at a multiple of 8
// bytes from the start, with zeros before it:
//
//   offset  0  kind u8, status u8, body_bytes u16
//           4  session u32
//           8  call u64
//          16  the payload of a request or a response, the descriptor of a write_grant or a transfer_done
//
// What the header of the first says of epoch, credits and grants holds for all. Offers and pure grants are
// neither followed nor do they follow. The SEND ends where its last message ends, and has at least two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "libbx/base/check.h"
#include "libbx/wire/message.h"

namespace bx::wire {

inline constexpr std::size_t kFollowerBytes = 16;
inline constexpr std::size_t kFollowerAlignment = 8;
inline constexpr std::size_t kFollowerBodyMax = 0xffff;

// A follower takes so many bytes beside its body, at most.
inline constexpr std::size_t kFollowerBytesMax = kFollowerBytes + kFollowerAlignment - 1;

constexpr std::size_t follower_place(std::size_t end) noexcept {
  return (end + kFollowerAlignment - 1) / kFollowerAlignment * kFollowerAlignment;
}

// As it lies on the wire and in memory.
struct FollowerHeader {
  MessageKind kind = MessageKind::request;
  std::uint8_t status = 0;
  std::uint16_t body_bytes = 0;
  std::uint32_t session = 0;
  std::uint64_t call = 0;
};
static_assert(sizeof(FollowerHeader) == kFollowerBytes && offsetof(FollowerHeader, session) == 4 &&
              offsetof(FollowerHeader, call) == 8);

// Whether a message of this header begins a batch; if not, decode() says what it is.
inline bool begins_batch(const MessageHeader& header) noexcept {
  const bool response = header.kind == MessageKind::response;
  return header.version == kVersion && without_asks(header.flags) == MessageFlags::followed &&
         (response || (header.status == 0 &&
                       (header.kind == MessageKind::request || header.kind == MessageKind::write_grant ||
                        header.kind == MessageKind::transfer_done)));
}

// One message, alone in its SEND or of a batch, and where its body lies in it.
struct Item {
  MessageKind kind = MessageKind::request;
  std::uint8_t status = 0;
  std::uint32_t session = 0;
  std::uint64_t call = 0;
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

constexpr Item item_of(const MessageHeader& header) noexcept {
  return {header.kind,
          header.status,
          header.session,
          header.call,
          static_cast<std::uint32_t>(kHeaderBytes),
          header.payload_bytes};
}

// A batch as it lies in a receive. Whoever wrote it may be hostile: nothing is believed, everything is
// checked against the length.
class Batch {
 public:
  // Begins with a header that begins_batch().
  explicit Batch(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(bytes_.size()); }
  // The message at `at`: 0 for the first, else what after() gave. False if there is none that is well-formed.
  [[nodiscard]] bool read(std::uint32_t at, Item& item) const noexcept {
    if (at == 0) return read_first(item);
    if (bytes_.size() < at + kFollowerBytes) return false;
    FollowerHeader header;
    std::memcpy(&header, bytes_.data() + at, kFollowerBytes);
    item = {header.kind,
            header.status,
            header.session,
            header.call,
            static_cast<std::uint32_t>(at + kFollowerBytes),
            header.body_bytes};
    if (item.bytes > bytes_.size() - item.offset) return false;
    if (header.kind == MessageKind::response) return true;
    return header.status == 0 && (header.kind == MessageKind::request || is_descriptor(item));
  }
  // Where the message behind this one is; 0 if this is the last.
  [[nodiscard]] std::uint32_t after(const Item& item) const noexcept {
    const std::size_t end = item.offset + item.bytes;
    return end == bytes_.size() ? 0 : static_cast<std::uint32_t>(follower_place(end));
  }
  [[nodiscard]] std::span<const std::byte> body(const Item& item) const noexcept {
    return bytes_.subspan(item.offset, item.bytes);
  }

 private:
  BX_COLD static bool is_descriptor(const Item& item) noexcept {
    return (item.kind == MessageKind::write_grant || item.kind == MessageKind::transfer_done) &&
           item.bytes == descriptor_bytes(item.kind) && item.session == 0 && item.call == 0;
  }
  bool read_first(Item& item) const noexcept {
    const LoadedHeader loaded(bytes_.data());
    item = item_of(*loaded);
    const std::size_t descriptor = descriptor_bytes(item.kind);
    if (descriptor != 0) {
      if (item.bytes != 0) return false;
      item.bytes = static_cast<std::uint32_t>(descriptor);
    }
    return item.bytes < bytes_.size() - kHeaderBytes;  // something follows
  }

  std::span<const std::byte> bytes_;
};

}  // namespace bx::wire
