// SPDX-License-Identifier: BSD-3-Clause
// One shared queue pair towards a peer, and the poster that feeds it: it stages work requests, rings the bell
// once a turn, counts send-queue slots, and knows what to give back when a completion retires a request.
//
// Invariants: staged + posted requests never exceed the depth; requests retire in post order; every request
// that holds a buffer, window bytes or a READ is signalled, so what it holds comes back without further
// traffic; at least one request in a quarter of the depth, and in half of what data may use of it, is
// signalled, so slots come back.
#pragma once

#include <bx/buffer.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "libbx/base/check.h"
#include "libbx/base/time.h"
#include "libbx/core/slot_table.h"
#include "libbx/engine/wr_id.h"
#include "libbx/fabric/device.h"
#include "libbx/memory/arena.h"
#include "libbx/wire/batch.h"

namespace bx::engine {

// What a send-queue request was for; comes back once when it retires.
struct SendRecord {
  enum class Use : std::uint8_t {
    nothing,  // an inlined message: its slot is all it takes
    message,
    read,
    write,
    put,
    notify,
    drain,
  };
  Use use = Use::message;
  bool signaled = false;
  std::uint32_t session = 0;       // whose window the bytes are in
  std::uint64_t window_bytes = 0;  // to retire from the peer's window; of a READ also what it brought
  core::SlotHandle transfer = 0;   // read: the incoming transfer; write, notify: the outgoing one
  Buffer buffer;                   // the payload the NIC was reading
  Instant posted{};                // where a window goes by the delay
};

class Lane {
 public:
  struct Limits {
    std::uint32_t depth;
    std::uint32_t inline_max;        // bytes the device copies into a request
    std::uint32_t batch_max = 0;     // bytes of a SEND that several messages share
    std::uint32_t control_reserve;   // slots only pure grants may take
    std::uint32_t parts_max = 1;     // of a payload that is gathered
    std::uint32_t first_number = 0;  // of the requests; they are counted modulo 2^32
    std::uint32_t lane = 0;          // which of the peer's
  };
  // Gives the lane another number among those of its peer, before anything was staged.
  void set_number(std::uint32_t peer, std::uint32_t lane) noexcept {
    BX_CHECK(outstanding_ == 0 && posted_ == retired_, "a lane that is in use was numbered anew");
    tag_ = static_cast<std::uint64_t>(encode({WrKind::send, peer, 0, lane}));
  }
  // Header memory of one send-queue slot.
  [[nodiscard]] static std::size_t header_stride(std::uint32_t inline_max, std::uint32_t batch_max) noexcept;
  // Takes header memory from the arena. Errors: exhausted, and those of create_qp.
  static Result<std::unique_ptr<Lane>> create(fabric::Device& device, memory::Arena& arena,
                                              fabric::CompletionQueue& cq, fabric::SharedReceiveQueue& srq,
                                              std::uint32_t peer, const Limits& limits);

