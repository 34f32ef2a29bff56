// SPDX-License-Identifier: GPL-2.0-only
// The packets that the requester sends: what each carries, whether it asks for an acknowledgement, and the
// timer that runs while one is asked for.
#include <algorithm>
#include <cstring>

#include "libbx/base/rc_timing.h"
#include "sim/model/rc_memory.h"
#include "sim/model/rc_queue_pair.h"
#include "sim/model/rc_requester.h"
#include "sim/model/wire_size.h"

namespace bx::sim {
namespace {

// The opcodes of SEND are 0..5 and those of WRITE 6..11, in the same order.
BthOpcode payload_opcode(RequestOpcode request, bool first, bool last) noexcept {
  if (last && request == RequestOpcode::send_with_inv) {
    return first ? BthOpcode::send_only_inv : BthOpcode::send_last_inv;
  }
  const bool is_write = request == RequestOpcode::write || request == RequestOpcode::write_with_imm;
  const bool imm = request == RequestOpcode::send_with_imm || request == RequestOpcode::write_with_imm;
  BthOpcode form = BthOpcode::send_middle;
  if (first && last) {
    form = imm ? BthOpcode::send_only_imm : BthOpcode::send_only;
  } else if (last) {
    form = imm ? BthOpcode::send_last_imm : BthOpcode::send_last;
  } else if (first) {
    form = BthOpcode::send_first;
  }
  const unsigned base = is_write ? static_cast<unsigned>(BthOpcode::write_first) : 0U;
  return static_cast<BthOpcode>(base + static_cast<unsigned>(form));
}

}  // namespace

Frame* RcRequester::make_payload_packet(SendEntry& entry) {
  RcEnvironment& environment = qp_.environment();
  const std::uint32_t mtu = qp_.path().mtu;
  const std::uint64_t offset = static_cast<std::uint64_t>(cursor_packet_) * mtu;
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu, entry.length - offset));
  const bool first = cursor_packet_ == 0;
  const bool last = cursor_packet_ + 1 == entry.packets;
  const std::uint64_t position = entry.first + cursor_packet_;
  const BthOpcode opcode = payload_opcode(entry.opcode, first, last);
  Frame* frame = qp_.make_frame(opcode, position);
  if (bytes > 0 && !give_payload(*frame, entry, offset, bytes)) {
    environment.frames().free(frame);
    stop_at_cursor(CompletionStatus::local_protection);
    return nullptr;
  }
  frame->payload_bytes = bytes;
  frame->wire_bytes = wire_bytes(opcode, bytes);
  frame->imm = entry.imm;
  frame->solicited = last && entry.solicited;
  frame->ack_req = wants_ack(position, last);
  frame->va = entry.remote_addr;
  frame->rkey = entry.rkey;
  frame->dma_length = static_cast<std::uint32_t>(entry.length);
  sent(position, position + 1, bytes);
  if (frame->ack_req) expect_answer(position + 1);
  if (last) {
    ++cursor_;
    cursor_packet_ = 0;
  } else {
    ++cursor_packet_;
  }
  return frame;
}

// False on a bad key.
bool RcRequester::give_payload(Frame& frame, const SendEntry& entry, std::uint64_t offset,
                               std::uint32_t bytes) {
  RcEnvironment& environment = qp_.environment();
  const Carried moved = carried(environment, offset);
  if (!entry.inlined) {
    return take_payload(environment, frame, queue_.segments(cursor_), offset, bytes, moved);
  }
  if (moved == Carried::no) return true;
  frame.payload = environment.frames().make_payload();
  std::memcpy(frame.payload->bytes.data(), queue_.inline_bytes(cursor_).data() + offset, bytes);
  return true;
}

// Asks for the response packets that are still missing: all of them at first.
Frame* RcRequester::make_read_request(SendEntry& entry) {
  const std::uint64_t offset = static_cast<std::uint64_t>(cursor_packet_) * qp_.path().mtu;
  const std::uint64_t position = entry.first + cursor_packet_;
  const std::uint64_t end = entry.first + entry.packets;
  Frame* frame = qp_.make_frame(BthOpcode::read_request, position);
  frame->ack_req = true;
  frame->va = entry.remote_addr + offset;
  frame->rkey = entry.rkey;
  frame->dma_length = static_cast<std::uint32_t>(entry.length - offset);
  sent(position, end, entry.length);
  expect_answer(end);
  ++reads_in_flight_;
  ++cursor_;
  cursor_packet_ = 0;
  return frame;
}

Frame* RcRequester::make_atomic_request(SendEntry& entry) {
  const bool add = entry.opcode == RequestOpcode::fetch_add;
  Frame* frame = qp_.make_frame(add ? BthOpcode::fetch_add : BthOpcode::cmp_swap, entry.first);
  frame->ack_req = true;
  frame->va = entry.remote_addr;
  frame->rkey = entry.rkey;
  frame->swap_add = add ? entry.compare_add : entry.swap;
  frame->compare = add ? 0 : entry.compare_add;
  sent(entry.first, entry.first + 1, 0);
  expect_answer(entry.first + 1);
  ++reads_in_flight_;
  ++cursor_;
  return frame;
}

bool RcRequester::wants_ack(std::uint64_t position, bool last) noexcept {
  // Several times a window, and always with the packet that fills it: else nobody would open it again.
  const std::uint64_t interval = std::min<std::uint64_t>(qp_.config().ack_interval, window_ / 4 + 1);
  const bool fills = position + 1 - una_ >= window_;
  if (!last && !fills && position - ack_asked_ < interval && !qp_.congestion().wants_rtt()) return false;
  ack_asked_ = position;
  return true;
}

void RcRequester::sent(std::uint64_t first, std::uint64_t end, std::uint64_t payload) {
  NicCounters& counters = qp_.environment().counters();
  if (first < high_) {
    ++counters.packets_retransmitted;
    probe_ = 0;  // its answer may be that to the packet's first sending (Karn, Partridge, SIGCOMM 1987)
  } else {
    counters.payload_bytes_sent += payload;
    if (qp_.congestion().wants_rtt() && probe_ == 0) start_probe(first);
  }
  high_ = std::max(high_, end);
}

// One packet at a time; every packet asks for an acknowledgement where this is used.
void RcRequester::start_probe(std::uint64_t position) {
  probe_ = position;
  probe_sent_ = qp_.environment().now();
}

void RcRequester::take_probe() {
  probe_ = 0;
  const Picoseconds now = qp_.environment().now();
  qp_.congestion().on_rtt(now, now - probe_sent_);
}

void RcRequester::expect_answer(std::uint64_t end) {
  answer_below_ = std::max(answer_below_, end);
  if (!ack_timer_.armed()) restart_ack_timer();
}

void RcRequester::restart_ack_timer() {
  if (qp_.path().ack_timeout == 0) return;
  RcEnvironment& environment = qp_.environment();
  ack_timer_.arm(environment.now() + ack_wait(qp_.path().ack_timeout),
                 [&](Picoseconds when) { environment.schedule_timer(qp_, RcTimer::ack, when); });
}

}  // namespace bx::sim
