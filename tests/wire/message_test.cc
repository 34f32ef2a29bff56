// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/wire/message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/property.h"

namespace bx::wire {
namespace {

constexpr auto kOffered = MessageFlags::offered;
constexpr auto kByWrite = MessageFlags::offered | MessageFlags::granted_write;

// Envelope and payload as they lie in a receive.
std::vector<std::byte> bytes_of(const Message& message) {
  std::vector<std::byte> out(kEnvelopeBytesMax);
  out.resize(encode_envelope(message, out));
  out.insert(out.end(), message.payload.begin(), message.payload.end());
  return out;
}

Message message_of(MessageKind kind, MessageFlags flags = MessageFlags::none) {
  Message m;
  m.header = {.kind = kind,
              .flags = flags,
              .status = 0,
              .epoch = 0x1122,
              .control_ack = 0x3344,
              .credit_grant = 0x55667788,
              .session = 0x99aabbcc,
              .call = 0x0102030405060708,
              .payload_bytes = 0};
  m.offer = {
      .transfer = 0xa1a2a3a4, .rkey = 0xb1b2b3b4, .addr = 0xc1c2c3c4c5c6c7c8, .length = 0xd1d2d3d4d5d6d7d8};
  m.grant = {.transfer = 0xe1e2e3e4,
             .target = 0xf1f2,
             .offset = 0x1112131415161718,
             .length = 0x2122232425262728,
             .addr = 0x3132333435363738,
             .rkey = 0x41424344};
  m.done = {.transfer = 0x51525354};
  return m;
}

std::vector<Message> all_kinds() {
  return {message_of(MessageKind::request),
          message_of(MessageKind::request, kOffered),
          message_of(MessageKind::request, kByWrite),
          message_of(MessageKind::response),
          message_of(MessageKind::response, kOffered),
          message_of(MessageKind::response, kByWrite),
          message_of(MessageKind::credit_grant),
          message_of(MessageKind::write_grant),
          message_of(MessageKind::transfer_done)};
}

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[std::to_integer<unsigned>(b) >> 4U];
    out += kDigits[std::to_integer<unsigned>(b) & 15U];
  }
  return out;
}

bool has_offer(const Message& m) {
  return has(m.header.flags, MessageFlags::offered);
}

TEST(Message, encode_envelope__golden_bytes) {
  const std::string header =
      "2211"
      "4433"
      "88776655"
      "ccbbaa99"
      "0807060504030201"
      "00000000";
  const std::string offer =
      "a4a3a2a1"
      "b4b3b2b1"
      "c8c7c6c5c4c3c2c1"
      "d8d7d6d5d4d3d2d1";
  EXPECT_EQ(hex(bytes_of(message_of(MessageKind::request))), "01010000" + header);
  EXPECT_EQ(hex(bytes_of(message_of(MessageKind::request, kOffered))), "01010100" + header + offer);
  EXPECT_EQ(hex(bytes_of(message_of(MessageKind::response, kByWrite))), "01020300" + header + offer);
  EXPECT_EQ(hex(bytes_of(message_of(MessageKind::credit_grant))), "01030000" + header);
  EXPECT_EQ(hex(bytes_of(message_of(MessageKind::write_grant))), "01040000" + header +
                                                                     "e4e3e2e1"
                                                                     "f2f1"
                                                                     "1817161514131211"
                                                                     "2827262524232221"
                                                                     "3837363534333231"
                                                                     "44434241");
  EXPECT_EQ(hex(bytes_of(message_of(MessageKind::transfer_done))), "01050000" + header + "54535251");
}

TEST(Message, encode_envelope__fits_the_constants) {
  for (const Message& m : all_kinds()) {
    const std::size_t size = bytes_of(m).size();
    EXPECT_GE(size, kHeaderBytes);
    EXPECT_LE(size, kEnvelopeBytesMax);
  }
  EXPECT_EQ(bytes_of(message_of(MessageKind::write_grant)).size(), kEnvelopeBytesMax);
}

