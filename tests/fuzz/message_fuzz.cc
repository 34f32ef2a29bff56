// SPDX-License-Identifier: BSD-3-Clause
// wire::decode on what a receive may hold: it refuses, or it gives back a message that encodes to the same.
// And wire::Batch: what it reads lies in the bytes, one behind the other, and no byte belongs to nothing.
#include <algorithm>
#include <array>

#include "libbx/base/check.h"
#include "libbx/wire/batch.h"
#include "libbx/wire/message.h"
#include "tests/fuzz/targets.h"

namespace bx::fuzz {
namespace {

void fuzz_batch(std::span<const std::byte> bytes) {
  const wire::Batch batch(bytes);
  std::size_t end = 0;
  std::uint32_t at = 0;
  do {
    wire::Item item;
    if (!batch.read(at, item)) return;
    BX_CHECK(item.offset == at + (at == 0 ? wire::kHeaderBytes : wire::kFollowerBytes), "a body elsewhere");
    BX_CHECK(at == (end == 0 ? 0 : wire::follower_place(end)), "a message that is not behind the one before");
    end = item.offset + item.bytes;
    BX_CHECK(end <= bytes.size() && batch.body(item).size() == item.bytes, "a body beyond the bytes");
    at = batch.after(item);
  } while (at > 0);
  BX_CHECK(end == bytes.size(), "bytes that belong to nothing");
}

}  // namespace

void fuzz_message(std::span<const std::byte> bytes) {
  const auto message = wire::decode(bytes);
  const bool eager =
      bytes.size() >= wire::kHeaderBytes && wire::is_eager(*wire::LoadedHeader(bytes.data()), bytes.size());
  const auto begins_batch = [](const wire::MessageHeader& header) {
    return wire::begins_batch(header) || wire::begins_batch_by_offer(header);
  };
  if (bytes.size() >= wire::kHeaderBytes && begins_batch(*wire::LoadedHeader(bytes.data()))) {
    BX_CHECK(!message, "a batch that is one message");
    fuzz_batch(bytes);
  }
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
