// SPDX-License-Identifier: BSD-3-Clause
// Several small messages to one peer in one SEND: they share a credit, a receive and a completion. The first
// is a message as in message.h but for its flag `followed`; behind it stand others, each at a multiple of 8
// bytes from the start, with zeros before it:
//
//   offset  0  kind u8, status u8, body_bytes u16
//           4  session u32
//           8  call u64
//          16  the payload of a request or a response, or the descriptor of an offer, a write_grant or a
//              transfer_done
//
// The kind of an offer is that of its message with the flags of the offer above it (offering()). What the
// header of the first says of epoch, credits and grants holds for all. Pure grants are neither followed nor
// do they follow; offers only to a peer that says it takes them so (kCapabilityOfferBatches). The SEND ends
// where its last message ends, and has at least two.
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

// The kind of an item that offers its payload.
constexpr MessageKind offering(MessageKind kind, MessageFlags offer) noexcept {
  return static_cast<MessageKind>(static_cast<unsigned>(offer) << 4U | static_cast<unsigned>(kind));
}
constexpr MessageKind kind_of(MessageKind item) noexcept {
  return static_cast<MessageKind>(static_cast<unsigned>(item) & 0xfU);
}
constexpr MessageFlags offer_of(MessageKind item) noexcept {
  return static_cast<MessageFlags>(static_cast<unsigned>(item) >> 4U);
}
constexpr bool is_offer(MessageFlags flags) noexcept {
  return flags == MessageFlags::offered || flags == (MessageFlags::offered | MessageFlags::granted_write);
}
constexpr bool is_offering(MessageKind item) noexcept {
  return (kind_of(item) == MessageKind::request || kind_of(item) == MessageKind::response) &&
         is_offer(offer_of(item));
}

// Whether a message of this header begins a batch, other than by an offer; if not, decode() says what it is.
inline bool begins_batch(const MessageHeader& header) noexcept {
  const bool response = header.kind == MessageKind::response;
  return header.version == kVersion && without_asks(header.flags) == MessageFlags::followed &&
         (response || (header.status == 0 &&
                       (header.kind == MessageKind::request || header.kind == MessageKind::write_grant ||
                        header.kind == MessageKind::transfer_done)));
}

// Whether an offer of this header begins a batch.
inline bool begins_batch_by_offer(const MessageHeader& header) noexcept {
  const auto flags = static_cast<unsigned>(without_asks(header.flags));
  constexpr auto kFollowed = static_cast<unsigned>(MessageFlags::followed);
  return header.version == kVersion && (flags & kFollowed) != 0 &&
         is_offer(static_cast<MessageFlags>(flags & ~kFollowed)) &&
         (header.kind == MessageKind::response ||
          (header.kind == MessageKind::request && header.status == 0));
}

// One message, alone in its SEND or of a batch, and where its body lies in it.
struct Item {
  MessageKind kind = MessageKind::request;  // or offering()
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
  // Begins with a header that begins_batch() or begins_batch_by_offer().
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
    if (header.kind == MessageKind::request) return header.status == 0;
    return is_descriptor(item);
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
  BX_COLD bool is_descriptor(const Item& item) const noexcept {
    if (is_offering(item.kind)) {
      return (item.status == 0 || kind_of(item.kind) == MessageKind::response) && item.bytes == kOfferBytes &&
             read_offer(body(item)).length > 0;
    }
    return (item.kind == MessageKind::write_grant || item.kind == MessageKind::transfer_done) &&
           item.bytes == descriptor_bytes(item.kind) && item.status == 0 && item.session == 0 &&
           item.call == 0;
  }
  // Begins with a descriptor, that of an offer or another.
  BX_COLD bool read_first_descriptor(const MessageHeader& header, Item& item) const noexcept {
    if (has(header.flags, MessageFlags::offered)) {
      item.kind = offering(header.kind, static_cast<MessageFlags>(static_cast<unsigned>(header.flags) & 3U));
    }
    const std::size_t descriptor = is_offering(item.kind) ? kOfferBytes : descriptor_bytes(item.kind);
    if (item.bytes != 0 || bytes_.size() <= kHeaderBytes + descriptor) return false;  // something follows
    item.bytes = static_cast<std::uint32_t>(descriptor);
    return !is_offering(item.kind) || is_descriptor(item);
  }
  bool read_first(Item& item) const noexcept {
    // Of the kinds that begin a batch only those of a descriptor have bit 2 set; kind and flags at once.
    constexpr auto kDescriptor =
        static_cast<std::uint16_t>(4U | static_cast<unsigned>(MessageFlags::offered) << 8U);
    std::uint16_t kind_and_flags = 0;
    std::memcpy(&kind_and_flags, bytes_.data() + offsetof(MessageHeader, kind), sizeof kind_and_flags);
    const LoadedHeader loaded(bytes_.data());
    item = item_of(*loaded);
    if ((kind_and_flags & kDescriptor) != 0) [[unlikely]]
      return read_first_descriptor(*loaded, item);
    return item.bytes < bytes_.size() - kHeaderBytes;  // something follows
  }

  std::span<const std::byte> bytes_;
};

// The message of an item that is_offering(), as if it had come alone.
inline Message offer_message(const Batch& batch, const Item& item) noexcept {
  Message message;
  message.header.kind = kind_of(item.kind);
  message.header.flags = offer_of(item.kind);
  message.header.status = item.status;
  message.header.session = item.session;
  message.header.call = item.call;
  message.offer = read_offer(batch.body(item));
  return message;
}

}  // namespace bx::wire
