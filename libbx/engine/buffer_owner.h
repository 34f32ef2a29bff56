// SPDX-License-Identifier: BSD-3-Clause
// Who takes a Buffer's memory back: the arena, or the pool of receive slots.
#pragma once

#include <bx/buffer.h>

namespace bx::engine {

class BufferOwner {
 public:
  virtual void reclaim(std::byte* data, std::size_t capacity, std::uint32_t tag) noexcept = 0;

  struct Lease {
    std::byte* data;
    std::size_t size;
    std::size_t capacity;
    std::uint32_t lkey;
    std::uint32_t rkey;
    std::uint32_t tag;  // returned to reclaim()
  };

 protected:
  ~BufferOwner() = default;
  Buffer wrap(const Lease& lease) noexcept {
    Buffer buffer;
    buffer.owner_ = this;
    buffer.data_ = lease.data;
    buffer.size_ = lease.size;
    buffer.capacity_ = lease.capacity;
    buffer.lkey_ = lease.lkey;
    buffer.rkey_ = lease.rkey;
    buffer.tag_ = lease.tag;
    return buffer;
  }
};

}  // namespace bx::engine
