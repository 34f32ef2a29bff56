// SPDX-License-Identifier: BSD-3-Clause
// A call at its two ends, and the message each end has to send for it.
#pragma once

#include <bx/session.h>

#include <cstdint>

#include "libbx/base/intrusive_list.h"
#include "libbx/core/slot_table.h"
#include "libbx/fabric/reactor.h"
#include "libbx/wire/message.h"

namespace bx::engine {

class Worker;

// A request or response waiting for credit, slot or window. Embedded in its Call or Served, so there are
// never more of them than calls and requests.
struct Outgoing : ListHook<> {
  wire::MessageKind kind = wire::MessageKind::request;
  std::uint8_t status = 0;
  std::uint32_t session = 0;
  std::uint64_t call = 0;       // the caller's handle
  core::SlotHandle served = 0;  // of a response: the slot to free once it is staged
  Buffer payload;
};

struct OfPeer;  // tags

// The caller's end, from start_call to completion.
struct Call final : ListHook<OfPeer>, fabric::Timer {
  Call(Worker& owner, CallOp& operation, std::uint32_t to_peer)
      : worker(&owner), op(&operation), peer(to_peer) {}
  void on_timer(Instant now) noexcept override;

  Worker* worker;
  CallOp* op;
  std::uint32_t peer;
  core::SlotHandle handle = 0;
  Outgoing outgoing;
  core::SlotHandle request_transfer = 0;   // the request was offered and may still be being read
  core::SlotHandle response_transfer = 0;  // the response is being fetched
};

// The server's end, from the arrival of the request until its response is staged.
struct Served {
  explicit Served(std::uint32_t from_peer) : peer(from_peer) {}
  std::uint32_t peer;
  std::uint32_t session = 0;
  std::uint64_t call = 0;
  bool peer_gone = false;
  Outgoing outgoing;
};

}  // namespace bx::engine
