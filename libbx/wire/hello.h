// SPDX-License-Identifier: BSD-3-Clause
// The connection handshake, over a byte stream. Opener: Hello. Acceptor: Hello (its side) or Reject. Opener:
// Ready, once its queue pair can receive. Each is a frame: length u32, type u8, then fields as
// type-length-value, so that a later version can add fields; an unknown field whose tag has the top bit set
// may be skipped, any other is refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "libbx/base/result.h"

namespace bx::wire {

inline constexpr std::uint32_t kHelloMagic = 0x31584221;  // "!BX1"
inline constexpr std::size_t kFrameBytesMax = 1024;
inline constexpr std::uint32_t kCapabilityBatches = 1;  // several messages in one SEND (batch.h)
// Requests for credit (MessageFlags), and credits beyond those it has from the start (credits_max).
inline constexpr std::uint32_t kCapabilityCreditRequests = 1U << 8U;

// Offers in batches.
inline constexpr std::uint32_t kCapabilityOfferBatches = 1U << 9U;

inline constexpr std::size_t kLanesMax = 8;  // data lanes of a peer

// Where a queue pair beside the first is reached: at the same address.
struct LaneAddress {
  std::uint32_t qp = 0;
  std::uint32_t psn = 0;

  friend bool operator==(const LaneAddress&, const LaneAddress&) = default;
};

// The data lanes beyond the first. An opener lists all it would use, an acceptor those of them that it takes;
// who knows nothing of them leaves them out, and so takes none.
struct MoreLanes {
  std::array<LaneAddress, kLanesMax - 1> at{};
  std::size_t count = 0;

  friend bool operator==(const MoreLanes&, const MoreLanes&) = default;
};

// What one side tells the other of itself.
struct Hello {
  std::uint16_t version = 1;
  std::uint16_t epoch = 0;             // chosen by the opener, repeated by the acceptor
  std::array<std::uint8_t, 16> gid{};  // of the lane's queue pair
  std::uint32_t qp = 0;
  std::uint32_t psn = 0;
  std::uint32_t mtu_bytes = 0;      // the largest it takes; the smaller of both is used
  std::uint32_t credits = 0;        // receives posted for the peer from the start
  std::uint32_t control_slots = 0;  // and, beyond those, for pure grants
  std::uint32_t receive_bytes = 0;  // size of each: header, descriptor and eager payload
  std::uint32_t reads_max = 0;      // READs it answers at once on a lane
  std::uint32_t capabilities = 0;   // bits kCapability...: what it can take
  std::uint32_t instance = 0;       // tells the worker from those before it; may be left out, which is 0
  std::uint32_t credits_max =
      0;                       // receives it may ever have for the peer; may be left out: as many as credits
  std::uint32_t weight = 1;    // of it at receivers that divide their window; may be left out, which is 1
  MoreLanes more_lanes{};      // may be left out
  LaneAddress control_lane{};  // qp 0: none; may be left out

  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class RejectReason : std::uint8_t {
  peers_exhausted = 1,
  memory_exhausted = 2,
  version = 3,
  incompatible = 4
};

// Why not, and the value that would have been accepted.
struct Reject {
  RejectReason reason = RejectReason::incompatible;
  std::uint32_t supported = 0;

  friend bool operator==(const Reject&, const Reject&) = default;
};

struct Ready {
  friend bool operator==(const Ready&, const Ready&) = default;
};

using HandshakeFrame = std::variant<Hello, Reject, Ready>;

std::vector<std::byte> encode_frame(const HandshakeFrame& frame);

// Takes bytes as they come and gives frames back. Errors: protocol (wrong magic, oversized or malformed
// frame, unknown mandatory field, a field twice or missing). After an error it stays failed.
class FrameParser {
 public:
  void feed(std::span<const std::byte> bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }
  // The next whole frame, nothing if more bytes are needed.
  Result<std::optional<HandshakeFrame>> next();

 private:
  std::vector<std::byte> buffer_;
};

}  // namespace bx::wire