  [[nodiscard]] fabric::QueuePair& qp() noexcept { return *qp_; }
  [[nodiscard]] std::uint32_t free_slots() const noexcept { return depth_ - outstanding_; }
  // Slots that anything but a pure grant may take.
  [[nodiscard]] std::uint32_t data_slots() const noexcept {
    return free_slots() > control_reserve_ ? free_slots() - control_reserve_ : 0;
  }
  [[nodiscard]] std::uint32_t inline_max() const noexcept { return inline_max_; }
  // Staged or posted, and not retired.
  [[nodiscard]] std::uint32_t outstanding() const noexcept { return outstanding_; }
  // Handed to the device since the lane was made, modulo 2^32.
  [[nodiscard]] std::uint32_t posted() const noexcept { return posted_; }
  // Nothing posted that still holds something, and nothing staged.
  [[nodiscard]] bool quiet() const noexcept { return holding_ == 0 && staged_count_ == 0; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

  // Where the envelope of the next message belongs: wire::kEnvelopeBytesMax bytes in registered memory.
  [[nodiscard]] std::byte* next_envelope() noexcept { return next_->header(); }
  // A SEND of the envelope written there and of the payload (the record's buffer). A message that fits inline
  // is gathered here and now, so its buffer is free at once and it needs no completion of its own.
  void stage_message(std::size_t envelope_bytes, SendRecord&& record) noexcept;
  // The same, of what is known to fit.
  void stage_inlined(std::size_t envelope_bytes, std::span<const std::byte> payload) noexcept;
  // Whether a message with a body of so many bytes may follow what was staged last: an inlined message, or a
  // batch, and not posted yet.
  [[nodiscard]] bool may_follow(std::size_t body_bytes) const noexcept {
    return wire::kFollowerBytesMax + body_bytes <= room_;
  }
  // Nothing may follow what was staged last.
  void end_batch() noexcept { room_ = 0; }
  // Behind what was staged last, where it may.
  void follow(const wire::FollowerHeader& header, const std::byte* body) noexcept;
  // What the peer takes at most; the lane's own limit is kept if it is less.
  void set_batch_max(std::uint32_t bytes) noexcept { batch_max_ = std::min(batch_max_, bytes); }
  void stage_read(fabric::Sge local, fabric::RemoteSpan remote, SendRecord&& record) noexcept;
  void stage_write(fabric::Sge local, fabric::RemoteSpan remote, SendRecord&& record) noexcept;
  // The zero-byte WRITE_WITH_IMM that announces earlier WRITEs.
  void stage_notify(std::uint32_t imm) noexcept;

  // An empty WRITE: once it retires, all that was sent before has been acknowledged. Takes a slot.
  void stage_fence() noexcept;

  struct Flushed {
    std::uint32_t sends;
    std::uint32_t doorbells;
    bool more;  // the provider took a prefix only: flush again
  };
  Flushed flush() noexcept { return staged_count_ == 0 ? Flushed{0, 0, false} : flush_staged(); }

  // What request `number`, which is outstanding, was for.
  [[nodiscard]] SendRecord::Use use_of(std::uint32_t number) const noexcept {
    const std::size_t from = static_cast<std::size_t>(oldest_ - places_.data()) + (number - retired_);
    return places_[from % places_.size()].record.use;
  }
  // A completion of number `number` arrived: hands every request up to it to `retire`, oldest first. Returns
  // false if there is no such request: the completion is not ours.
  template <class Retire>
  [[nodiscard]] bool on_completion(std::uint32_t number, Retire&& retire) noexcept {
    const std::uint32_t count = number - retired_ + 1;
    if (count == 0 || count > posted_ - retired_) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      // Its place is free before it is retired, for that may stage or fail; nothing of it is read later.
      SendRecord& record = oldest_->record;
      oldest_ = after(oldest_);
      --outstanding_;
      ++retired_;
      if (holds(record)) --holding_;
      retire(std::move(record));
    }
    if (failed_) drain();
    return true;
  }

  // To the error state. What was posted comes back by completions; what was only staged is handed to `retire`
  // now.
  template <class Retire>
  void fail(Retire&& retire) noexcept {
    failed_ = true;
    room_ = 0;
    qp_->fail();
    // Their numbers and places are free again.
    for (; staged_count_ > 0; --staged_count_) {
      next_ = &last_staged();
      --outstanding_;
      if (holds(next_->record)) --holding_;
      retire(std::move(next_->record));
    }
    drain();
  }
  // Of a failed lane: asks for what is still missing. True if the provider did not take it: ask again.
  bool drain() noexcept;

 private:
  Lane(std::uint32_t peer, const Limits& limits);
  Flushed flush_staged() noexcept;
  [[nodiscard]] static bool holds(const SendRecord& record) noexcept {
    return record.use != SendRecord::Use::nothing;
  }
  // What each send-queue slot has of its own until its request retires.
  struct Place {
    SendRecord record;
    std::array<fabric::Sge, 2> sges;  // what the request's elements point into; the first is the header's
    [[nodiscard]] std::byte* header() const noexcept { return reinterpret_cast<std::byte*>(sges[0].addr); }
  };
  void leave_room(std::size_t taken) noexcept {
    room_ = taken < batch_max_ ? batch_max_ - static_cast<std::uint32_t>(taken) : 0;
  }
  [[nodiscard]] Place& last_staged() noexcept { return next_ == places_.data() ? *last_ : *(next_ - 1); }
  [[nodiscard]] Place* after(Place* place) noexcept { return place == last_ ? places_.data() : place + 1; }
  // A request staged in the next place, to be filled in with what is its own: its elements, and where it
  // writes or reads; the rest of it may be left from another. The record holds nothing yet.
  struct Staged {
    fabric::SendWr& request;
    Place& place;
  };
  Staged stage(fabric::Opcode opcode, fabric::SendFlags flags, SendRecord::Use use) noexcept;
  // A request of one element other than a header; the record's from now on.
  void stage_one_sided(fabric::Opcode opcode, fabric::Sge local, fabric::RemoteSpan remote,
                       SendRecord&& record) noexcept;

