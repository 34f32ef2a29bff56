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
struct Served;

// A request or response waiting for credit, slot or window. Embedded in its Call or Served, so there are
// never more of them than calls and requests.
struct Outgoing : ListHook<> {
  Outgoing(wire::MessageKind of_kind, std::uint32_t of_session, std::uint64_t of_call) noexcept
      : kind(of_kind), session(of_session), call(of_call) {}
  wire::MessageKind kind;
  std::uint8_t status = 0;
  std::uint32_t session;
  core::SlotHandle call;     // the caller's handle
  Served* served = nullptr;  // of a response: what is over once it is staged
  Buffer payload;
};

// The caller's end, from start_call to completion. On a list of the worker's Deadlines all the while.
struct Call final : ListHook<>, fabric::Timer {
  Call(Worker& owner, CallOp& operation, std::uint32_t to_peer, std::uint32_t session)
      : worker(&owner), op(&operation), peer(to_peer), outgoing(wire::MessageKind::request, session, 0) {}
  // Its deadline has passed. The timer is armed only for a call that named a deadline (deadlines.h).
  void on_timer(Instant now) noexcept override;

  Worker* worker;
  CallOp* op;
  std::uint32_t peer;
  Instant due{};                           // unless it named one
  core::SlotHandle request_transfer = 0;   // the request was offered and may still be being read
  core::SlotHandle response_transfer = 0;  // the response is being fetched
  Outgoing outgoing;
};

// The server's end, from the arrival of the request until its response is staged.
struct Served {
  Served(std::uint32_t from_peer, std::uint32_t session, std::uint64_t call)
      : peer(from_peer), outgoing(wire::MessageKind::response, session, call) {
    outgoing.served = this;
  }
  std::uint32_t peer;
  bool peer_gone = false;
  Outgoing outgoing;
};

}  // namespace bx::engine
