// SPDX-License-Identifier: GPL-2.0-only
// A shared receive queue: receives posted once for any number of queue pairs, consumed in post order. What a
// failed queue pair has not consumed stays here for the others. A queue pair's own receive queue is one that
// nobody else has.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libbx/base/check.h"
#include "libbx/base/result.h"
#include "sim/model/rc_environment.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

class SharedReceiveQueue {
 public:
  SharedReceiveQueue(RcEnvironment& environment, std::uint32_t number, std::uint32_t depth,
                     std::uint32_t segments_max)
      : environment_(environment),
        depth_(depth),
        mask_(std::bit_ceil(std::max<std::size_t>(depth, 1)) - 1),
        entries_(mask_ + 1),
        segments_((mask_ + 1) * segments_max),
        number_(number),
        segments_max_(segments_max) {}
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint32_t segments_max() const noexcept { return segments_max_; }

  // Writes requests into the queue; returns the length of the prefix that fitted. The NIC sees them after
  // ring().
  std::size_t post(std::span<const ReceiveRequest> requests) {
    std::size_t accepted = 0;
    for (const ReceiveRequest& request : requests) {
      if (posted_ - consumed_ == depth_) break;
      BX_CHECK(request.segments.size() <= segments_max_, "a receive has more segments than its queue takes");
      const std::size_t slot = posted_ & mask_;
      entries_[slot] = {request.id, static_cast<std::uint32_t>(request.segments.size())};
      std::copy(request.segments.begin(), request.segments.end(), segments_at(slot));
      ++posted_;
      ++accepted;
    }
    return accepted;
  }
  void ring() noexcept { visible_ = posted_; }
  // ibv_modify_srq(3) with IBV_SRQ_LIMIT: one srq_limit_reached when fewer than `limit` receives are left, at
  // once if they are fewer already; then it is off, as it is with 0 (IBA 1.4, 11.2.3.3). Errors:
  // invalid_argument (above the depth).
  Result<> set_limit(std::uint32_t limit);
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }
  // Everything posted is forgotten.
  void clear() noexcept { consumed_ = visible_ = posted_; }

  [[nodiscard]] bool empty() const noexcept { return consumed_ == visible_; }
  [[nodiscard]] std::size_t size() const noexcept { return posted_ - consumed_; }

  struct Taken {
    std::uint64_t id = 0;
    std::span<const Segment> segments{};  // valid until the next post()
  };
  // The oldest receive, which is the caller's from here on. Not on an empty queue.
  Taken take() {
    BX_CHECK(!empty(), "a receive was taken from an empty queue");
    const std::size_t slot = consumed_++ & mask_;
    if (visible_ - consumed_ < limit_) reach_limit();
    return {entries_[slot].id, {segments_at(slot), entries_[slot].segment_count}};
  }

  std::uint32_t users = 0;  // queue pairs attached

 private:
  struct Entry {
    std::uint64_t id = 0;
    std::uint32_t segment_count = 0;
  };
  void reach_limit();
  Segment* segments_at(std::size_t slot) noexcept { return segments_.data() + slot * segments_max_; }

  RcEnvironment& environment_;
  std::size_t depth_;
  std::size_t mask_;  // a power of two of slots
  std::vector<Entry> entries_;
  std::vector<Segment> segments_;  // segments_max_ a slot
  std::uint32_t number_;
  std::uint32_t segments_max_;
  std::uint32_t limit_ = 0;  // armed for srq_limit_reached; 0: not
  // Counts since creation: consumed_ <= visible_ <= posted_ <= consumed_ + depth.
  std::uint64_t posted_ = 0;
  std::uint64_t visible_ = 0;
  std::uint64_t consumed_ = 0;
};

}  // namespace bx::sim
