// SPDX-License-Identifier: GPL-2.0-only
// What a member does with streams and with messages in parts.
#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/swarm/member.h"
#include "harness/swarm/swarm_bytes.h"

namespace bx::harness {
namespace {

// What a reader asks for: how many parts, of which lengths and bytes. Both ends draw them from the salt.
struct StreamWish {
  std::uint64_t salt = 0;
  std::uint64_t parts = 0;
};

std::size_t part_bytes(Prng& prng) {
  const std::size_t magnitude = std::size_t{1} << prng.below(15);
  return prng.below(magnitude) + 1;
}

}  // namespace

void Member::start_stream(std::size_t to, Session session) {
  if (streams_reading_ == kStreamsMax) return;
  ++streams_reading_;
  worker().spawn(read_stream(to, session, prng_.fork("stream")));
}

Task<> Member::read_stream(std::size_t to, Session session, Prng prng) {
  const StreamWish wish{.salt = prng.next(), .parts = prng.below(12)};
  const std::uint64_t stop_after = prng.chance(0.2) ? prng.below(wish.parts + 1) : wish.parts + 1;
  auto request = worker().copy_in(std::as_bytes(std::span(&wish, 1)));
  StreamOptions options{.window = static_cast<std::uint32_t>(prng.between(1, kStreamWindowMax))};
  if (prng.chance(0.2)) options.priority = Priority::high;
  if (request) {
    auto reader = co_await session.open_stream(std::move(*request), options);
    if (!reader) {
      end_stream(reader.error());
      co_return;
    }
    Prng parts(wish.salt);
    for (std::uint64_t i = 0; i < stop_after; ++i) {
      if (prng.chance(0.2)) {
        co_await worker().sleep_until(worker().now() +
                                      Duration(static_cast<std::int64_t>(prng.below(50'000))));
      }
      auto part = co_await reader->next();
      if (!part) {
        end_stream(part.error());
        co_return;
      }
      if (!*part) {
        if (i != wish.parts) fault("bytes", "a stream of host" + std::to_string(to) + " ended early");
        break;
      }
      const Buffer bytes = std::move(**part);
      if (bytes.size() != part_bytes(parts) || !is_filled(bytes.bytes(), wish.salt + i) || i >= wish.parts) {
        fault("bytes", "a part of a stream has other bytes, or is not the next");
      }
      ++swarm_.report().parts;
    }
  }
  --streams_reading_;
}

// What may end a stream before its end.
void Member::end_stream(const Error& error) {
  --streams_reading_;
  const bool honest = swarm_.plan().honest();
  if (error.scope >= ErrorScope::session) {
    if (honest) fault("errors", std::string("a session failed under a stream: ") + error.detail);
    return;
  }
  if (error.code == ErrorCode::exhausted || error.code == ErrorCode::unsupported) return;
  if (error.code == ErrorCode::cancelled && !honest) return;
  fault("errors", std::string("a stream: ") + error.detail);
}

void Member::open(StreamWriter writer) noexcept {
  if (prng_.chance(0.1)) return writer.fail(ErrorCode::unsupported);
  worker().spawn(write_stream(std::move(writer)));
}

Task<> Member::write_stream(StreamWriter writer) {
  StreamWish wish;
  if (writer.request().size() != sizeof wish) {
    fault("bytes", "a stream was opened with other bytes");
    co_return;
  }
  std::memcpy(&wish, writer.request().data(), sizeof wish);
  writer.request().reset();
  Prng parts(wish.salt);
  for (std::uint64_t i = 0; i < wish.parts; ++i) {
    auto part = writer.allocate(part_bytes(parts));
    if (!part) co_return writer.fail(ErrorCode::exhausted);
    fill(part->bytes(), wish.salt + i);
    if (i % 3 == 2) co_await worker().sleep_until(worker().now() + Duration(20'000));
    if (auto written = co_await writer.write(std::move(*part)); !written) co_return;
  }
  writer.finish();
}

// The same bytes in several parts; nothing if there is no memory for them.
std::optional<Gather> Member::in_parts(const Buffer& whole) {
  const std::size_t count = prng_.between(1, Gather::kPartsMax);
  Gather parts;
  std::size_t at = 0;
  for (std::size_t i = 1; i <= count; ++i) {
    const std::size_t end = i == count ? whole.size() : at + prng_.below(whole.size() - at + 1);
    auto part = some_buffer(end - at);
    if (!part) return std::nullopt;
    if (end > at) std::memcpy(part->data(), whole.data() + at, end - at);
    if (!parts.add(std::move(*part))) return std::nullopt;
    at = end;
  }
  return parts;
}

}  // namespace bx::harness
