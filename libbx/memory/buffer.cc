// SPDX-License-Identifier: BSD-3-Clause
#include <bx/buffer.h>

#include "libbx/base/check.h"

namespace bx {

void Buffer::resize(std::size_t size) noexcept {
  BX_CHECK(size <= capacity(), "a buffer was lengthened beyond its capacity");
  size_ = size;
}

}  // namespace bx