TEST(Message, decode__gives_back_every_kind) {
  for (const Message& m : all_kinds()) {
    const auto bytes = bytes_of(m);
    const auto decoded = decode(bytes);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().detail;
    EXPECT_EQ(decoded->header, m.header);
    EXPECT_EQ(decoded->offer, has_offer(m) ? m.offer : Offer{});
    EXPECT_EQ(decoded->grant, m.header.kind == MessageKind::write_grant ? m.grant : WriteGrant{});
    EXPECT_EQ(decoded->done, m.header.kind == MessageKind::transfer_done ? m.done : TransferDone{});
    EXPECT_TRUE(decoded->payload.empty());
  }
}

TEST(Message, decode__gives_back_payload_and_status) {
  const std::vector<std::byte> payload(777, std::byte{0x5a});
  Message m = message_of(MessageKind::response);
  m.header.status = status_of(ErrorCode::exhausted);
  m.header.payload_bytes = 777;
  m.payload = payload;
  const auto bytes = bytes_of(m);
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->header.status, m.header.status);
  EXPECT_EQ(decoded->payload.data(), bytes.data() + kHeaderBytes);
  EXPECT_EQ(decoded->payload.size(), 777U);
}

TEST(Message, decode__refuses_every_truncation) {
  for (const Message& m : all_kinds()) {
    const auto bytes = bytes_of(m);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const auto decoded = decode(std::span(bytes).first(length));
      ASSERT_FALSE(decoded.has_value()) << hex(bytes) << " cut to " << length;
      EXPECT_EQ(decoded.error().code, ErrorCode::protocol);
    }
  }
}

TEST(Message, decode__refuses_a_payload_of_another_length) {
  std::vector<std::byte> payload(10);
  Message m = message_of(MessageKind::request);
  m.header.payload_bytes = 10;
  m.payload = payload;
  auto bytes = bytes_of(m);
  EXPECT_TRUE(decode(bytes).has_value());
  EXPECT_FALSE(decode(std::span(bytes).first(bytes.size() - 1)).has_value());
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode(bytes).has_value());
}

TEST(Message, decode__refuses_a_payload_where_none_belongs) {
  const std::vector<std::byte> payload(4);
  for (Message m : all_kinds()) {
    m.header.payload_bytes = 4;
    m.payload = payload;
    const bool eager =
        !has_offer(m) && (m.header.kind == MessageKind::request || m.header.kind == MessageKind::response);
    EXPECT_EQ(decode(bytes_of(m)).has_value(), eager) << hex(bytes_of(m));
  }
}

TEST(Message, decode__refuses_an_offer_of_nothing) {
  Message m = message_of(MessageKind::request, kOffered);
  m.offer.length = 0;
  EXPECT_FALSE(decode(bytes_of(m)).has_value());
}

TEST(Message, decode__refuses_every_other_version) {
  auto bytes = bytes_of(message_of(MessageKind::request));
  for (unsigned version = 0; version < 256; ++version) {
    bytes[0] = static_cast<std::byte>(version);
    EXPECT_EQ(decode(bytes).has_value(), version == kVersion);
  }
}

TEST(Message, decode__refuses_every_unknown_kind) {
  for (unsigned kind = 0; kind < 256; ++kind) {
    Message m = message_of(static_cast<MessageKind>(kind));
    EXPECT_EQ(decode(bytes_of(m)).has_value(), kind >= 1 && kind <= 5) << kind;
  }
}

TEST(Message, decode__refuses_every_flag_that_does_not_belong) {
  for (unsigned kind = 1; kind <= 5; ++kind) {
    for (unsigned flags = 0; flags < 256; ++flags) {
      const Message m = message_of(static_cast<MessageKind>(kind), static_cast<MessageFlags>(flags));
      const unsigned own = flags & ~24U;  // but for requests for credit, which any message may bring
      const bool known = own == 0 || (kind <= 2 && (own == 1 || own == 3));
      EXPECT_EQ(decode(bytes_of(m)).has_value(), known) << kind << ' ' << flags;
    }
  }
}

TEST(Message, decode__refuses_a_status_of_anything_but_a_response) {
  for (Message m : all_kinds()) {
    m.header.status = 3;
    EXPECT_EQ(decode(bytes_of(m)).has_value(), m.header.kind == MessageKind::response);
  }
}

