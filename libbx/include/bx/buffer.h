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

struct Block;

// Who takes a Buffer's memory back: the arena, or the pool of receive slots.
class BufferOwner {
 public:
  virtual void reclaim(Block& block) noexcept = 0;

 protected:
  ~BufferOwner() = default;
};

// The memory behind a Buffer: an entry of its owner's side table, which outlives every Buffer made of it.
struct Block {
  BufferOwner* owner = nullptr;
  std::byte* data = nullptr;
  std::size_t capacity = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  bool shared = false;    // its parts are different Buffers', none of which may grow
  bool gathered = false;  // of the engine's own: a message in several parts (engine/gather.h)
};

}  // namespace engine

class Buffer {
 public:
  Buffer() = default;  // empty: no memory, size 0
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    if (block_ != nullptr) block_->owner->reclaim(*block_);
    block_ = std::exchange(other.block_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (block_ != nullptr) block_->owner->reclaim(*block_);
  }

  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept {
    if (block_ == nullptr || block_->shared) return size_;
    return static_cast<std::size_t>(block_->data + block_->capacity - data_);
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // Gives the memory back now.
  void reset() noexcept {
    if (block_ == nullptr) return;
    block_->owner->reclaim(*block_);
    block_ = nullptr;
    data_ = nullptr;
    size_ = 0;
  }
  // Shortens or lengthens the view; more than capacity() is a programming error.
  void resize(std::size_t size) noexcept;
  void swap(Buffer& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  // For the engine: a Buffer over part of a block that nobody else has, and the keys of its memory.
  Buffer(engine::Block& block, std::byte* data, std::size_t size) noexcept
      : block_(&block), data_(data), size_(size) {}
  [[nodiscard]] engine::Block* block() const noexcept { return block_; }
  [[nodiscard]] std::uint32_t lkey() const noexcept { return block_ == nullptr ? 0 : block_->lkey; }
  [[nodiscard]] std::uint32_t rkey() const noexcept { return block_ == nullptr ? 0 : block_->rkey; }

 private:
  engine::Block* block_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace bx
