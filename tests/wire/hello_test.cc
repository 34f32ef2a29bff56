// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/wire/hello.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/property.h"

namespace bx::wire {
namespace {

using Bytes = std::vector<std::byte>;

Hello sample() {
  Hello hello;
  hello.version = 1;
  hello.epoch = 0x0102;
  for (std::size_t i = 0; i < hello.gid.size(); ++i) hello.gid[i] = static_cast<std::uint8_t>(i + 1);
  hello.qp = 0x00030405;
  hello.psn = 0x00060708;
  hello.mtu_bytes = 4096;
  hello.credits = 16;
  hello.control_slots = 2;
  hello.receive_bytes = 8256;
  hello.reads_max = 16;
  hello.capabilities = 0;
  return hello;
}

Result<std::optional<HandshakeFrame>> parse(const Bytes& bytes) {
  FrameParser parser;
  parser.feed(bytes);
  return parser.next();
}

// Fields of an encoded Hello: (position of its tag, length with tag and length byte).
struct Field {
  std::size_t at;
  std::size_t length;
};
constexpr std::size_t kFieldsAt = 4 + 1 + 4;  // frame length, frame type, magic

std::vector<Field> fields_of(const Bytes& frame) {
  std::vector<Field> fields;
  for (std::size_t at = kFieldsAt; at < frame.size();) {
    fields.push_back({at, 2 + std::to_integer<std::size_t>(frame[at + 1])});
    at += fields.back().length;
  }
  return fields;
}

void set_length(Bytes& frame) {
  const std::size_t length = frame.size() - 4;
  for (std::size_t i = 0; i < 4; ++i) frame[i] = static_cast<std::byte>(length >> (8 * i));
}

Bytes cut(const Bytes& frame, const Field& field) {
  Bytes out = frame;
  const auto from = out.begin() + static_cast<std::ptrdiff_t>(field.at);
  out.erase(from, from + static_cast<std::ptrdiff_t>(field.length));
  set_length(out);
  return out;
}

Bytes with_field(const Bytes& frame, std::uint8_t tag, std::size_t length) {
  Bytes out = frame;
  out.push_back(static_cast<std::byte>(tag));
  out.push_back(static_cast<std::byte>(length));
  out.resize(out.size() + length);
  set_length(out);
  return out;
}

TEST(EncodeFrame, golden_bytes) {
  Bytes expected;
  for (const unsigned b :
       {79U, 0U,  0U,  0U,  1U,  0x21U, 0x42U, 0x58U, 0x31U,  // length, type, magic "!BX1"
        1U,  2U,  1U,  0U,  2U,  2U,    2U,    1U,            // version, epoch
        3U,  16U, 1U,  2U,  3U,  4U,    5U,    6U,    7U,    8U,    9U, 10U,
        11U, 12U, 13U, 14U, 15U, 16U,                                        // gid
        4U,  4U,  5U,  4U,  3U,  0U,    5U,    4U,    8U,    7U,    6U, 0U,  // qp, psn
        6U,  4U,  0U,  16U, 0U,  0U,    7U,    4U,    16U,   0U,    0U, 0U,  // mtu, credits
        8U,  4U,  2U,  0U,  0U,  0U,    9U,    4U,    0x40U, 0x20U, 0U, 0U,  // control slots, receive bytes
        10U, 4U,  16U, 0U,  0U,  0U,    11U,   4U,    0U,    0U,    0U, 0U}) {  // reads, capabilities
    expected.push_back(static_cast<std::byte>(b));
  }
  EXPECT_EQ(encode_frame(sample()), expected);
  const Bytes reject = {std::byte{6}, {}, {}, {}, std::byte{2}, std::byte{1}, std::byte{64}, {}, {}, {}};
  EXPECT_EQ(encode_frame(Reject{RejectReason::peers_exhausted, 64}), reject);
  const Bytes ready = {std::byte{1}, {}, {}, {}, std::byte{3}};
  EXPECT_EQ(encode_frame(Ready{}), ready);
}

TEST(FrameParser, next__gives_back_any_hello) {
  test::expect_property([](std::uint16_t version, std::uint16_t epoch, std::uint32_t qp, std::uint32_t psn,
                           std::uint32_t credits, std::uint32_t receive_bytes,
                           std::array<std::uint8_t, 16> gid) {
    Hello hello = sample();
    hello.version = version;
    hello.epoch = epoch;
    hello.qp = qp;
    hello.psn = psn;
    hello.credits = credits;
    hello.receive_bytes = receive_bytes;
    hello.gid = gid;
    const auto frame = parse(encode_frame(hello));
    RC_ASSERT((frame.has_value() && frame->has_value()));
    RC_ASSERT(std::get<Hello>(**frame) == hello);
  });
}

TEST(FrameParser, next__gives_back_reject_and_ready) {
  const Reject reject{RejectReason::version, 77};
  EXPECT_EQ(std::get<Reject>(**parse(encode_frame(reject))), reject);
  EXPECT_TRUE(std::holds_alternative<Ready>(**parse(encode_frame(Ready{}))));
}

TEST(FrameParser, feed__takes_bytes_one_by_one_and_several_frames_at_once) {
  Bytes stream;
  for (const HandshakeFrame& frame :
       {HandshakeFrame(sample()), HandshakeFrame(Ready{}), HandshakeFrame(Reject{})}) {
    const Bytes bytes = encode_frame(frame);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  FrameParser slow;
  std::vector<std::size_t> kinds;
  for (const std::byte b : stream) {
    slow.feed({&b, 1});
    const auto frame = slow.next();
    ASSERT_TRUE(frame.has_value());
    if (frame->has_value()) kinds.push_back((*frame)->index());
  }
  EXPECT_EQ(kinds, (std::vector<std::size_t>{0, 2, 1}));
  FrameParser fast;
  fast.feed(stream);
  for (const std::size_t kind : kinds) EXPECT_EQ((**fast.next()).index(), kind);
  EXPECT_FALSE(fast.next()->has_value());
}

TEST(FrameParser, next__refuses_impossible_lengths_at_once) {
  for (const std::uint32_t length : {0U, 1025U, 0x01000000U, 0xffffffffU}) {
    Bytes head(4);
    for (std::size_t i = 0; i < 4; ++i) head[i] = static_cast<std::byte>(length >> (8 * i));
    EXPECT_EQ(parse(head).error().code, ErrorCode::protocol) << length;
  }
  Bytes longest(4);
  longest[1] = std::byte{4};  // 1024: allowed, and not complete
  EXPECT_FALSE(parse(longest)->has_value());
}

TEST(FrameParser, next__refuses_unknown_types) {
  for (unsigned type = 0; type < 256; ++type) {
    Bytes frame = encode_frame(Ready{});
    frame[4] = static_cast<std::byte>(type);
    EXPECT_EQ(parse(frame).has_value(), type == 3) << type;
  }
}

TEST(FrameParser, next__refuses_a_wrong_magic) {
  for (std::size_t i = 5; i < 9; ++i) {
    Bytes frame = encode_frame(sample());
    frame[i] ^= std::byte{0x10};
    EXPECT_FALSE(parse(frame).has_value());
  }
}

TEST(FrameParser, next__refuses_a_missing_field) {
  const Bytes frame = encode_frame(sample());
  const auto fields = fields_of(frame);
  ASSERT_EQ(fields.size(), 11U);
  for (const Field& field : fields) EXPECT_FALSE(parse(cut(frame, field)).has_value());
}

TEST(FrameParser, next__refuses_a_field_given_twice) {
  const Bytes frame = encode_frame(sample());
  for (const Field& field : fields_of(frame)) {
    Bytes twice = frame;
    for (std::size_t i = 0; i < field.length; ++i) twice.push_back(frame[field.at + i]);
    set_length(twice);
    EXPECT_FALSE(parse(twice).has_value());
  }
}

TEST(FrameParser, next__refuses_a_field_of_another_length) {
  const Bytes frame = encode_frame(sample());
  for (const Field& field : fields_of(frame)) {
    for (const std::size_t length : {std::size_t{0}, field.length - 3, field.length - 1, std::size_t{255}}) {
      const auto tag = std::to_integer<std::uint8_t>(frame[field.at]);
      EXPECT_FALSE(parse(with_field(cut(frame, field), tag, length)).has_value());
    }
  }
}

TEST(FrameParser, next__skips_unknown_optional_fields_only) {
  const Bytes frame = encode_frame(sample());
  for (unsigned tag = 0; tag < 256; ++tag) {
    // Known: the instance, the lanes, weight and most credits, and not of this length.
    const bool known_or_mandatory =
        tag < 0x80 || tag == 0x81 || tag == 0x88 || tag == 0x89 || tag == 0x90 || tag == 0x91;
    const auto parsed = parse(with_field(frame, static_cast<std::uint8_t>(tag), 5));
    EXPECT_EQ(parsed.has_value(), !known_or_mandatory) << tag;
    if (parsed) {
      EXPECT_EQ(std::get<Hello>(**parsed), sample());
    }
  }
  // An optional one may come twice: who does not know it cannot tell whether that is wrong.
  EXPECT_TRUE(parse(with_field(with_field(frame, 0xaf, 0), 0xaf, 3)).has_value());
}

TEST(FrameParser, next__reads_the_instance_if_there_is_one) {
  Hello hello = sample();
  EXPECT_EQ(std::get<Hello>(**parse(encode_frame(hello))).instance, 0U);
  hello.instance = 0x11223344;
  EXPECT_EQ(std::get<Hello>(**parse(encode_frame(hello))), hello);
}

TEST(FrameParser, next__reads_weight_and_most_credits_if_they_are_there) {
  Hello hello = sample();
  EXPECT_EQ(std::get<Hello>(**parse(encode_frame(hello))).weight, 1U);
  hello.weight = 12;
  hello.credits_max = 300;
  EXPECT_EQ(std::get<Hello>(**parse(encode_frame(hello))), hello);
}

TEST(FrameParser, next__reads_the_lanes_that_there_are) {
  for (std::size_t more = 0; more <= kLanesMax - 1; ++more) {
    Hello hello = sample();
    hello.more_lanes.count = more;
    for (std::uint32_t i = 0; i < more; ++i) hello.more_lanes.at[i] = {100 + i, 0xabcdef + i};
    if (more % 2 == 0) hello.control_lane = {9, 0x123456};
    EXPECT_EQ(std::get<Hello>(**parse(encode_frame(hello))), hello);
  }
}

TEST(FrameParser, next__refuses_lanes_that_cannot_be) {
  constexpr std::uint8_t kMoreLanes = 0x88;
  constexpr std::uint8_t kControlLane = 0x89;
  const Bytes frame = encode_frame(sample());
  for (const std::size_t length :
       {0U, 4U, 7U, 12U, 8U, 64U}) {  // the last two: of queue pair 0, and one too many
    EXPECT_FALSE(parse(with_field(frame, kMoreLanes, length)).has_value()) << length;
  }
  for (const std::size_t length : {0U, 4U, 8U, 16U}) {
    EXPECT_FALSE(parse(with_field(frame, kControlLane, length)).has_value()) << length;
  }
}

TEST(FrameParser, next__refuses_every_shortened_frame) {
  for (const HandshakeFrame& frame :
       {HandshakeFrame(sample()), HandshakeFrame(Reject{}), HandshakeFrame(Ready{})}) {
    const Bytes whole = encode_frame(frame);
    for (std::size_t size = 5; size < whole.size(); ++size) {
      Bytes shorter(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(parse(shorter)->has_value());  // more is to come
      set_length(shorter);
      EXPECT_FALSE(parse(shorter).has_value()) << size;
    }
  }
}

TEST(FrameParser, next__refuses_bytes_behind_reject_and_ready) {
  for (const HandshakeFrame& frame : {HandshakeFrame(Reject{}), HandshakeFrame(Ready{})}) {
    Bytes longer = encode_frame(frame);
    longer.push_back(std::byte{0});
    set_length(longer);
    EXPECT_FALSE(parse(longer).has_value());
  }
}

TEST(FrameParser, next__stays_failed) {
  FrameParser parser;
  Bytes bad = encode_frame(Ready{});
  bad[4] = std::byte{99};
  parser.feed(bad);
  EXPECT_FALSE(parser.next().has_value());
  parser.feed(encode_frame(Ready{}));
  EXPECT_FALSE(parser.next().has_value());
}

}  // namespace
}  // namespace bx::wire
