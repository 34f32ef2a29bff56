// SPDX-License-Identifier: BSD-3-Clause
// What travels over a lane in one SEND: a fixed header, for some kinds a descriptor, then the eager payload.
//
//   offset  0  version u8, kind u8, flags u8, status u8
//           4  epoch u16, control_ack u16
//           8  credit_grant u32
//          12  session u32
//          16  call u64
//          24  payload_bytes u32
//          28  (descriptor) (payload)
//
// Little endian. Every message carries the latest cumulative credit grant, so that a lost or reordered one is
// healed by the next. A receiver refuses what it does not know: an unknown version, kind or flag ends the
// lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libbx/base/result.h"
#include "libbx/wire/header.h"

namespace bx::wire {

// A payload that waits at its sender. `addr` and `rkey` are void for granted_write.
struct Offer {
  std::uint32_t transfer = 0;  // the sender's id
  std::uint32_t rkey = 0;
  std::uint64_t addr = 0;
  std::uint64_t length = 0;

  friend bool operator==(const Offer&, const Offer&) = default;
};

struct WriteGrant {
  std::uint32_t transfer = 0;  // the sender's id, from the Offer
  std::uint16_t target = 0;    // the receiver's number of it: goes back in the announcement
  std::uint64_t offset = 0;    // into the payload
  std::uint64_t length = 0;
  std::uint64_t addr = 0;  // where to write it
  std::uint32_t rkey = 0;

  friend bool operator==(const WriteGrant&, const WriteGrant&) = default;
};

struct TransferDone {
  std::uint32_t transfer = 0;

  friend bool operator==(const TransferDone&, const TransferDone&) = default;
};

struct Message {
  MessageHeader header;
  Offer offer;                         // request and response with flag offered
  WriteGrant grant;                    // write_grant
  TransferDone done;                   // transfer_done
  std::span<const std::byte> payload;  // into the bytes that were decoded
};

inline constexpr std::size_t kOfferBytes = 24;
inline constexpr std::size_t kWriteGrantBytes = 34;
inline constexpr std::size_t kTransferDoneBytes = 4;
inline constexpr std::size_t kDescriptorBytesMax = kWriteGrantBytes;
// Of a message that offers nothing.
constexpr std::size_t descriptor_bytes(MessageKind kind) noexcept {
  if (kind == MessageKind::write_grant) return kWriteGrantBytes;
  return kind == MessageKind::transfer_done ? kTransferDoneBytes : 0;
}
inline constexpr std::size_t kEnvelopeBytesMax = kHeaderBytes + kDescriptorBytesMax;

// The immediate data of the empty WRITE_WITH_IMM that announces a granted WRITE. It costs a credit as a
// message does, and so it acknowledges pure grants as a message does: without that a side which spends its
// credits on announcements could receive all the pure grants there may be and never allow another.
struct Announcement {
  std::uint16_t target = 0;       // from the WriteGrant
  std::uint16_t control_ack = 0;  // as in MessageHeader

  friend bool operator==(const Announcement&, const Announcement&) = default;
};
constexpr std::uint32_t encode(const Announcement& announcement) noexcept {
  return static_cast<std::uint32_t>(announcement.target) << 16U | announcement.control_ack;
}
constexpr Announcement decode_announcement(std::uint32_t imm) noexcept {
  return {static_cast<std::uint16_t>(imm >> 16U), static_cast<std::uint16_t>(imm)};
}

// Writes everything but the payload; returns its length. `out` holds at least kEnvelopeBytesMax bytes.
std::size_t encode_envelope(const Message& message, std::span<std::byte> out) noexcept;

// The descriptors of these kinds by themselves; `bytes` has descriptor_bytes(kind).
Offer read_offer(std::span<const std::byte> bytes) noexcept;  // kOfferBytes of them
WriteGrant read_write_grant(std::span<const std::byte> bytes) noexcept;
TransferDone read_transfer_done(std::span<const std::byte> bytes) noexcept;

// Of a message alone in its SEND. Errors: protocol (too short, unknown version, kind or flag, payload length
// that is not that of the bytes).
Result<Message> decode(std::span<const std::byte> bytes) noexcept;

// The status byte of a response that failed.
constexpr std::uint8_t status_of(ErrorCode code) noexcept {
  return static_cast<std::uint8_t>(1 + static_cast<unsigned>(code));
}
// And back; a status that no version of ours sends is a protocol error.
constexpr ErrorCode code_of(std::uint8_t status) noexcept {
  return status >= 1 && status <= status_of(kErrorCodeLast) ? static_cast<ErrorCode>(status - 1)
                                                            : ErrorCode::protocol;
}

}  // namespace bx::wire
