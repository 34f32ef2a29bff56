// SPDX-License-Identifier: BSD-3-Clause
// A rendezvous transfer at its two ends. The receiver drives it: it READs the payload, or grants WRITEs, one
// chunk at a time under its window, and says when it is done; only then is the sender's memory the sender's
// again.
#pragma once

#include <bx/buffer.h>

#include <cstdint>

#include "libbx/base/intrusive_list.h"
#include "libbx/base/time.h"
#include "libbx/core/chunk_cursor.h"
#include "libbx/core/slot_table.h"
#include "libbx/wire/message.h"

namespace bx::engine {

// How the bytes move, seen from the end that drives it.
enum class TransferWay : std::uint8_t {
  pull,     // offered: READ, and its end told
  granted,  // offered: the other side WRITEs what it is granted, and is told the end
  get,      // exposed memory is READ; the other side is told nothing
  put,      // exposed memory is WRITTEN, likewise
};

// At the receiver, and of put and get at their caller. On one list at a time: the worker's `active` or
// `puts`, or its peer's `asking` (chunks left to ask for), or `starved` (waiting for memory), or the peer's
// `done` (waiting to tell the sender); on none while the last chunks are outstanding.
struct InTransfer : ListHook<> {
  InTransfer(std::uint32_t from_peer, const wire::Message& message)
      : peer(from_peer),
        header(message.header),
        offer(message.offer),
        way(has(message.header.flags, wire::MessageFlags::granted_write) ? TransferWay::granted
                                                                         : TransferWay::pull) {}
  std::uint32_t peer;
  wire::MessageHeader header;  // of the message that offered the payload
  wire::Offer offer;
  core::SlotHandle handle = 0;
  TransferWay way;
  bool answered = false;  // a request that was refused
  core::ChunkCursor cursor;
  Buffer buffer;

  [[nodiscard]] bool by_write() const noexcept { return way == TransferWay::granted; }
  [[nodiscard]] bool one_sided() const noexcept { return way == TransferWay::get || way == TransferWay::put; }
};

// At the sender.
struct OutTransfer {
  std::uint32_t peer = 0;
  std::uint32_t session = 0;
  std::uint32_t lane = 0;                               // of the peer's: that of its session
  wire::MessageKind kind = wire::MessageKind::request;  // of the message that offered it
  Buffer payload;
  std::uint64_t granted = 0;  // bytes the receiver asked for by write
  std::uint32_t writes_outstanding = 0;
  bool finished = false;  // the receiver is done with it; erased when no WRITE is outstanding
};

// A part the receiver granted and the sender has not announced yet; announced in the order granted.
struct GrantedChunk {
  core::SlotHandle transfer = 0;
  std::uint64_t length = 0;
  std::uint16_t number = 0;  // what announces it: counted modulo 2^16, few are outstanding
  Instant granted{};         // where the window goes by the delay
};

}  // namespace bx::engine
