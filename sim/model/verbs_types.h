// SPDX-License-Identifier: GPL-2.0-only
// The plain values that cross the NIC's verbs interface: what software posts and what it polls. Meanings are
// those of IBA 1.4, chapter 11, and of ibv_post_send(3) and ibv_poll_cq(3).
#pragma once

#include <cstdint>
#include <span>

#include "sim/model/units.h"

namespace bx::sim {

enum class RequestOpcode : std::uint8_t {
  send,
  send_with_imm,
  write,
  write_with_imm,
  read,
  fetch_add,
  cmp_swap,
  send_with_inv,     // invalidates `rkey` at the peer before the receive completes
  local_invalidate,  // invalidates `rkey`, a key of ours, when all that was posted before is complete
};
constexpr bool is_atomic(RequestOpcode opcode) noexcept {
  return opcode == RequestOpcode::fetch_add || opcode == RequestOpcode::cmp_swap;
}
// READs and atomics: the requests that are answered by data.
constexpr bool returns_data(RequestOpcode opcode) noexcept {
  return opcode >= RequestOpcode::read && opcode <= RequestOpcode::cmp_swap;
}

inline constexpr std::uint32_t kAtomicBytes = 8;
// The number of a NIC's first queue pair: 0 and 1 are special (IBA 1.4, 3.5.10).
inline constexpr std::uint32_t kFirstQp = 2;

// A piece of local memory.
struct Segment {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t key = 0;
};

struct SendRequest {
  std::uint64_t id = 0;
  std::span<const Segment> segments{};
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  RequestOpcode opcode = RequestOpcode::send;
  bool signaled = true;
  bool inlined = false;
  bool fenced = false;
  bool solicited = false;
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  std::span<const Segment> segments{};
};

enum class CompletionStatus : std::uint8_t {
  success,
  local_length,
  local_qp_operation,
  local_protection,
  flushed,
  remote_invalid_request,
  remote_access,
  remote_operation,
  retry_exceeded,
  rnr_retry_exceeded,
  fatal,
  memory_management,  // a key that cannot be invalidated (IBV_WC_MW_BIND_ERR)
};

enum class CompletionOpcode : std::uint8_t {
  send,
  write,
  read,
  fetch_add,
  cmp_swap,
  recv,
  recv_write_imm,
  local_invalidate,
};

struct WorkCompletion {
  std::uint64_t id = 0;
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;  // with has_inv: the key that the peer's SEND invalidated
  std::uint32_t qp = 0;
  CompletionStatus status = CompletionStatus::success;
  CompletionOpcode opcode = CompletionOpcode::send;
  bool has_imm = false;
  bool has_inv = false;
  bool solicited = false;
};

// In the order of enum ibv_qp_state. sq_error is there for the table's sake: no RC queue pair gets into it.
enum class QpState : std::uint8_t {
  reset,
  init,
  ready_to_receive,
  ready_to_send,
  sq_drain,
  sq_error,
  error,
};

// The attributes of ibv_modify_qp(3) towards RTR and RTS, and of its address vector.
struct RcPath {
  std::uint16_t peer_host = 0;
  std::uint32_t peer_qp = 0;
  std::uint32_t send_psn = 0;     // first PSN we send
  std::uint32_t receive_psn = 0;  // first PSN the peer sends
  std::uint32_t mtu = 4096;       // 256, 512, 1024, 2048 or 4096
  std::uint8_t ack_timeout = 14;  // ack_wait(); 0 waits for ever
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;            // 7 is for ever
  std::uint8_t min_rnr_timer = 12;       // rnr_wait() that we ask of the peer
  std::uint8_t rd_atomic_max = 16;       // READs and atomics we may have outstanding
  std::uint8_t rd_atomic_dest_max = 16;  // those of the peer that we can answer at once
  std::uint8_t traffic_class = 0;        // DSCP << 2; its top three bits are the priority
};

// AETH syndromes (IBA 1.4, 9.7.5.2.1). The low five bits: credits of an ACK, timer of an RNR NAK, NAK code.
inline constexpr std::uint8_t kSyndromeAck = 0x1f;  // end-to-end credits are not used (an SRQ has none)
inline constexpr std::uint8_t kSyndromeRnrNak = 0x20;
inline constexpr std::uint8_t kSyndromeSequenceNak = 0x60;
inline constexpr std::uint8_t kSyndromeInvalidRequest = 0x61;
inline constexpr std::uint8_t kSyndromeRemoteAccess = 0x62;
inline constexpr std::uint8_t kSyndromeRemoteOperation = 0x63;
inline constexpr std::uint8_t kSyndromeKindMask = 0x60;
inline constexpr std::uint8_t kSyndromeValueMask = 0x1f;

}  // namespace bx::sim
