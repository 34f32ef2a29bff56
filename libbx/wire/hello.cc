// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/wire/hello.h"

#include <array>
#include <cstring>

#include "libbx/wire/codec.h"

namespace bx::wire {
namespace {

enum class FrameType : std::uint8_t { hello = 1, reject = 2, ready = 3 };

// Field tags of a Hello; each mandatory. A tag of 0x80 and up may be skipped by who does not know it.
enum Tag : std::uint8_t {
  kVersionTag = 1,
  kEpochTag = 2,
  kGidTag = 3,
  kQpTag = 4,
  kPsnTag = 5,
  kMtuTag = 6,
  kCreditsTag = 7,
  kControlSlotsTag = 8,
  kReceiveBytesTag = 9,
  kReadsMaxTag = 10,
  kCapabilitiesTag = 11,
  kInstanceTag = 0x81,
  kWeightTag = 0x90,
  kCreditsMaxTag = 0x91,
  kMoreLanesTag = 0x88,
  kControlLaneTag = 0x89,
};
constexpr unsigned kHelloTags = 11;
constexpr std::uint8_t kOptionalTag = 0x80;
constexpr std::size_t kLaneBytes = 8;  // queue pair u32, packet sequence number u32

tl::unexpected<Error> refuse(const char* detail) {
  return fail(ErrorCode::protocol, ErrorScope::session, detail);
}

template <std::unsigned_integral T>
void put_field(Writer& w, Tag tag, T value) {
  w.put(static_cast<std::uint8_t>(tag));
  w.put(static_cast<std::uint8_t>(sizeof(T)));
  w.put(value);
}

void put_lanes(Writer& w, Tag tag, std::span<const LaneAddress> lanes) {
  if (lanes.empty()) return;
  w.put(static_cast<std::uint8_t>(tag));
  w.put(static_cast<std::uint8_t>(lanes.size() * kLaneBytes));
  for (const LaneAddress& lane : lanes) {
    w.put(lane.qp);
    w.put(lane.psn);
  }
}

void put_hello(Writer& w, const Hello& hello) {
  w.put(kHelloMagic);
  put_field(w, kVersionTag, hello.version);
  put_field(w, kEpochTag, hello.epoch);
  w.put(static_cast<std::uint8_t>(kGidTag));
  w.put(static_cast<std::uint8_t>(hello.gid.size()));
  w.put_bytes(std::as_bytes(std::span(hello.gid)));
  put_field(w, kQpTag, hello.qp);
  put_field(w, kPsnTag, hello.psn);
  put_field(w, kMtuTag, hello.mtu_bytes);
  put_field(w, kCreditsTag, hello.credits);
  put_field(w, kControlSlotsTag, hello.control_slots);
  put_field(w, kReceiveBytesTag, hello.receive_bytes);
  put_field(w, kReadsMaxTag, hello.reads_max);
  put_field(w, kCapabilitiesTag, hello.capabilities);
  if (hello.instance != 0) put_field(w, kInstanceTag, hello.instance);
  if (hello.credits_max != 0) put_field(w, kCreditsMaxTag, hello.credits_max);
  if (hello.weight != 1) put_field(w, kWeightTag, hello.weight);
  put_lanes(w, kMoreLanesTag, std::span(hello.more_lanes.at).first(hello.more_lanes.count));
  if (hello.control_lane.qp != 0) put_lanes(w, kControlLaneTag, {&hello.control_lane, 1});
}

// A whole number of lanes, each with a queue pair, and no more than there is room for.
bool read_lanes(std::span<const std::byte> value, std::span<LaneAddress> out) {
  if (value.empty() || value.size() % kLaneBytes != 0 || value.size() > out.size() * kLaneBytes) return false;
  Reader r(value);
  for (LaneAddress& lane : out.first(value.size() / kLaneBytes)) {
    lane.qp = r.get<std::uint32_t>();
    lane.psn = r.get<std::uint32_t>();
    if (lane.qp == 0) return false;
  }
  return true;
}

// False if the length is not the field's or the tag is unknown and mandatory.
bool read_field(Hello& hello, std::uint8_t tag, std::span<const std::byte> value) {
  Reader r(value);
  const auto u16 = [&](std::uint16_t& out) {
    return value.size() == 2 && ((out = r.get<std::uint16_t>()), true);
  };
  const auto u32 = [&](std::uint32_t& out) {
    return value.size() == 4 && ((out = r.get<std::uint32_t>()), true);
  };
  switch (tag) {
    case kVersionTag:
      return u16(hello.version);
    case kEpochTag:
      return u16(hello.epoch);
    case kGidTag:
      if (value.size() != hello.gid.size()) return false;
      std::memcpy(hello.gid.data(), value.data(), value.size());
      return true;
    case kQpTag:
      return u32(hello.qp);
    case kPsnTag:
      return u32(hello.psn);
    case kMtuTag:
      return u32(hello.mtu_bytes);
    case kCreditsTag:
      return u32(hello.credits);
    case kControlSlotsTag:
      return u32(hello.control_slots);
    case kReceiveBytesTag:
      return u32(hello.receive_bytes);
    case kReadsMaxTag:
      return u32(hello.reads_max);
    case kCapabilitiesTag:
      return u32(hello.capabilities);
    case kInstanceTag:
      return u32(hello.instance);
    case kCreditsMaxTag:
      return u32(hello.credits_max);
    case kWeightTag:
      return u32(hello.weight);
    case kMoreLanesTag:
      hello.more_lanes.count = value.size() / kLaneBytes;
      return read_lanes(value, hello.more_lanes.at);
    case kControlLaneTag:
      return read_lanes(value, {&hello.control_lane, 1});
    default:
      return tag >= kOptionalTag;
  }
}

Result<HandshakeFrame> parse_hello(Reader r) {
  if (r.get<std::uint32_t>() != kHelloMagic) return refuse("not a ByteExpress handshake");
  Hello hello;
  unsigned seen = 0;
  while (!r.rest().empty()) {
    const auto tag = r.get<std::uint8_t>();
    const auto value = r.get_bytes(r.get<std::uint8_t>());
    if (!r.ok()) return refuse("a handshake field runs past the frame");
    if (!read_field(hello, tag, value))
      return refuse("a handshake field that is unknown or of the wrong length");
    if (tag >= kOptionalTag) continue;
    if (((seen >> tag) & 1U) != 0) return refuse("a handshake field given twice");
    seen |= 1U << tag;
  }
  if (!r.ok()) return refuse("a handshake field runs past the frame");
  if (seen != ((1U << (kHelloTags + 1)) - 2)) return refuse("a handshake field is missing");
  return HandshakeFrame(hello);
}

Result<HandshakeFrame> parse_frame(std::span<const std::byte> body) {
  Reader r(body);
  switch (static_cast<FrameType>(r.get<std::uint8_t>())) {
    case FrameType::hello:
      return parse_hello(r);
    case FrameType::reject: {
      Reject reject;
      reject.reason = static_cast<RejectReason>(r.get<std::uint8_t>());
      reject.supported = r.get<std::uint32_t>();
      if (!r.ok() || !r.rest().empty()) return refuse("a malformed rejection");
      return HandshakeFrame(reject);
    }
    case FrameType::ready:
      if (!r.ok() || !r.rest().empty()) return refuse("a malformed ready");
      return HandshakeFrame(Ready{});
  }
  return refuse("an unknown handshake frame");
}

}  // namespace

std::vector<std::byte> encode_frame(const HandshakeFrame& frame) {
  std::array<std::byte, kFrameBytesMax> body{};
  Writer w(body);
  if (const auto* hello = std::get_if<Hello>(&frame)) {
    w.put(static_cast<std::uint8_t>(FrameType::hello));
    put_hello(w, *hello);
  } else if (const auto* reject = std::get_if<Reject>(&frame)) {
    w.put(static_cast<std::uint8_t>(FrameType::reject));
    w.put(static_cast<std::uint8_t>(reject->reason));
    w.put(reject->supported);
  } else {
    w.put(static_cast<std::uint8_t>(FrameType::ready));
  }
  std::vector<std::byte> out(4 + w.size());
  Writer head(out);
  head.put(static_cast<std::uint32_t>(w.size()));
  head.put_bytes(std::span(body).first(w.size()));
  return out;
}

Result<std::optional<HandshakeFrame>> FrameParser::next() {
  if (buffer_.size() < 4) return std::optional<HandshakeFrame>{};
  const auto length = Reader(buffer_).get<std::uint32_t>();
  if (length == 0 || length > kFrameBytesMax) return refuse("a handshake frame of impossible length");
  if (buffer_.size() < 4 + std::size_t{length}) return std::optional<HandshakeFrame>{};
  auto frame = parse_frame(std::span<const std::byte>(buffer_).subspan(4, length));
  if (!frame) return tl::unexpected<Error>(frame.error());
  buffer_.erase(buffer_.begin(), buffer_.begin() + 4 + static_cast<std::ptrdiff_t>(length));
  return std::optional<HandshakeFrame>(*frame);
}

}  // namespace bx::wire
