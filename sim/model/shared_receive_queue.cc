// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/shared_receive_queue.h"

#include <cerrno>

namespace bx::sim {

Result<> SharedReceiveQueue::set_limit(std::uint32_t limit) {
  if (limit > depth_) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation,
                "the limit of a shared receive queue may not exceed its depth", EINVAL);
  }
  limit_ = limit;
  if (visible_ - consumed_ < limit_) reach_limit();
  return {};
}

void SharedReceiveQueue::reach_limit() {
  limit_ = 0;
  environment_.raise(NicEventKind::srq_limit_reached, number_);
}

}  // namespace bx::sim
