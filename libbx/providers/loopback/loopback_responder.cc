// SPDX-License-Identifier: BSD-3-Clause
// The responder's half of LoopbackQueuePair: what a message does where it arrives. Checks come before
// effects: a refused message changes no memory.
#include <algorithm>
#include <cstring>

#include "libbx/base/check.h"
#include "libbx/providers/loopback/loopback_device.h"
#include "libbx/providers/loopback/loopback_queue_pair.h"

namespace bx::loopback {

using fabric::Access;
using fabric::Opcode;
using fabric::Sge;
using fabric::WcOpcode;
using fabric::WcStatus;

namespace {

std::byte* pointer(const Sge& sge) noexcept {
  return reinterpret_cast<std::byte*>(sge.addr);
}

// Deals contiguous bytes out over the elements, which have room for them. memmove: nothing forbids a message
// within one buffer.
void scatter(std::span<const Sge> to, const std::byte* from, std::uint64_t length) noexcept {
  for (const Sge& sge : to) {
    const std::uint64_t part = std::min<std::uint64_t>(sge.length, length);
    if (part > 0) std::memmove(pointer(sge), from, part);
    from += part;
    length -= part;
  }
}

void gather(std::byte* to, std::span<const Sge> from) noexcept {
  for (const Sge& sge : from) {
    if (sge.length > 0) std::memmove(to, pointer(sge), sge.length);
    to += sge.length;
  }
}

void copy(std::span<const Sge> to, std::span<const Sge> from) noexcept {
  std::size_t element = 0;
  std::uint32_t used = 0;  // of to[element]
  for (const Sge& source : from) {
    for (std::uint32_t done = 0; done < source.length;) {
      while (used == to[element].length) {
        ++element;
        used = 0;
      }
      const std::uint32_t part = std::min(source.length - done, to[element].length - used);
      std::memmove(pointer(to[element]) + used, pointer(source) + done, part);
      done += part;
      used += part;
    }
  }
}

// Whether the keys cover as much of the elements as `length` bytes reach; nobody looks at the rest.
bool covers(const MemoryTable& memory, std::span<const Sge> sges, std::uint64_t length) noexcept {
  for (Sge sge : sges) {
    sge.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(sge.length, length));
    if (sge.length > 0 && memory.local(sge) == nullptr) return false;
    length -= sge.length;
  }
  return true;
}

std::uint64_t total(std::span<const Sge> sges) noexcept {
  std::uint64_t length = 0;
  for (const Sge& sge : sges) length += sge.length;
  return length;
}

}  // namespace

LoopbackQueuePair::Outcome LoopbackQueuePair::respond(LoopbackQueuePair& requester,
                                                      Request& request) noexcept {
  // Packets that do not fit the connection are dropped, and so are those to a queue pair not in RTS.
  const bool connected = peer_ == requester.address_ && requester.peer_ == address_;
  if (state_ != State::ready || !connected) return {Verdict::silent};
  switch (request.opcode) {
    case Opcode::send:
    case Opcode::send_with_imm:
      return respond_send(requester, request);
    case Opcode::rdma_write:
    case Opcode::rdma_write_with_imm:
      return respond_write(requester, request);
    case Opcode::rdma_read:
      return respond_read(requester, request);
    case Opcode::fetch_add:
    case Opcode::cmp_swap:
      return respond_atomic(requester, request);
  }
  return refuse(WcStatus::remote_invalid_request);
}

LoopbackQueuePair::Outcome LoopbackQueuePair::respond_send(LoopbackQueuePair& requester,
                                                           const Request& request) noexcept {
  const std::optional<ConsumedReceive> receive = srq_.consume();
  if (!receive) return {Verdict::not_ready, WcStatus::success, path_.min_rnr_timer};
  if (request.length > total(receive->sges)) {
    complete_receive(receive->wr_id, request, WcStatus::local_length);
    return refuse(WcStatus::remote_invalid_request);
  }
  if (!covers(device_.memory(), receive->sges, request.length)) {
    complete_receive(receive->wr_id, request, WcStatus::local_protection);
    return refuse(WcStatus::remote_operation);
  }
  if (has(request.flags, fabric::SendFlags::inlined)) {
    scatter(receive->sges, requester.inline_of(request), request.length);
  } else {
    copy(receive->sges, requester.sges_of(request));
  }
  complete_receive(receive->wr_id, request, WcStatus::success);
  return {};
}

