// SPDX-License-Identifier: BSD-3-Clause
// What a TraceFabric has seen: the newest records in a ring of fixed size, and a digest over all of them.
// Recording allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "libbx/base/digest.h"
#include "libbx/base/function_ref.h"
#include "libbx/base/time.h"

namespace bx::fabric {

enum class TraceKind : std::uint8_t {
  create_mr,     // object: lkey, length: bytes
  create_cq,     // object: ordinal of the queue on its host, length: depth
  create_srq,    // as create_cq
  create_qp,     // object: QpNum, length: send depth
  refused,       // a creation or a connect; code: ErrorCode
  connect,       // object: QpNum, wr_id: QpNum of the peer
  fail,          // object: QpNum
  destroy_qp,    // object: QpNum
  post_send,     // a request that was taken; code: Opcode, length: bytes
  post_short,    // a post that took fewer than it was given; object: QpNum or ordinal, length: how many
  post_recv,     // a receive that was taken; object: ordinal of the queue, length: bytes of room
  completion,    // polled; object: QpNum, code: WcStatus, length: byte_len
  arm,           // object: ordinal of the queue, code: ArmResult
  wake,          // object: ordinal of the queue
  device_event,  // polled; object: its id, code: DeviceEventKind
};
std::string_view to_string(TraceKind kind) noexcept;

struct TraceRecord {
  Instant time{};
  std::uint64_t wr_id = 0;
  std::uint64_t length = 0;
  std::uint32_t object = 0;
  std::uint16_t host = 0;  // in the order in which hosts were opened
  TraceKind kind{};
  std::uint8_t code = 0;
};

class TraceLog {
 public:
  explicit TraceLog(std::size_t capacity);

  void add(const TraceRecord& record) noexcept;
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return total_ - size(); }  // the oldest ones
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] const TraceRecord& operator[](std::size_t i) const noexcept;  // 0 is the oldest that is kept
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_.value(); }
  // One line a record, without the newline; the first line says how many were dropped, if any were.
  void dump(FunctionRef<void(std::string_view)> line) const;

 private:
  std::vector<TraceRecord> records_;
  std::uint64_t total_ = 0;
  Digest digest_;
};

}  // namespace bx::fabric
