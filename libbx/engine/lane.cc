// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/lane.h"

#include <algorithm>

#include "libbx/engine/gather.h"
#include "libbx/wire/message.h"

namespace bx::engine {

using fabric::Opcode;
using fabric::SendFlags;

Lane::Lane(std::uint32_t peer, const Limits& limits)
    : tag_(static_cast<std::uint64_t>(encode({WrKind::send, peer, 0, limits.lane}))),
      depth_(limits.depth),
      inline_max_(limits.inline_max),
      batch_max_(limits.batch_max),
      control_reserve_(limits.control_reserve),
      signal_every_(std::max<std::uint32_t>(
          1, std::min(limits.depth / 4, (limits.depth - limits.control_reserve) / 2))),
      places_(limits.depth),
      staged_(limits.depth),
      last_(&places_.back()),
      oldest_(places_.data()),
      next_(places_.data()),
      posted_(limits.first_number),
      retired_(limits.first_number) {}

std::size_t Lane::header_stride(std::uint32_t inline_max, std::uint32_t batch_max) noexcept {
  return (std::max<std::size_t>({wire::kEnvelopeBytesMax, inline_max, batch_max}) + 63) / 64 * 64;
}

Result<std::unique_ptr<Lane>> Lane::create(fabric::Device& device, memory::Arena& arena,
                                           fabric::CompletionQueue& cq, fabric::SharedReceiveQueue& srq,
                                           std::uint32_t peer, const Limits& limits) {
  std::unique_ptr<Lane> lane(new Lane(peer, limits));
  const std::size_t stride = header_stride(limits.inline_max, limits.batch_max);
  auto headers = arena.allocate_pinned(limits.depth * stride, memory::Side::receive);
  if (!headers) return tl::unexpected<Error>(headers.error());
  lane->headers_ = std::move(*headers);
  std::uint64_t addr = reinterpret_cast<std::uint64_t>(lane->headers_.data());
  for (Place& place : lane->places_) {
    place.sges[0] = {addr, 0, fabric::LKey{lane->headers_.lkey()}};
    addr += stride;
  }
  auto qp = device.create_qp({.send_cq = &cq,
                              .recv_cq = &cq,
                              .srq = &srq,
                              .send_depth = limits.depth,
                              .sges_max = 1 + limits.parts_max,
                              .inline_max = limits.inline_max});
  if (!qp) return tl::unexpected<Error>(qp.error());
  lane->qp_ = std::move(*qp);
  return lane;
}

void Lane::stage_message(std::size_t envelope_bytes, SendRecord&& record) noexcept {
  const std::span<const std::byte> payload = std::as_const(record.buffer).bytes();
  if (envelope_bytes + payload.size() <= inline_max_) {
    BX_CHECK(record.window_bytes == 0, "an inlined message takes no room in the window");
    stage_inlined(envelope_bytes, payload);
    record.buffer = Buffer{};
    return;
  }
  const bool holding = record.window_bytes > 0 || record.buffer.block() != nullptr;
  const auto [request, place] =
      stage(Opcode::send, SendFlags::none, holding ? SendRecord::Use::message : SendRecord::Use::nothing);
  place.sges[0].length = static_cast<std::uint32_t>(envelope_bytes);
  if (GatheredMessage* const parts = gathered(record.buffer)) [[unlikely]] {
    request.sges = parts->behind(place.sges[0]);
  } else {
    place.sges[1] = {reinterpret_cast<std::uint64_t>(payload.data()),
                     static_cast<std::uint32_t>(payload.size()), fabric::LKey{record.buffer.lkey()}};
    request.sges = {place.sges.data(), payload.empty() ? std::size_t{1} : std::size_t{2}};
  }
  place.record.session = record.session;
  place.record.posted = record.posted;
  place.record.window_bytes = record.window_bytes;
  place.record.buffer = std::move(record.buffer);
}

void Lane::stage_one_sided(Opcode opcode, fabric::Sge local, fabric::RemoteSpan remote,
                           SendRecord&& record) noexcept {
  const auto [request, place] = stage(opcode, SendFlags::none, record.use);
  place.sges[1] = local;
  request.sges = {&place.sges[1], 1};
  request.remote = remote;
  record.signaled = true;
  place.record = std::move(record);
}

void Lane::stage_read(fabric::Sge local, fabric::RemoteSpan remote, SendRecord&& record) noexcept {
  stage_one_sided(Opcode::rdma_read, local, remote, std::move(record));
}

void Lane::stage_write(fabric::Sge local, fabric::RemoteSpan remote, SendRecord&& record) noexcept {
  stage_one_sided(Opcode::rdma_write, local, remote, std::move(record));
}

void Lane::stage_empty_write(Opcode opcode, std::uint32_t imm, SendRecord::Use use) noexcept {
  fabric::SendWr& request = stage(opcode, SendFlags::none, use).request;
  request.sges = {};
  request.remote = {};
  request.imm = imm;
}

void Lane::stage_notify(std::uint32_t imm) noexcept {
  stage_empty_write(Opcode::rdma_write_with_imm, imm, SendRecord::Use::notify);
}

void Lane::stage_fence() noexcept {
  stage_empty_write(Opcode::rdma_write, 0, SendRecord::Use::drain);
}

// An unsignalled request that was carried out before the failure gives no completion of its own, and none
// follows that would retire it. So a last request goes behind it, to be flushed.
bool Lane::drain() noexcept {
  if (outstanding_ > 0 && outstanding_ < depth_ && !last_staged().record.signaled) {
    stage_empty_write(Opcode::rdma_write, 0, SendRecord::Use::drain);
  }
  return flush().more;
}

Lane::Flushed Lane::flush_staged() noexcept {
  const std::size_t taken = qp_->post_send({staged_.data(), staged_count_});
  posted_ += static_cast<std::uint32_t>(taken);
  room_ = 0;
  staged_count_ -= static_cast<std::uint32_t>(taken);
  if (staged_count_ > 0) {
    std::move(staged_.begin() + static_cast<std::ptrdiff_t>(taken),
              staged_.begin() + static_cast<std::ptrdiff_t>(taken + staged_count_), staged_.begin());
  }
  return {static_cast<std::uint32_t>(taken), 1, staged_count_ > 0};
}

}  // namespace bx::engine
