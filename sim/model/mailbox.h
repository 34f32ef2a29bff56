// SPDX-License-Identifier: GPL-2.0-only
// The frames on their way from one partition to another. Whole copies, so that each partition's pool is
// touched by the thread that runs it and by no other.
//
// Time goes by in windows. What is sent in one is taken in the next, and given back in the one after that; so
// there are two lists, and each is written in every other window:
//
//   window      w            w+1            w+2
//   sender      send()       -              give_back(), send()
//   receiver    -            take()         -
//
// Between windows all threads meet at a barrier, which is all the order there is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "libbx/base/check.h"
#include "sim/model/frame.h"

namespace bx::sim {

class Port;

class Mailbox {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // By the sender, first thing in a window. What was sent two windows ago has been taken.
  void give_back(std::uint64_t window, FramePool& pool) {
    std::vector<Letter>& letters = lists_[window % 2];
    for (const Letter& letter : letters) {
      if (letter.frame.payload != nullptr) pool.free_payload(letter.frame.payload);
    }
    letters.clear();
    earliest_ = kNever;
    writing_ = &letters;
  }
  // The frame goes back to its pool at once, its payload when it has been read.
  void send(std::int64_t time, Port& to, Frame* frame, FramePool& pool) {
    BX_CHECK(frame->kind != FrameKind::ip, "frames of another network stack stay in one partition");
    writing_->push_back({*frame, time, &to});
    frame->payload = nullptr;
    pool.free(frame);
    if (time < earliest_) earliest_ = time;
  }
  // Of what was sent in this window.
  [[nodiscard]] std::int64_t earliest() const noexcept { return earliest_; }

  // By the receiver: arrive(time, port, frame) of each that was sent in the window before, in order.
  template <typename Arrive>
  void take(std::uint64_t window, FramePool& pool, Arrive&& arrive) const {
    for (const Letter& letter : lists_[(window + 1) % 2]) {
      Frame* frame = pool.make();
      std::memcpy(static_cast<void*>(frame), &letter.frame, sizeof *frame);
      frame->next = nullptr;
      if (frame->payload != nullptr) {
        frame->payload = pool.make_payload();
        std::memcpy(frame->payload, letter.frame.payload, frame->payload_bytes);
      }
      arrive(letter.time, *letter.to, frame);
    }
  }
  [[nodiscard]] std::size_t sent(std::uint64_t window) const noexcept { return lists_[window % 2].size(); }

 private:
  struct Letter {
    Frame frame;
    std::int64_t time;  // of its arrival, ps
    Port* to;
  };
  std::array<std::vector<Letter>, 2> lists_;
  std::vector<Letter>* writing_ = &lists_[0];
  std::int64_t earliest_ = kNever;
};

}  // namespace bx::sim