LoopbackQueuePair::Outcome LoopbackQueuePair::respond_write(LoopbackQueuePair& requester,
                                                            const Request& request) noexcept {
  std::byte* target = nullptr;
  if (request.length > 0) {  // the key of an empty WRITE is not looked at (IBA 1.4, 9.7.4.1.5)
    target = device_.memory().remote(request.remote, request.length, Access::remote_write);
    if (target == nullptr) return refuse(WcStatus::remote_access);
  }
  std::optional<ConsumedReceive> receive;
  if (request.opcode == Opcode::rdma_write_with_imm) {
    receive = srq_.consume();
    if (!receive) return {Verdict::not_ready, WcStatus::success, path_.min_rnr_timer};
  }
  if (has(request.flags, fabric::SendFlags::inlined)) {
    if (request.length > 0) std::memcpy(target, requester.inline_of(request), request.length);
  } else {
    gather(target, requester.sges_of(request));
  }
  if (receive) complete_receive(receive->wr_id, request, WcStatus::success);
  return {};
}

// The bytes move now, while both ends' memory is known to be registered; the requester is told later.
LoopbackQueuePair::Outcome LoopbackQueuePair::respond_read(LoopbackQueuePair& requester,
                                                           const Request& request) noexcept {
  if (requester.atomics_started_ > path_.rd_atomic_dest_max) return refuse(WcStatus::remote_invalid_request);
  if (request.length == 0) return {};
  const std::byte* source = device_.memory().remote(request.remote, request.length, Access::remote_read);
  if (source == nullptr) return refuse(WcStatus::remote_access);
  scatter(requester.sges_of(request), source, request.length);
  return {};
}

LoopbackQueuePair::Outcome LoopbackQueuePair::respond_atomic(LoopbackQueuePair& requester,
                                                             const Request& request) noexcept {
  if (requester.atomics_started_ > path_.rd_atomic_dest_max) return refuse(WcStatus::remote_invalid_request);
  if (request.remote.addr % sizeof(std::uint64_t) != 0) return refuse(WcStatus::remote_invalid_request);
  std::byte* target = device_.memory().remote(request.remote, sizeof(std::uint64_t), Access::remote_atomic);
  if (target == nullptr) return refuse(WcStatus::remote_access);
  std::uint64_t original = 0;
  std::memcpy(&original, target, sizeof(original));
  std::uint64_t updated = original;
  if (request.opcode == Opcode::fetch_add) {
    updated = original + request.compare_add;
  } else if (original == request.compare_add) {
    updated = request.swap;
  }
  std::memcpy(target, &updated, sizeof(updated));
  scatter(requester.sges_of(request), reinterpret_cast<const std::byte*>(&original), sizeof(original));
  return {};
}

// A fault of the message fails this end too, and this end's owner learns of it by an event.
LoopbackQueuePair::Outcome LoopbackQueuePair::refuse(WcStatus status) noexcept {
  device_.raise(fabric::DeviceEventKind::qp_fatal, static_cast<std::uint32_t>(address_.qp));
  enter_error();
  return {Verdict::refused, status};
}

void LoopbackQueuePair::complete_receive(fabric::WrId wr_id, const Request& request,
                                         WcStatus status) noexcept {
  fabric::Completion completion{
      .wr_id = wr_id, .qp = address_.qp, .status = status, .opcode = WcOpcode::recv};
  if (request.opcode == Opcode::rdma_write_with_imm) completion.opcode = WcOpcode::recv_rdma_with_imm;
  if (status == WcStatus::success) {
    completion.byte_len = static_cast<std::uint32_t>(request.length);
    completion.has_imm =
        request.opcode == Opcode::send_with_imm || request.opcode == Opcode::rdma_write_with_imm;
    completion.imm = completion.has_imm ? request.imm : 0;
  }
  recv_cq_.push(completion, 0);
}

}  // namespace bx::loopback
