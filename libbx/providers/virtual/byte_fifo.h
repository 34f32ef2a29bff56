// SPDX-License-Identifier: BSD-3-Clause
// A FIFO of bytes that starts small and grows by doubling up to a limit: thousands of idle streams must not
// each hold a full window. Growth allocates; a stream is not the data path of RDMA.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "libbx/base/check.h"

namespace bx::virtual_time {

class ByteFifo {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void push(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    reserve(size_ + bytes.size());
    const std::size_t tail = (head_ + size_) & (capacity_ - 1);
    const std::size_t first = std::min(bytes.size(), capacity_ - tail);
    std::memcpy(data_.get() + tail, bytes.data(), first);
    if (first < bytes.size()) std::memcpy(data_.get(), bytes.data() + first, bytes.size() - first);
    size_ += bytes.size();
  }
  // Moves exactly out.size() bytes, which must be there.
  void pop(std::span<std::byte> out) noexcept {
    BX_CHECK(out.size() <= size_, "pop of more bytes than the FIFO holds");
    if (out.empty()) return;
    const std::size_t first = std::min(out.size(), capacity_ - head_);
    std::memcpy(out.data(), data_.get() + head_, first);
    if (first < out.size()) std::memcpy(out.data() + first, data_.get(), out.size() - first);
    drop(out.size());
  }
  void drop(std::size_t bytes) noexcept {
    BX_CHECK(bytes <= size_, "drop of more bytes than the FIFO holds");
    size_ -= bytes;
    head_ = size_ == 0 ? 0 : (head_ + bytes) & (capacity_ - 1);
  }

 private:
  static constexpr std::size_t kFirstCapacity = 1024;

  void reserve(std::size_t bytes) {
    if (bytes <= capacity_) return;
    const std::size_t capacity = std::bit_ceil(std::max(bytes, kFirstCapacity));
    auto grown = std::make_unique<std::byte[]>(capacity);
    const std::size_t first = std::min(size_, capacity_ - head_);
    if (size_ > 0) std::memcpy(grown.get(), data_.get() + head_, first);
    if (first < size_) std::memcpy(grown.get() + first, data_.get(), size_ - first);
    data_ = std::move(grown);
    capacity_ = capacity;
    head_ = 0;
  }

  std::unique_ptr<std::byte[]> data_;
  std::size_t capacity_ = 0;  // zero or a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace bx::virtual_time
