// SPDX-License-Identifier: GPL-2.0-only
// One frame on the wire: a plain struct from a pool, moved by pointer from NIC to switch to NIC. Fields carry
// what the headers of a RoCEv2 packet or a PFC frame carry; nothing is serialised on the fast path. A frame
// of another network stack (FrameKind::ip) has a rider instead, which keeps that stack's own form of the
// packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "libbx/base/check.h"
#include "sim/model/page_arena.h"
#include "sim/model/page_array.h"
#include "sim/model/units.h"

namespace bx::sim {

enum class FrameKind : std::uint8_t { roce, pfc, ip };
enum class Ecn : std::uint8_t { not_capable = 0, capable = 2, congestion_experienced = 3 };

// IBA 1.4, 9.2.1: opcodes of the reliable connection (top three bits zero), and the RoCEv2 CNP.
enum class BthOpcode : std::uint8_t {
  send_first = 0,
  send_middle = 1,
  send_last = 2,
  send_last_imm = 3,
  send_only = 4,
  send_only_imm = 5,
  write_first = 6,
  write_middle = 7,
  write_last = 8,
  write_last_imm = 9,
  write_only = 10,
  write_only_imm = 11,
  read_request = 12,
  read_response_first = 13,
  read_response_middle = 14,
  read_response_last = 15,
  read_response_only = 16,
  acknowledge = 17,
  atomic_acknowledge = 18,
  cmp_swap = 19,
  fetch_add = 20,
  send_last_inv = 22,
  send_only_inv = 23,
  cnp = 129,
};

inline constexpr std::size_t kPayloadMax = 4096;  // the largest path MTU

struct Payload {
  std::array<std::byte, kPayloadMax> bytes;
};

// What a frame of kind `ip` carries from one end of the network to the other. Reached only where such frames
// are made, taken, captured and freed.
class FrameRider {
 public:
  // The frame is done with it.
  virtual void release() noexcept = 0;
  // Writes the frame's bytes as captures have them, from the first of the Ethernet header, with `ecn` in the
  // IP header. Returns their number; those that do not fit are left out.
  virtual std::size_t write(std::span<std::byte> out, Ecn ecn) const = 0;

 protected:
  ~FrameRider() = default;
};

// What every hop looks at comes first and fills one cache line; the rest fills the second.
struct alignas(64) Frame {
  Frame* next = nullptr;  // link of whatever queue or free list the frame is on
  union {
    Payload* payload = nullptr;  // null when payload_bytes is 0 (or in a lengths-only run)
    FrameRider* rider;           // of kind `ip`, instead
  };

  std::uint32_t wire_bytes = 0;     // everything, preamble and gap included: what serialisation counts
  std::uint32_t payload_bytes = 0;  // kind ip: of the IP packet, its header included
  std::uint16_t src_host = 0;       // index of the host; its IPv4 address follows from it
  std::uint16_t dst_host = 0;
  std::uint16_t udp_src_port = 0;  // entropy for ECMP
  std::uint16_t ingress_port = 0;  // bookkeeping of the switch that holds the frame, or that it comes to
  FrameKind kind = FrameKind::roce;
  std::uint8_t priority = 0;  // 0..7, from DSCP
  std::uint8_t dscp = 0;      // 0..63
  Ecn ecn = Ecn::not_capable;

  // BTH
  BthOpcode opcode = BthOpcode::send_only;
  bool solicited = false;
  bool ack_req = false;
  std::uint32_t dst_qp = 0;
  std::uint32_t psn = 0;  // 24 bits; kind ip: counts what its source has sent
  // RETH, AtomicETH; rkey also IETH
  std::uint32_t rkey = 0;
  std::uint32_t src_qp = 0;  // bookkeeping of the NIC that sends, not on the wire
  std::uint64_t va = 0;
  std::uint32_t dma_length = 0;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;
  // AETH, AtomicAckETH
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;
  std::uint64_t atomic_original = 0;
  // ImmDt
  std::uint32_t imm = 0;
  // PFC: bit p of pfc_enable says that pfc_quanta[p] is valid (a quantum is 512 bit times; 0 is XON)
  std::uint8_t pfc_enable = 0;
  std::array<std::uint16_t, kPriorities> pfc_quanta{};
};
static_assert(sizeof(Frame) == 128);
static_assert(std::is_trivially_copyable_v<Frame>);

// Free lists of frames and payloads; grows in slabs, never shrinks. One per simulation.
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  Frame* make() {  // all fields as initialised above
    if (free_frames_ == nullptr) add_frames();
    Frame* frame = free_frames_;
    free_frames_ = frame->next;
    __builtin_prefetch(free_frames_, 1);  // whoever comes next
    std::memcpy(frame, &kFresh, sizeof kFresh);
    ++in_use_;
    return frame;
  }
  Payload* make_payload() {  // contents undefined
    if (free_payloads_ == nullptr) add_payloads();
    PayloadSlot* slot = free_payloads_;
    free_payloads_ = slot->next;
    return new (&slot->payload) Payload;  // starts its lifetime; writes nothing
  }
  void free(Frame* frame) noexcept {  // with its payload or rider
    BX_CHECK(in_use_ > 0, "more frames freed than made");
    if (frame->payload != nullptr) free_contents(*frame);
    frame->next = free_frames_;
    free_frames_ = frame;
    --in_use_;
  }
  void free_payload(Payload* payload) noexcept {  // one that no frame has
    // A payload lives at the address of its slot, as every member of a union does.
    auto* slot = reinterpret_cast<PayloadSlot*>(payload);
    slot->next = free_payloads_;
    free_payloads_ = slot;
  }
  // Grows until this many of each exist, so that a run within them allocates nothing.
  void reserve(std::size_t frames, std::size_t payloads);
  // For what frames pass through: as long as the pool is.
  [[nodiscard]] PageArena& arena() noexcept { return arena_; }
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }
  // Those of frames included. Walks the free list, so that making one costs no count.
  [[nodiscard]] std::size_t payloads_in_use() const noexcept;

 private:
  static const Frame kFresh;
  void add_frames();
  void add_payloads();
  void free_contents(Frame& frame) noexcept;  // it has some

  union PayloadSlot {
    PayloadSlot* next;
    Payload payload;
  };
  static constexpr std::size_t kSlab = 256;  // the first one, and each of payloads
  static constexpr std::size_t kSlabMax = kHugePageBytes / sizeof(Frame);  // grows to this
  Frame* free_frames_ = nullptr;
  PayloadSlot* free_payloads_ = nullptr;
  std::size_t in_use_ = 0;
  std::size_t frames_ = 0;
  std::vector<PageArray<Frame>> frame_slabs_;
  PageArena arena_;
  std::vector<std::unique_ptr<PayloadSlot[]>> payload_slabs_;
};

// A FIFO of frames through Frame::next.
class FrameQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] Frame* front() const noexcept { return head_; }
  [[nodiscard]] Frame* back() const noexcept { return tail_; }  // of one that is not empty
  void push(Frame* frame) noexcept {
    frame->next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = frame;
    tail_ = frame;
  }
  Frame* pop() noexcept {
    Frame* frame = head_;
    head_ = frame->next;
    frame->next = nullptr;
    return frame;
  }

 private:
  Frame* head_ = nullptr;
  Frame* tail_ = nullptr;
};

}  // namespace bx::sim