  void stage_empty_write(fabric::Opcode opcode, std::uint32_t imm, SendRecord::Use use) noexcept;

  std::uint64_t tag_;  // of the lane's work requests; or'ed with their number
  std::uint32_t depth_;
  std::uint32_t inline_max_;
  std::uint32_t batch_max_;
  std::uint32_t control_reserve_;
  std::uint32_t signal_every_;
  std::unique_ptr<fabric::QueuePair> qp_;
  Buffer headers_;                      // an envelope, or a whole inlined message, a place
  std::vector<Place> places_;           // a ring: outstanding_ of them from oldest_ to next_
  std::vector<fabric::SendWr> staged_;  // the newest of them, as they will be posted; room for all
  Place* last_;                         // where the ring turns
  Place* oldest_;
  Place* next_;
  std::uint32_t outstanding_ = 0;
  std::uint32_t staged_count_ = 0;
  std::uint32_t room_ = 0;  // behind what was staged last
  std::uint32_t posted_;    // requests handed to the device: the number of the first staged one
  std::uint32_t retired_;
  std::uint32_t unsignaled_ = 0;  // since the last signalled one
  std::uint32_t holding_ = 0;
  bool failed_ = false;
};

inline Lane::Staged Lane::stage(fabric::Opcode opcode, fabric::SendFlags flags,
                                SendRecord::Use use) noexcept {
  BX_CHECK(outstanding_ < depth_, "a request was staged without a free slot");
  ++outstanding_;
  room_ = 0;
  Place& place = *next_;
  next_ = after(next_);
  place.record.use = use;
  place.record.signaled = false;
  const bool holding = holds(place.record);
  if (holding) ++holding_;
  if (++unsignaled_ >= signal_every_ || holding) {
    unsignaled_ = 0;
    place.record.signaled = true;
    flags = flags | fabric::SendFlags::signaled;
  }
  fabric::SendWr& request = staged_[staged_count_];
  request.wr_id = fabric::WrId{tag_ | (posted_ + staged_count_)};
  request.opcode = opcode;
  request.flags = flags;
  ++staged_count_;
  return {request, place};
}

inline void Lane::stage_inlined(std::size_t envelope_bytes, std::span<const std::byte> payload) noexcept {
  if (!payload.empty()) std::memcpy(next_envelope() + envelope_bytes, payload.data(), payload.size());
  const auto [request, place] =
      stage(fabric::Opcode::send, fabric::SendFlags::inlined, SendRecord::Use::nothing);
  place.sges[0].length = static_cast<std::uint32_t>(envelope_bytes + payload.size());
  request.sges = {place.sges.data(), 1};
  leave_room(envelope_bytes + payload.size());
}

inline void Lane::follow(const wire::FollowerHeader& header, const std::byte* body) noexcept {
  Place& place = last_staged();
  fabric::SendWr& request = staged_[staged_count_ - 1];
  std::uint32_t& length = place.sges[0].length;
  std::byte* const message = place.header();
  message[offsetof(wire::MessageHeader, flags)] |= static_cast<std::byte>(wire::MessageFlags::followed);
  const std::size_t at = wire::follower_place(length);
  std::memset(message + length, 0, wire::kFollowerAlignment);  // also what is written next
  std::memcpy(message + at, &header, wire::kFollowerBytes);
  if (header.body_bytes > 0) std::memcpy(message + at + wire::kFollowerBytes, body, header.body_bytes);
  const std::size_t end = at + wire::kFollowerBytes + header.body_bytes;
  leave_room(end);
  length = static_cast<std::uint32_t>(end);
  if (end > inline_max_) request.flags = request.flags & ~fabric::SendFlags::inlined;
}

}  // namespace bx::engine
