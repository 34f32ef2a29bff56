// SPDX-License-Identifier: BSD-3-Clause
// Bounds-checked little-endian reading and writing. A Reader that ran past the end stays failed and yields
// zeros, so a parser checks ok() once, at its end.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "libbx/base/check.h"

namespace bx::wire {

class Writer {
 public:
  explicit Writer(std::span<std::byte> out) noexcept : out_(out) {}

  // Running over the end is a programming error: callers size their buffers by the k...Bytes constants.
  template <std::unsigned_integral T>
  void put(T value) noexcept {
    BX_CHECK(out_.size() - at_ >= sizeof(T), "a wire buffer is too small for its header");
    // Written out so that a compiler makes one store of it; correct on either byte order.
    std::array<std::byte, sizeof(T)> raw;
    for (std::size_t i = 0; i < sizeof(T); ++i) raw[i] = static_cast<std::byte>(value >> (8 * i));
    std::memcpy(out_.data() + at_, raw.data(), sizeof(T));
    at_ += sizeof(T);
  }
  void put_bytes(std::span<const std::byte> bytes) noexcept {
    BX_CHECK(out_.size() - at_ >= bytes.size(), "a wire buffer is too small for its header");
    if (!bytes.empty()) std::memcpy(out_.data() + at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  [[nodiscard]] std::size_t size() const noexcept { return at_; }

 private:
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) noexcept : in_(in) {}

  template <std::unsigned_integral T>
  T get() noexcept {
    if (!ok_ || in_.size() - at_ < sizeof(T)) {
      ok_ = false;
      return 0;
    }
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), in_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | (std::to_integer<T>(raw[i]) << (8 * i)));
    }
    return value;
  }
  // Empty, and the reader failed, if fewer than `count` bytes are left.
  std::span<const std::byte> get_bytes(std::size_t count) noexcept {
    if (!ok_ || in_.size() - at_ < count) {
      ok_ = false;
      return {};
    }
    at_ += count;
    return in_.subspan(at_ - count, count);
  }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept {
    return ok_ ? in_.subspan(at_) : std::span<const std::byte>{};
  }
  [[nodiscard]] bool ok() const noexcept { return ok_; }

 private:
  std::span<const std::byte> in_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace bx::wire
