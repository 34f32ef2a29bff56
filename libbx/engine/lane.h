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

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/ring.h"
#include "libbx/core/slot_table.h"
#include "libbx/engine/arena.h"
#include "libbx/fabric/device.h"

namespace bx::engine {

// What a send-queue request was for; comes back once when it retires.
struct SendRecord {
  enum class Use : std::uint8_t { message, read, write, notify, drain };
  Use use = Use::message;
  bool signaled = false;
  std::uint64_t window_bytes = 0;    // to retire from the peer's send window
  core::SlotHandle transfer = 0;     // read: the incoming transfer; write, notify: the outgoing one
  std::uint64_t transfer_bytes = 0;  // of it
  Buffer buffer;                     // the payload the NIC was reading
};

class Lane {
 public:
  struct Limits {
    std::uint32_t depth;
    std::uint32_t inline_max;        // bytes the device copies into a request
    std::uint32_t control_reserve;   // slots only pure grants may take
    std::uint32_t first_number = 0;  // of the requests; they are counted modulo 2^32
  };
  // Takes header memory from the arena. Errors: exhausted, and those of create_qp.
  static Result<std::unique_ptr<Lane>> create(fabric::Device& device, Arena& arena,
                                              fabric::CompletionQueue& cq, fabric::SharedReceiveQueue& srq,
                                              std::uint32_t peer, const Limits& limits);

  [[nodiscard]] fabric::QueuePair& qp() noexcept { return *qp_; }
  [[nodiscard]] std::uint32_t free_slots() const noexcept {
    return static_cast<std::uint32_t>(records_.capacity() - records_.size());
  }
  // Slots that anything but a pure grant may take.
  [[nodiscard]] std::uint32_t data_slots() const noexcept {
    return free_slots() > control_reserve_ ? free_slots() - control_reserve_ : 0;
  }
  [[nodiscard]] std::uint32_t inline_max() const noexcept { return inline_max_; }
  [[nodiscard]] std::uint32_t outstanding() const noexcept {
    return static_cast<std::uint32_t>(records_.size());
  }
  // Nothing posted that still holds something, and nothing staged.
  [[nodiscard]] bool quiet() const noexcept { return holding_ == 0 && staged_.empty(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

  // A SEND of envelope and payload (the record's buffer). A message that fits inline is gathered here and
  // now, so its buffer is free at once and it needs no completion of its own.
  void stage_message(std::span<const std::byte> envelope, SendRecord record) noexcept;
  void stage_read(fabric::Sge local, fabric::RemoteSpan remote, SendRecord record) noexcept;
  void stage_write(fabric::Sge local, fabric::RemoteSpan remote, SendRecord record) noexcept;
  // The zero-byte WRITE_WITH_IMM that announces earlier WRITEs.
  void stage_notify(std::uint32_t imm, SendRecord record) noexcept;

  struct Flushed {
    std::uint32_t sends;
    std::uint32_t doorbells;
    bool more;  // the provider took a prefix only: flush again
  };
  Flushed flush() noexcept;

  // A completion of number `number` arrived: hands every request up to it to `retire`, oldest first. Returns
  // false if there is no such request: the completion is not ours.
  template <class Retire>
  [[nodiscard]] bool on_completion(std::uint32_t number, Retire&& retire) noexcept {
    const std::uint32_t count = number - retired_ + 1;
    if (count == 0 || count > posted_ - retired_) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      SendRecord record = records_.pop();
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
    qp_->fail();
    const std::size_t unposted = staged_.size();
    staged_.clear();
    next_ = posted_;  // their numbers and places are free again
    place_ = (place_ + records_.capacity() - unposted) % records_.capacity();
    for (std::size_t i = 0; i < unposted; ++i) {
      SendRecord record = records_.pop_back();
      if (holds(record)) --holding_;
      retire(std::move(record));
    }
    drain();
  }
  // Of a failed lane: asks for what is still missing. True if the provider did not take it: ask again.
  bool drain() noexcept;

 private:
  Lane(std::uint32_t peer, const Limits& limits);
  [[nodiscard]] static bool holds(const SendRecord& record) noexcept {
    return record.use != SendRecord::Use::message || record.window_bytes > 0 || record.buffer.capacity() > 0;
  }
  using Sges = std::array<fabric::Sge, 2>;
  [[nodiscard]] Sges& sges_of_next() noexcept { return sges_[place_]; }
  void stage(fabric::SendWr request, SendRecord record) noexcept;
  [[nodiscard]] std::byte* header_slot() noexcept { return headers_.data() + place_ * stride_; }

  std::uint32_t peer_;
  std::uint32_t inline_max_;
  std::uint32_t control_reserve_;
  std::uint32_t signal_every_;
  std::size_t stride_;  // of headers_: an envelope, or a whole inlined message
  std::unique_ptr<fabric::QueuePair> qp_;
  Buffer headers_;                      // one place per send-queue slot, its own until the request retires
  Ring<SendRecord> records_;            // staged and posted, oldest first
  std::vector<fabric::SendWr> staged_;  // the newest of them, as they will be posted
  std::vector<Sges> sges_;              // per send-queue slot: what a staged request's elements point into
  std::size_t place_ = 0;               // of the next request in headers_ and sges_
  std::uint32_t next_;                  // sequence number of the next request
  std::uint32_t posted_;                // requests handed to the device
  std::uint32_t retired_;
  std::uint32_t unsignaled_ = 0;  // since the last signalled one
  std::uint32_t holding_ = 0;
  bool failed_ = false;
};

}  // namespace bx::engine
