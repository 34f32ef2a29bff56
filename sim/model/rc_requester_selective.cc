// SPDX-License-Identifier: GPL-2.0-only
// The requester's part of selective repeat (loss_recovery.h).
#include <algorithm>

#include "sim/model/rc_queue_pair.h"
#include "sim/model/rc_requester.h"

namespace bx::sim {

// Everything before `position` is there, and what the map says; what lies between is lost. Of a READ or an
// atomic only the request can be: it has the first of its positions.
void RcRequester::on_received_map(std::uint64_t position, const Frame& frame) {
  ++qp_.environment().counters().sequence_naks_rx;
  std::uint64_t end = position;
  for (std::uint32_t i = 0; i < kReceivedMapBits; ++i) {
    const auto byte = std::to_integer<unsigned>(frame.payload->bytes[i / 8]);
    const std::uint64_t there = position + 1 + i;
    if (((byte >> (i % 8)) & 1U) == 0 || there >= high_) continue;
    losses_.mark_received(there);
    end = there;
  }
  for (std::uint64_t index = head_; index != queue_.rung() && queue_[index].started; ++index) {
    const SendEntry& entry = queue_[index];
    if (entry.first >= end) break;
    const std::uint64_t packets = returns_data(entry.opcode) ? 1 : entry.packets;
    const std::uint64_t stop = std::min(entry.first + packets, end);
    for (std::uint64_t p = std::max(entry.first, position); p < stop; ++p) losses_.mark_lost(p);
  }
}

// Makes one packet out of turn; the cursor stays where it is, unless the packet cannot be made.
Frame* RcRequester::resend_lost() {
  const std::uint64_t position = losses_.take_lost();
  std::uint64_t index = head_;
  while (position >= queue_[index].first + queue_[index].packets) ++index;
  const std::uint64_t cursor = cursor_;
  const std::uint32_t cursor_packet = cursor_packet_;
  const std::uint32_t reads_in_flight = reads_in_flight_;
  const std::uint64_t ack_asked = ack_asked_;
  cursor_ = index;
  cursor_packet_ = static_cast<std::uint32_t>(position - queue_[index].first);
  Frame* frame = make_next(queue_[index]);
  if (frame == nullptr) return nullptr;
  cursor_ = cursor;
  cursor_packet_ = cursor_packet;
  reads_in_flight_ = reads_in_flight;
  ack_asked_ = ack_asked;
  return frame;
}

}  // namespace bx::sim
