// SPDX-License-Identifier: GPL-2.0-only
// Between the boundary's values and the model's. They mean the same, for both follow verbs; the model has its
// own because it knows nothing of libbx above base.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "libbx/base/check.h"
#include "libbx/fabric/types.h"
#include "sim/model/memory_table.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

template <class To, class From>
constexpr To same_value(From from) noexcept {
  return static_cast<To>(static_cast<unsigned>(from));
}

static_assert(same_value<RequestOpcode>(fabric::Opcode::send) == RequestOpcode::send);
static_assert(same_value<RequestOpcode>(fabric::Opcode::send_with_imm) == RequestOpcode::send_with_imm);
static_assert(same_value<RequestOpcode>(fabric::Opcode::rdma_write) == RequestOpcode::write);
static_assert(same_value<RequestOpcode>(fabric::Opcode::rdma_write_with_imm) ==
              RequestOpcode::write_with_imm);
static_assert(same_value<RequestOpcode>(fabric::Opcode::rdma_read) == RequestOpcode::read);
static_assert(same_value<RequestOpcode>(fabric::Opcode::fetch_add) == RequestOpcode::fetch_add);
static_assert(same_value<RequestOpcode>(fabric::Opcode::cmp_swap) == RequestOpcode::cmp_swap);

static_assert(same_value<fabric::WcStatus>(CompletionStatus::success) == fabric::WcStatus::success);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::local_length) == fabric::WcStatus::local_length);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::local_qp_operation) ==
              fabric::WcStatus::local_qp_operation);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::local_protection) ==
              fabric::WcStatus::local_protection);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::flushed) == fabric::WcStatus::flushed);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::remote_invalid_request) ==
              fabric::WcStatus::remote_invalid_request);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::remote_access) ==
              fabric::WcStatus::remote_access);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::remote_operation) ==
              fabric::WcStatus::remote_operation);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::retry_exceeded) ==
              fabric::WcStatus::retry_exceeded);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::rnr_retry_exceeded) ==
              fabric::WcStatus::rnr_retry_exceeded);
static_assert(same_value<fabric::WcStatus>(CompletionStatus::fatal) == fabric::WcStatus::fatal);

static_assert(same_value<fabric::WcOpcode>(CompletionOpcode::send) == fabric::WcOpcode::send);
static_assert(same_value<fabric::WcOpcode>(CompletionOpcode::write) == fabric::WcOpcode::rdma_write);
static_assert(same_value<fabric::WcOpcode>(CompletionOpcode::read) == fabric::WcOpcode::rdma_read);
static_assert(same_value<fabric::WcOpcode>(CompletionOpcode::fetch_add) == fabric::WcOpcode::fetch_add);
static_assert(same_value<fabric::WcOpcode>(CompletionOpcode::cmp_swap) == fabric::WcOpcode::cmp_swap);
static_assert(same_value<fabric::WcOpcode>(CompletionOpcode::recv) == fabric::WcOpcode::recv);
static_assert(same_value<fabric::WcOpcode>(CompletionOpcode::recv_write_imm) ==
              fabric::WcOpcode::recv_rdma_with_imm);

inline constexpr std::size_t kSegmentsMax = 16;  // of a request, send or receive

// The elements of one request, translated without allocation.
class SegmentArray {
 public:
  explicit SegmentArray(std::span<const fabric::Sge> sges) noexcept : count_(sges.size()) {
    BX_CHECK(count_ <= kSegmentsMax, "a request has more elements than the device takes");
    for (std::size_t i = 0; i < count_; ++i) {
      segments_[i] = {sges[i].addr, sges[i].length, static_cast<std::uint32_t>(sges[i].lkey)};
    }
  }
  [[nodiscard]] std::span<const Segment> view() const noexcept { return {segments_.data(), count_}; }

 private:
  std::array<Segment, kSegmentsMax> segments_;
  std::size_t count_;
};

inline fabric::Completion translate(const WorkCompletion& c) noexcept {
  return {.wr_id = fabric::WrId{c.id},
          .byte_len = c.byte_len,
          .imm = c.imm,
          .qp = fabric::QpNum{c.qp},
          .status = same_value<fabric::WcStatus>(c.status),
          .opcode = same_value<fabric::WcOpcode>(c.opcode),
          .has_imm = c.has_imm};
}

inline SendRequest translate(const fabric::SendWr& wr, const SegmentArray& segments) noexcept {
  return {.id = static_cast<std::uint64_t>(wr.wr_id),
          .segments = segments.view(),
          .remote_addr = wr.remote.addr,
          .rkey = static_cast<std::uint32_t>(wr.remote.rkey),
          .imm = wr.imm,
          .compare_add = wr.compare_add,
          .swap = wr.swap,
          .opcode = same_value<RequestOpcode>(wr.opcode),
          .signaled = fabric::has(wr.flags, fabric::SendFlags::signaled),
          .inlined = fabric::has(wr.flags, fabric::SendFlags::inlined),
          .fenced = fabric::has(wr.flags, fabric::SendFlags::fenced),
          .solicited = fabric::has(wr.flags, fabric::SendFlags::solicited)};
}

// Local read and write are always allowed at the boundary.
inline MemoryAccess translate(fabric::Access access) noexcept {
  MemoryAccess result = MemoryAccess::local_write;
  if (fabric::allows(access, fabric::Access::remote_read)) result = result | MemoryAccess::remote_read;
  if (fabric::allows(access, fabric::Access::remote_write)) result = result | MemoryAccess::remote_write;
  if (fabric::allows(access, fabric::Access::remote_atomic)) result = result | MemoryAccess::remote_atomic;
  return result;
}

}  // namespace bx::sim
