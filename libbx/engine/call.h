// SPDX-License-Identifier: BSD-3-Clause
// A call at its caller's end, and the messages that wait to be sent for calls at either end.
#pragma once

#include <bx/session.h>

#include <cstdint>
#include <utility>

#include "libbx/base/intrusive_list.h"
#include "libbx/core/slot_table.h"
#include "libbx/fabric/reactor.h"
#include "libbx/wire/message.h"

namespace bx::engine {

class Worker;

// Tags of the lists a call is on: messages that wait to be sent, and calls in progress.
struct Waiting;
struct InProgress;
struct SessionStats;

// A request or response to be sent, or waiting for credit, slot or window. A request is part of its Call; a
// response that has to wait is in a table of the worker's.
struct Outgoing : ListHook<Waiting> {
  Outgoing(const wire::MessageHeader& of_header, Buffer&& of_payload) noexcept
      : header(of_header), payload(std::move(of_payload)) {}
  wire::MessageHeader header;  // what is the message's own
  Buffer payload;
};

// The caller's end, from start_call to completion. On a list of the worker's Deadlines all the while.
struct Call final : Outgoing, ListHook<InProgress>, fabric::Timer {
  Call(Worker& owner, CallOp& operation, std::uint32_t to_peer, std::uint32_t session,
       Buffer&& request) noexcept
      : Outgoing({.kind = wire::MessageKind::request, .session = session}, std::move(request)),
        worker(&owner),
        op(&operation),
        peer(to_peer) {}
  // Its deadline has passed. The timer is armed only for a call that named a deadline (deadlines.h).
  void on_timer(Instant now) noexcept override;

  Worker* worker;
  CallOp* op;
  std::uint32_t peer;
  SessionStats* stats = nullptr;  // of its session
  Instant started{};
  core::SlotHandle request_transfer = 0;   // the request was offered and may still be being read
  core::SlotHandle response_transfer = 0;  // the response is being fetched
};

}  // namespace bx::engine
