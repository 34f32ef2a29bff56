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
      signal_every_(std::max<std::uint32_t>(1, limits.depth / 4)),
      stride_((std::max<std::size_t>(wire::kEnvelopeBytesMax, limits.inline_max) + 63) / 64 * 64),
      records_(limits.depth) {
  staged_.reserve(limits.depth);
}

Result<std::unique_ptr<Lane>> Lane::create(fabric::Device& device, Arena& arena, fabric::CompletionQueue& cq,
                                           fabric::SharedReceiveQueue& srq, std::uint32_t peer,
                                           const Limits& limits) {
  std::unique_ptr<Lane> lane(new Lane(peer, limits));
  auto headers = arena.allocate(limits.depth * lane->stride_);
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

void Lane::stage(Staged& staged, SendRecord record) noexcept {
  BX_CHECK(!records_.full(), "a request was staged without a free slot");
  const bool holding = holds(record);
  record.signaled = holding || ++unsignaled_ >= signal_every_;
  if (record.signaled) {
    unsignaled_ = 0;
    staged.wr.flags = staged.wr.flags | SendFlags::signaled;
  }
  if (holding) ++holding_;
  staged.wr.wr_id = encode({WrKind::send, peer_, next_++});
  staged_.push_back(staged);
  records_.push(std::move(record));
}

void Lane::stage_message(std::span<const std::byte> envelope, SendRecord record) noexcept {
  const std::size_t payload = record.buffer.size();
  Staged staged{};
  staged.wr.opcode = Opcode::send;
  staged.wr.flags = SendFlags::none;
  std::byte* place = header_slot();
  std::memcpy(place, envelope.data(), envelope.size());
  std::size_t gathered = envelope.size();
  if (envelope.size() + payload <= inline_max_) {
    staged.wr.flags = SendFlags::inlined;
    if (payload > 0) std::memcpy(place + gathered, record.buffer.data(), payload);
    gathered += payload;
    record.buffer = Buffer{};
  } else if (payload > 0) {
    staged.sges[1] = {reinterpret_cast<std::uint64_t>(record.buffer.data()),
                      static_cast<std::uint32_t>(payload), fabric::LKey{record.buffer.lkey()}};
  }
  staged.sges[0] = {reinterpret_cast<std::uint64_t>(place), static_cast<std::uint32_t>(gathered),
                    fabric::LKey{headers_.lkey()}};
  staged.sge_count = staged.sges[1].length > 0 ? 2 : 1;
  stage(staged, std::move(record));
}

void Lane::stage_read(fabric::Sge local, fabric::RemoteSpan remote, SendRecord record) noexcept {
  Staged staged{};
  staged.wr.opcode = Opcode::rdma_read;
  staged.wr.remote = remote;
  staged.wr.flags = SendFlags::none;
  staged.sges[0] = local;
  staged.sge_count = 1;
  stage(staged, std::move(record));
}

void Lane::stage_write(fabric::Sge local, fabric::RemoteSpan remote, SendRecord record) noexcept {
  Staged staged{};
  staged.wr.opcode = Opcode::rdma_write;
  staged.wr.remote = remote;
  staged.wr.flags = SendFlags::none;
  staged.sges[0] = local;
  staged.sge_count = 1;
  stage(staged, std::move(record));
}

void Lane::stage_notify(std::uint32_t imm, SendRecord record) noexcept {
  Staged staged{};
  staged.wr.opcode = Opcode::rdma_write_with_imm;
  staged.wr.imm = imm;
  staged.wr.flags = SendFlags::none;
  staged.sge_count = 0;
  stage(staged, std::move(record));
}

Lane::Flushed Lane::flush() noexcept {
  if (staged_.empty()) return {0, 0, false};
  constexpr std::size_t kBatch = 16;
  std::array<fabric::SendWr, kBatch> batch;
  std::size_t sent = 0;
  std::uint32_t doorbells = 0;
  while (sent < staged_.size()) {
    const std::size_t count = std::min(kBatch, staged_.size() - sent);
    for (std::size_t i = 0; i < count; ++i) {
      Staged& staged = staged_[sent + i];
      batch[i] = staged.wr;
      batch[i].sges = {staged.sges.data(), staged.sge_count};
    }
    const std::size_t taken = qp_->post_send(std::span(batch).first(count));
    sent += taken;
    ++doorbells;
    if (taken < count) break;
  }
  posted_ += static_cast<std::uint32_t>(sent);
  staged_.erase(staged_.begin(), staged_.begin() + static_cast<std::ptrdiff_t>(sent));
  return {static_cast<std::uint32_t>(sent), doorbells, !staged_.empty()};
}

}  // namespace bx::engine
