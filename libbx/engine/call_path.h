// SPDX-License-Identifier: BSD-3-Clause
// What an arriving message does to the call it belongs to, whether its payload came along (receiving.cc) or
// was fetched (transfers.cc). Members of Worker, here so that they are inline in both.
#pragma once

#include <utility>

#include "libbx/engine/worker.h"

namespace bx::engine {

inline void Worker::tell(CallOp& op) noexcept {
  op.worker_ = nullptr;
  completed_.push_back(op);
  wake();
}

inline CallOp& Worker::forget(Call& call) noexcept {
  CallOp& op = *call.op;
  if (call.ListHook<Waiting>::linked()) [[unlikely]]
    withdraw(call);
  call.ListHook<InProgress>::unlink();
  calls_.erase(call);  // cancels a deadline of its own
  return op;
}

// A call that this peer may answer.
inline Call* Worker::find_call(const Peer& peer, core::SlotHandle handle) noexcept {
  Call* call = calls_.find(handle);
  return call != nullptr && call->peer == peer.index ? call : nullptr;
}

inline void Worker::on_answer(Call& call, std::uint8_t status, Buffer&& payload) noexcept {
  call.response_transfer = 0;
  // Whoever answers has read the request, or never will.
  if (call.request_transfer != 0) finish_out_transfer(call.request_transfer);
  if (status != 0) [[unlikely]] {
    return complete(call,
                    fail(wire::code_of(status), ErrorScope::operation, "the service refused the request"));
  }
  call.stats->latency.add(now_ - call.started);
  CallOp& op = forget(call);
  op.result_ = std::move(payload);
  tell(op);
}

inline void Worker::hand_over(Peer& peer, std::uint32_t session, std::uint64_t call,
                              Buffer&& payload) noexcept {
  if (wire::is_of_stream(session)) [[unlikely]]
    return on_stream_request(peer, session, call, std::move(payload));
  ServicePlace& place = *peer.service;
  const RequestId id{peer.index, peer.incarnation, session, place.index, call};
  if (++place.serving > place.serving_max) [[unlikely]]
    return refuse_request(id);
  ++peer.stats.requests_served;
  ++work_.handlers;
  place.handler.handle(Request(*this, id, std::move(payload)));
}

}  // namespace bx::engine