// Whatever decodes encodes to the same bytes: nothing in a message is ignored.
TEST(Message, decode__inverts_encode_on_arbitrary_bytes) {
  test::expect_property([](std::vector<std::uint8_t> tail) {
    std::vector<std::uint8_t> raw = {kVersion, *rc::gen::inRange<std::uint8_t>(0, 7),
                                     *rc::gen::inRange<std::uint8_t>(0, 5),
                                     *rc::gen::element<std::uint8_t>(0, 0, 0, 9)};
    const auto fields = *rc::gen::container<std::vector<std::uint8_t>>(
        static_cast<std::size_t>(*rc::gen::inRange(20, 60)), rc::gen::arbitrary<std::uint8_t>());
    raw.insert(raw.end(), fields.begin(), fields.end());
    raw.insert(raw.end(), tail.begin(), tail.end());
    if (raw.size() >= kHeaderBytes) {  // let the payload length be right half of the time
      const auto payload = static_cast<std::uint8_t>(raw.size() - kHeaderBytes);
      if (*rc::gen::arbitrary<bool>()) {
        raw[24] = payload;
        raw[25] = raw[26] = raw[27] = 0;
      }
    }
    const auto bytes = std::as_bytes(std::span(raw));
    const auto decoded = decode(bytes);
    RC_CLASSIFY(decoded.has_value());
    if (decoded) RC_ASSERT(bytes_of(*decoded) == std::vector<std::byte>(bytes.begin(), bytes.end()));
  });
}

// The short way takes exactly the eager requests and responses that decode() takes, and reads the same
// header.
TEST(Message, is_eager__agrees_with_decode) {
  const auto agrees = [](std::span<const std::byte> bytes) {
    if (bytes.size() < kHeaderBytes) return !decode(bytes).has_value();
    const MessageHeader header = *LoadedHeader(bytes.data());
    const bool eager = is_eager(header, bytes.size());
    const auto decoded = decode(bytes);
    const bool expected =
        decoded && !has(decoded->header.flags, MessageFlags::offered) &&
        (decoded->header.kind == MessageKind::request || decoded->header.kind == MessageKind::response);
    return eager == expected && (!eager || header == decoded->header);
  };
  for (const std::size_t size : {0U, 27U, 28U, 29U, 52U}) {
    std::vector<std::byte> bytes(size);
    if (size >= kHeaderBytes) bytes[24] = static_cast<std::byte>(size - kHeaderBytes);
    for (unsigned first = 0; size > 3 && first < 1U << 14U; ++first) {
      bytes[0] = static_cast<std::byte>(first & 3U);
      bytes[1] = static_cast<std::byte>(first >> 2U & 7U);
      bytes[2] = static_cast<std::byte>(first >> 5U & 7U);
      bytes[3] = static_cast<std::byte>(first >> 8U);
      ASSERT_TRUE(agrees(bytes)) << hex(bytes);
    }
    ASSERT_TRUE(agrees(bytes)) << size;
  }
  for (const Message& m : all_kinds()) ASSERT_TRUE(agrees(bytes_of(m)));
}

TEST(Announcement, decode__inverts_encode) {
  const Announcement announcement{.target = 0xa1b2, .control_ack = 0xc3d4};
  EXPECT_EQ(encode(announcement), 0xa1b2c3d4U);
  EXPECT_EQ(decode_announcement(0xa1b2c3d4U), announcement);
}

TEST(Message, status_of__round_trips_and_unknown_ones_are_protocol_errors) {
  for (unsigned code = 0; code <= static_cast<unsigned>(kErrorCodeLast); ++code) {
    const auto error = static_cast<ErrorCode>(code);
    EXPECT_NE(status_of(error), 0);
    EXPECT_EQ(code_of(status_of(error)), error);
  }
  EXPECT_EQ(code_of(0), ErrorCode::protocol);
  EXPECT_EQ(code_of(static_cast<std::uint8_t>(status_of(kErrorCodeLast) + 1)), ErrorCode::protocol);
  EXPECT_EQ(code_of(255), ErrorCode::protocol);
}

}  // namespace
}  // namespace bx::wire
