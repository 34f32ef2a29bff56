// SPDX-License-Identifier: BSD-3-Clause
// A message made of several Buffers, in their order: a header here, rows of a table there. The NIC gathers
// it, so the parts need not be copied together; the receiver gets one Buffer and cannot tell.
//
//   co_await session.call(bx::Gather(std::move(head), std::move(rows)));
//   request.reply(bx::Gather(std::move(head), table.buffer(offset, length)));
//
// What is so short that it is copied into the work request anyway is copied, and so is what has more parts
// than gather.parts_max or the device allow (counted as messages.gather_copied). What is longer than
// eager.max is written where the receiver grants it, whatever rendezvous.policy says: only the sender knows
// where the parts are.
#pragma once

#include <bx/buffer.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "libbx/base/result.h"

namespace bx {

class Gather {
 public:
  static constexpr std::size_t kPartsMax = 8;

  Gather() = default;  // no part: an empty message
  template <std::same_as<Buffer>... Parts>
  requires(sizeof...(Parts) > 0 && sizeof...(Parts) <= kPartsMax) explicit Gather(Parts... parts) noexcept {
    (put(std::move(parts)), ...);
  }

  // Takes the part over, to stand behind those before it. Errors: exhausted (kPartsMax parts are there, the
  // number in `sys`); the part is then still the caller's.
  Result<> add(Buffer&& part) noexcept {
    if (count_ == kPartsMax) {
      return fail(ErrorCode::exhausted, ErrorScope::operation, "a gather has no place for another part",
                  static_cast<int>(kPartsMax));
    }
    put(std::move(part));
    return {};
  }
  [[nodiscard]] std::span<Buffer> parts() noexcept { return std::span(parts_).first(count_); }
  [[nodiscard]] std::size_t size() const noexcept {  // bytes of all parts
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count_; ++i) bytes += parts_[i].size();
    return bytes;
  }

 private:
  // Empty ones are nothing to gather.
  void put(Buffer&& part) noexcept {
    if (!part.empty()) parts_[count_++] = std::move(part);
  }
  std::array<Buffer, kPartsMax> parts_;
  std::size_t count_ = 0;
};

}  // namespace bx
