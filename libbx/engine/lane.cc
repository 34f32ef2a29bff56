// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/lane.h"

#include <algorithm>
#include <cstring>

#include "libbx/engine/wr_id.h"
#include "libbx/wire/message.h"

namespace bx::engine {

using fabric::Opcode;
using fabric::SendFlags;

Lane::Lane(std::uint32_t peer, const Limits& limits)
    : peer_(peer),
      inline_max_(limits.inline_max),
      control_reserve_(limits.control_reserve),
      signal_every_(std::max<std::uint32_t>(
          1, std::min(limits.depth / 4, (limits.depth - limits.control_reserve) / 2))),
      stride_((std::max<std::size_t>(wire::kEnvelopeBytesMax, limits.inline_max) + 63) / 64 * 64),
      records_(limits.depth),
      sges_(limits.depth),
      next_(limits.first_number),
      posted_(limits.first_number),
      retired_(limits.first_number) {
  staged_.reserve(limits.depth);
}

Result<std::unique_ptr<Lane>> Lane::create(fabric::Device& device, Arena& arena, fabric::CompletionQueue& cq,
                                           fabric::SharedReceiveQueue& srq, std::uint32_t peer,
                                           const Limits& limits) {
  std::unique_ptr<Lane> lane(new Lane(peer, limits));
  auto headers = arena.allocate_pinned(limits.depth * lane->stride_);
  if (!headers) return tl::unexpected<Error>(headers.error());
  lane->headers_ = std::move(*headers);
  auto qp = device.create_qp({.send_cq = &cq,
                              .recv_cq = &cq,
                              .srq = &srq,
                              .send_depth = limits.depth,
                              .sges_max = 2,
                              .inline_max = limits.inline_max});
  if (!qp) return tl::unexpected<Error>(qp.error());
  lane->qp_ = std::move(*qp);
  return lane;
}

void Lane::stage(fabric::SendWr request, SendRecord record) noexcept {
  BX_CHECK(!records_.full(), "a request was staged without a free slot");
  const bool holding = holds(record);
  record.signaled = holding || ++unsignaled_ >= signal_every_;
  if (record.signaled) {
    unsignaled_ = 0;
    request.flags = request.flags | SendFlags::signaled;
  }
  if (holding) ++holding_;
  request.wr_id = encode({WrKind::send, peer_, next_++});
  place_ = place_ + 1 == records_.capacity() ? 0 : place_ + 1;
  staged_.push_back(request);
  records_.push(std::move(record));
}

void Lane::stage_message(std::span<const std::byte> envelope, SendRecord record) noexcept {
  const std::size_t payload = record.buffer.size();
  Sges& sges = sges_of_next();
  fabric::SendWr request{.opcode = Opcode::send, .flags = SendFlags::none};
  std::byte* place = header_slot();
  std::memcpy(place, envelope.data(), envelope.size());
  std::size_t gathered = envelope.size();
  std::size_t count = 1;
  if (envelope.size() + payload <= inline_max_) {
    request.flags = SendFlags::inlined;
    if (payload > 0) std::memcpy(place + gathered, record.buffer.data(), payload);
    gathered += payload;
    record.buffer = Buffer{};
  } else if (payload > 0) {
    sges[count++] = {reinterpret_cast<std::uint64_t>(record.buffer.data()),
                     static_cast<std::uint32_t>(payload), fabric::LKey{record.buffer.lkey()}};
  }
  sges[0] = {reinterpret_cast<std::uint64_t>(place), static_cast<std::uint32_t>(gathered),
             fabric::LKey{headers_.lkey()}};
  request.sges = {sges.data(), count};
  stage(request, std::move(record));
}

void Lane::stage_read(fabric::Sge local, fabric::RemoteSpan remote, SendRecord record) noexcept {
  Sges& sges = sges_of_next();
  sges[0] = local;
  stage({.sges = {sges.data(), 1}, .remote = remote, .opcode = Opcode::rdma_read, .flags = SendFlags::none},
        std::move(record));
}

void Lane::stage_write(fabric::Sge local, fabric::RemoteSpan remote, SendRecord record) noexcept {
  Sges& sges = sges_of_next();
  sges[0] = local;
  stage({.sges = {sges.data(), 1}, .remote = remote, .opcode = Opcode::rdma_write, .flags = SendFlags::none},
        std::move(record));
}

void Lane::stage_notify(std::uint32_t imm, SendRecord record) noexcept {
  stage({.imm = imm, .opcode = Opcode::rdma_write_with_imm, .flags = SendFlags::none}, std::move(record));
}

// An unsignalled request that was carried out before the failure gives no completion of its own, and none
// follows that would retire it. So a last request goes behind it, to be flushed.
bool Lane::drain() noexcept {
  if (!records_.empty() && !records_.back().signaled && !records_.full()) {
    stage({.opcode = Opcode::rdma_write, .flags = SendFlags::none},
          {.use = SendRecord::Use::drain, .buffer = {}});
  }
  return flush().more;
}

Lane::Flushed Lane::flush() noexcept {
  if (staged_.empty()) return {0, 0, false};
  const std::size_t taken = qp_->post_send(staged_);
  posted_ += static_cast<std::uint32_t>(taken);
  staged_.erase(staged_.begin(), staged_.begin() + static_cast<std::ptrdiff_t>(taken));
  return {static_cast<std::uint32_t>(taken), 1, !staged_.empty()};
}

}  // namespace bx::engine
