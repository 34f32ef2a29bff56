// SPDX-License-Identifier: BSD-3-Clause
// A piece of registered memory that the application and the NIC share. Move-only; the destructor gives it
// back. A received message is a Buffer too: it lies where the NIC put it, and its place is free again when
// the Buffer goes. Belongs to the thread of the worker it came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace bx {

namespace engine {
class BufferOwner;
}

class Buffer {
 public:
  Buffer() = default;  // empty: no memory, size 0
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (owner_ != nullptr) release();
  }

  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // Shortens or lengthens the view; more than capacity() is a programming error.
  void resize(std::size_t size) noexcept;
  void swap(Buffer& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(lkey_, other.lkey_);
    std::swap(rkey_, other.rkey_);
    std::swap(tag_, other.tag_);
  }

  // For the engine: keys of the memory, and what the owner needs to take it back.
  [[nodiscard]] std::uint32_t lkey() const noexcept { return lkey_; }
  [[nodiscard]] std::uint32_t rkey() const noexcept { return rkey_; }

 private:
  friend class engine::BufferOwner;
  void release() noexcept;

  engine::BufferOwner* owner_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::uint32_t lkey_ = 0;
  std::uint32_t rkey_ = 0;
  std::uint32_t tag_ = 0;
};

}  // namespace bx
