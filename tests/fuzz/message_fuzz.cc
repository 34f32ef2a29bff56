// SPDX-License-Identifier: BSD-3-Clause
// wire::decode on what a receive may hold: it refuses, or it gives back a message that encodes to the same.
#include <algorithm>
#include <array>

#include "libbx/base/check.h"
#include "libbx/wire/message.h"
#include "tests/fuzz/targets.h"

namespace bx::fuzz {

void fuzz_message(std::span<const std::byte> bytes) {
  const auto message = wire::decode(bytes);
  const bool eager =
      bytes.size() >= wire::kHeaderBytes && wire::is_eager(*wire::LoadedHeader(bytes.data()), bytes.size());
  BX_CHECK(!eager || message, "the short way took what is not well-formed");
  if (!message) {
    BX_CHECK(message.error().code == ErrorCode::protocol, "a refusal of another kind");
    return;
  }
  std::array<std::byte, wire::kEnvelopeBytesMax> envelope;
  const std::size_t size = wire::encode_envelope(*message, envelope);
  BX_CHECK(size + message->payload.size() == bytes.size(), "bytes that belong to nothing");
  BX_CHECK(std::ranges::equal(std::span(envelope).first(size), bytes.first(size)), "a field that is ignored");
  BX_CHECK(message->payload.empty() || eager, "a payload the short way does not see");
  BX_CHECK(message->payload.empty() || message->payload.data() == bytes.data() + size, "a payload elsewhere");
}

}  // namespace bx::fuzz
