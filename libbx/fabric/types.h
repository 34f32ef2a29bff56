// SPDX-License-Identifier: BSD-3-Clause
// The plain values that cross the provider boundary. They follow verbs (InfiniBand Architecture
// Specification 1.4, chapter 11, and ibv_post_send(3)); names are ours, meanings are theirs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bx::fabric {

enum class LKey : std::uint32_t {};
enum class RKey : std::uint32_t {};
enum class QpNum : std::uint32_t {};  // 24 bits are significant
enum class WrId : std::uint64_t {};   // opaque to a provider, returned in the completion

// One scatter-gather element. Same layout as ibv_sge (asserted by the verbs provider).
struct Sge {
  std::uint64_t addr = 0;  // address in this process
  std::uint32_t length = 0;
  LKey lkey{};
};
static_assert(sizeof(Sge) == 16 && offsetof(Sge, length) == 8 && offsetof(Sge, lkey) == 12);

struct RemoteSpan {
  std::uint64_t addr = 0;
  RKey rkey{};
};

enum class Opcode : std::uint8_t {
  send,
  send_with_imm,
  rdma_write,
  rdma_write_with_imm,
  rdma_read,
  fetch_add,  // 8 bytes at an 8-byte aligned remote address
  cmp_swap,
};
std::string_view to_string(Opcode opcode) noexcept;

enum class SendFlags : std::uint8_t {
  none = 0,
  signaled = 1,  // give a completion; without it the request is retired by the next signalled one
  inlined = 2,  // the payload is copied by post_send: the buffer is free on return, its lkey is not looked at
  fenced = 4,   // do not start before earlier READs and atomics of this QP are complete
  solicited = 8,  // the receive completion it causes counts for a solicited-only arm
};
constexpr SendFlags operator|(SendFlags a, SendFlags b) {
  return static_cast<SendFlags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr SendFlags operator&(SendFlags a, SendFlags b) {
  return static_cast<SendFlags>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
constexpr SendFlags operator~(SendFlags a) {
  return static_cast<SendFlags>(~static_cast<unsigned>(a) & 0xffU);
}
constexpr bool has(SendFlags set, SendFlags flag) {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(flag)) != 0;
}

// A send-queue work request. The SGE array is read during post_send only; the memory it names must stay as it
// is until the completion (or until post_send returns, for inlined).
struct SendWr {
  WrId wr_id{};
  std::span<const Sge> sges{};  // an empty message uses no element: some devices read length 0 as 2^31
  RemoteSpan remote{};          // WRITE, READ and atomics
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint32_t imm = 0;
  Opcode opcode = Opcode::send;
  SendFlags flags = SendFlags::signaled;
};

struct RecvWr {
  WrId wr_id{};
  std::span<const Sge> sges{};
};

// Completion statuses as verbs define them (ibv_poll_cq(3)).
enum class WcStatus : std::uint8_t {
  success,
  local_length,            // a message longer than the posted receive, or than the device allows
  local_qp_operation,      // the queue pair could not carry the request out
  local_protection,        // an lkey that does not cover the SGE, or lacks the permission
  flushed,                 // the queue pair failed before this request was carried out
  remote_invalid_request,  // the responder could not take the message (too long for its receive, unsupported)
  remote_access,           // rkey, bounds or permission fault at the responder
  remote_operation,        // the responder failed while carrying the request out
  retry_exceeded,          // no answer after retry_cnt retransmissions
  rnr_retry_exceeded,      // no receive posted after rnr_retry attempts
  fatal,                   // the device is gone
};
std::string_view to_string(WcStatus status) noexcept;

enum class WcOpcode : std::uint8_t {
  send,
  rdma_write,
  rdma_read,
  fetch_add,
  cmp_swap,
  recv,
  recv_rdma_with_imm
};
std::string_view to_string(WcOpcode opcode) noexcept;

// On any status but success only wr_id, qp and status mean something.
struct Completion {
  WrId wr_id{};
  std::uint32_t byte_len = 0;  // bytes received, or read by a READ
  std::uint32_t imm = 0;
  QpNum qp{};
  WcStatus status = WcStatus::success;
  WcOpcode opcode = WcOpcode::send;
  bool has_imm = false;
};

// What a remote peer may do with a memory region; local read and write are always allowed.
enum class Access : std::uint8_t {
  local = 0,
  remote_read = 1,
  remote_write = 2,
  remote_atomic = 4,
  remote_all = 7
};
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool allows(Access set, Access right) {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(right)) == static_cast<unsigned>(right);
}

using Gid = std::array<std::uint8_t, 16>;  // RoCEv2: an IPv6 address, or ::ffff:a.b.c.d

// Where a queue pair is; exchanged out of band before connect.
struct QpAddress {
  Gid gid{};
  QpNum qp{};
  std::uint32_t psn = 0;  // first packet sequence number it will send, 24 bits

  friend bool operator==(const QpAddress&, const QpAddress&) = default;
};

// How a connected queue pair behaves (the attributes of ibv_modify_qp(3) towards RTR and RTS).
struct PathConfig {
  std::uint32_t mtu_bytes = 4096;        // path MTU: 256, 512, 1024, 2048 or 4096
  std::uint8_t ack_timeout = 14;         // local ACK timeout: 4.096 us * 2^n, n in 1..31; 0 waits for ever
  std::uint8_t retry_cnt = 7;            // retransmissions after a timeout or sequence NAK, 0..7
  std::uint8_t rnr_retry = 7;            // attempts after an RNR NAK, 0..6; 7 is for ever
  std::uint8_t min_rnr_timer = 12;       // RNR NAK timer code we ask our peer to wait, 0..31; 0 is 655.36 ms
  std::uint8_t rd_atomic_max = 16;       // READs and atomics we may have outstanding
  std::uint8_t rd_atomic_dest_max = 16;  // READs and atomics of the peer we can answer at once
  std::uint8_t traffic_class = 0;        // DSCP << 2
};

enum class DeviceEventKind : std::uint8_t {
  cq_overrun,    // `id` names the completion queue; its queue pairs fail
  qp_fatal,      // `id` is the QpNum
  port_error,    // the link is down
  port_active,   // and up again
  device_fatal,  // nothing on this device works any more
};
std::string_view to_string(DeviceEventKind kind) noexcept;

struct DeviceEvent {
  DeviceEventKind kind = DeviceEventKind::device_fatal;
  std::uint32_t id = 0;
};

struct DeviceCaps {
  std::uint64_t message_bytes_max = 0;  // longest message of one work request
  std::uint32_t cq_depth_max = 0;
  std::uint32_t srq_depth_max = 0;
  std::uint32_t send_depth_max = 0;
  std::uint32_t sges_max = 0;       // elements of a send request
  std::uint32_t recv_sges_max = 0;  // elements of a receive request
  std::uint32_t inline_max = 0;     // bytes
  std::uint32_t mtu_max = 0;        // active path MTU, bytes
  std::uint32_t rd_atomic_max = 0;
  bool atomics = false;
  std::uint32_t mrs_max = 0;       // memory regions at once
  std::uint64_t mr_bytes_max = 0;  // of one memory region
  bool pins_memory = false;        // a registration locks its pages, which counts against RLIMIT_MEMLOCK
};

}  // namespace bx::fabric
