// SPDX-License-Identifier: BSD-3-Clause
// wire::FrameParser on a byte stream: the same frames come out however the stream is cut, and each of them
// survives being sent on.
#include <optional>
#include <vector>

#include "libbx/base/check.h"
#include "libbx/wire/hello.h"
#include "tests/fuzz/targets.h"

namespace bx::fuzz {
namespace {

struct Parsed {
  std::vector<wire::HandshakeFrame> frames;
  bool failed = false;

  friend bool operator==(const Parsed&, const Parsed&) = default;
};

Parsed parse(std::span<const std::byte> bytes, std::size_t piece) {
  Parsed parsed;
  wire::FrameParser parser;
  while (!bytes.empty() && !parsed.failed) {
    const std::size_t size = std::min(piece, bytes.size());
    parser.feed(bytes.first(size));
    bytes = bytes.subspan(size);
    for (;;) {
      auto frame = parser.next();
      parsed.failed = !frame;
      if (!frame || !frame->has_value()) break;
      parsed.frames.push_back(**frame);
    }
  }
  return parsed;
}

}  // namespace

void fuzz_handshake(std::span<const std::byte> bytes) {
  const Parsed whole = parse(bytes, bytes.size());
  BX_CHECK(parse(bytes, 1) == whole, "the frames depend on how the stream is cut");
  BX_CHECK(parse(bytes, 7) == whole, "the frames depend on how the stream is cut");
  for (const wire::HandshakeFrame& frame : whole.frames) {
    const auto again = wire::encode_frame(frame);
    const Parsed reparsed = parse(again, again.size());
    BX_CHECK(!reparsed.failed && reparsed.frames.size() == 1 && reparsed.frames.front() == frame,
             "a frame that does not survive being sent on");
  }
}

}  // namespace bx::fuzz
