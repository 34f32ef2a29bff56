// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/frame_pool.h"

#include <new>

#include "libbx/base/check.h"

namespace bx {

FramePool::~FramePool() {
  BX_CHECK(live_ == 0, "a frame pool was destroyed while coroutines of its worker are alive");
  for (Header* header : free_) {
    while (header != nullptr) {
      Header* next = header->next;
      ::operator delete(header);
      header = next;
    }
  }
}

void* FramePool::allocate(FramePool* pool, std::size_t size) {
  const std::size_t index = (size - 1) / kStep;
  if (pool == nullptr || index >= kClasses) {
    auto* header = static_cast<Header*>(::operator new(sizeof(Header) + size));
    *header = {nullptr, nullptr};
    return header + 1;
  }
  Header* header = pool->free_[index];
  if (header != nullptr) {
    pool->free_[index] = header->next;
  } else {
    header = static_cast<Header*>(::operator new(sizeof(Header) + (index + 1) * kStep));
  }
  *header = {pool, nullptr};
  ++pool->live_;
  return header + 1;
}

void FramePool::deallocate(void* frame, std::size_t size) noexcept {
  Header* header = static_cast<Header*>(frame) - 1;
  FramePool* pool = header->pool;
  if (pool == nullptr) {
    ::operator delete(header);
    return;
  }
  const std::size_t index = (size - 1) / kStep;
  header->next = pool->free_[index];
  pool->free_[index] = header;
  --pool->live_;
}

}  // namespace bx
