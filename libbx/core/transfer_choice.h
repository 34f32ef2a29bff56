// SPDX-License-Identifier: BSD-3-Clause
// How a payload travels, by its size: inside the work request, into a posted receive, or by rendezvous.
#pragma once

#include <cstdint>

namespace bx::core {

enum class Transfer : std::uint8_t {
  inlined,        // header and payload copied into the work request
  eager,          // header from a slot, payload gathered from the application's buffer, into a posted receive
  pull,           // offered; the receiver READs it
  granted_write,  // offered; the sender WRITEs where the receiver grants
};

struct TransferLimits {
  std::uint64_t header_bytes;  // of a message without descriptor
  std::uint64_t inline_max;    // whole message
  std::uint64_t eager_max;     // payload that fits the peer's receive
  bool prefer_granted_write;
};

constexpr Transfer choose_transfer(std::uint64_t payload_bytes, const TransferLimits& limits) noexcept {
  if (payload_bytes <= limits.eager_max) {
    return limits.header_bytes + payload_bytes <= limits.inline_max ? Transfer::inlined : Transfer::eager;
  }
  return limits.prefer_granted_write ? Transfer::granted_write : Transfer::pull;
}

}  // namespace bx::core
