// SPDX-License-Identifier: GPL-2.0-only
// Messages on the control connection between a coordinator and an agent:
//
//   length of the body, 4 bytes little-endian | body: one JSON object in UTF-8, whose "kind" says what it is
//
// Nothing of a body is looked at before all of it is there, and no more is kept than the reader's limit.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "harness/base/units.h"

namespace bx::harness {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kFrameHeaderBytes = 4;
inline constexpr std::size_t kFrameBytesMax = std::size_t{16} << 20U;  // of a body
inline constexpr std::size_t kStrangerBytesMax = 4096;                 // before the peer has shown the token

// Header and body. The body must fit.
std::string frame_of(const Json& message);

class FrameReader {
 public:
  explicit FrameReader(std::size_t bytes_max = kFrameBytesMax) noexcept : bytes_max_(bytes_max) {}
  void set_limit(std::size_t bytes_max) noexcept { bytes_max_ = bytes_max; }

  void append(std::string_view bytes) { pending_.append(bytes); }
  // The next whole message; nothing if there is none yet. The error is a sentence, and then the connection is
  // of no more use: too long, no JSON object, or no "kind".
  [[nodiscard]] Parsed<std::optional<Json>> next();
  // Of messages that are not whole.
  [[nodiscard]] std::size_t pending_bytes() const noexcept { return pending_.size() - begin_; }

 private:
  std::size_t bytes_max_;
  std::string pending_;
  std::size_t begin_ = 0;  // of what next() has not taken
};

}  // namespace bx::harness
