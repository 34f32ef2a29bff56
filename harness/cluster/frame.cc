// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/frame.h"

#include <fmt/format.h>

#include "libbx/base/check.h"

namespace bx::harness {

std::string frame_of(const Json& message) {
  const std::string body = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  BX_CHECK(body.size() <= kFrameBytesMax, "a control message is longer than a frame may be");
  std::string frame;
  for (std::size_t i = 0; i < kFrameHeaderBytes; ++i) {
    frame.push_back(static_cast<char>((body.size() >> (8 * i)) & 0xffU));
  }
  return frame + body;
}

Parsed<std::optional<Json>> FrameReader::next() {
  if (pending_bytes() < kFrameHeaderBytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kFrameHeaderBytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(pending_[begin_ + i])) << (8 * i);
  }
  if (length > bytes_max_) {
    return tl::unexpected(fmt::format("a message of {} bytes; at most {} are taken", length, bytes_max_));
  }
  if (pending_bytes() < kFrameHeaderBytes + length) return std::nullopt;
  const auto body = pending_.begin() + static_cast<std::ptrdiff_t>(begin_ + kFrameHeaderBytes);
  Json message = Json::parse(body, body + static_cast<std::ptrdiff_t>(length), nullptr, false);
  begin_ += kFrameHeaderBytes + length;
  if (begin_ == pending_.size() || begin_ > (std::size_t{1} << 16U)) {
    pending_.erase(0, begin_);
    begin_ = 0;
  }
  if (!message.is_object()) return tl::unexpected(std::string("a message that is no JSON object"));
  const auto kind = message.find("kind");
  if (kind == message.end() || !kind->is_string()) {
    return tl::unexpected(std::string("a message without a kind"));
  }
  return message;
}

}  // namespace bx::harness
