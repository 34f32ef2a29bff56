// SPDX-License-Identifier: BSD-3-Clause
#include <bx/buffer.h>

#include "libbx/base/check.h"
#include "libbx/engine/buffer_owner.h"

namespace bx {

void Buffer::resize(std::size_t size) noexcept {
  BX_CHECK(size <= capacity_, "a buffer was lengthened beyond its capacity");
  size_ = size;
}

void Buffer::release() noexcept {
  owner_->reclaim(data_, capacity_, tag_);
  owner_ = nullptr;
}

}  // namespace bx
