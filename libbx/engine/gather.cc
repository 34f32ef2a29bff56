// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/gather.h"

#include <algorithm>
#include <utility>

#include "libbx/engine/worker.h"

namespace bx::engine {
namespace {

fabric::Sge element(const std::byte* data, std::uint64_t length, std::uint32_t lkey) noexcept {
  return {reinterpret_cast<std::uint64_t>(data), static_cast<std::uint32_t>(length), fabric::LKey{lkey}};
}

}  // namespace

GatheredMessage::GatheredMessage(BufferOwner& pool, Gather&& message) noexcept {
  owner = &pool;
  capacity = message.size();
  shared = true;
  gathered = true;
  for (Buffer& part : message.parts()) {
    // Of a part beyond 4 GiB the element is not used: what is that long is not sent in one SEND.
    elements_[count_ + 1] = element(part.data(), part.size(), part.lkey());
    parts_[count_++] = std::move(part);
  }
}

fabric::Sge GatheredMessage::piece(std::uint64_t offset, std::uint64_t length) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    const Buffer& part = parts_[i];
    if (offset < part.size()) {
      return element(part.data() + offset, std::min<std::uint64_t>(length, part.size() - offset),
                     part.lkey());
    }
    offset -= part.size();
  }
  BX_CHECK(false, "a piece beyond the end of a message");
  return {};
}

fabric::Sge piece_of(const Buffer& payload, std::uint64_t offset, std::uint64_t length) noexcept {
  if (const GatheredMessage* const message = gathered(payload)) return message->piece(offset, length);
  return element(payload.data() + offset, length, payload.lkey());
}

Buffer GatherPool::make(Gather&& message) noexcept {
  const auto [handle, made] = messages_.make(*this, std::move(message));
  made.handle_ = handle;
  return Buffer(made, nullptr, made.capacity);
}

Result<Buffer> Worker::gather(Gather&& message) noexcept {
  const std::span<Buffer> parts = message.parts();
  if (parts.empty()) return Buffer{};
  if (parts.size() == 1) return std::move(parts.front());
  const std::size_t size = message.size();
  if (parts.size() <= limits_.parts_max && wire::kHeaderBytes + size > limits_.inline_max &&
      !gathers_.full()) {
    ++stats_.messages_gathered;
    return gathers_.make(std::move(message));
  }
  auto copy = arena_->allocate(size);
  if (!copy) return copy;
  std::byte* to = copy->data();
  for (const Buffer& part : parts) to = std::ranges::copy(part.bytes(), to).out;
  ++stats_.gather_copied;
  work_.bytes_copied += size;
  return copy;
}

}  // namespace bx::engine
