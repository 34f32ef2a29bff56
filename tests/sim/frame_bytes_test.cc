// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/frame_bytes.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "sim/model/wire_size.h"

namespace bx::sim {
namespace {

using Bytes = std::array<std::byte, kCapturedBytesMax>;

constexpr std::size_t kIp = 14;
constexpr std::size_t kBth = kIp + 20 + 8;

Frame sample(BthOpcode opcode, std::uint32_t payload_bytes) {
  Frame frame;
  frame.opcode = opcode;
  frame.payload_bytes = payload_bytes;
  frame.src_host = 0x0102;
  frame.dst_host = 0x0304;
  frame.udp_src_port = 0xc123;
  frame.dscp = 26;
  frame.ecn = Ecn::capable;
  frame.dst_qp = 0x112233;
  frame.psn = 0x445566;
  return frame;
}

std::vector<unsigned> written(const Frame& frame) {
  Bytes bytes;
  const std::size_t size = write_frame(frame, switch_mac(7, 9), bytes);
  std::vector<unsigned> result;
  for (std::size_t i = 0; i < size; ++i) result.push_back(std::to_integer<unsigned>(bytes[i]));
  return result;
}

std::vector<unsigned> part(const std::vector<unsigned>& bytes, std::size_t from, std::size_t count) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
          bytes.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

// What is captured and what serialisation counts must agree, for every opcode and padding.
TEST(FrameBytes, write_frame__is_as_long_as_the_wire_says) {
  for (const unsigned opcode :
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23}) {
    for (const std::uint32_t payload : std::initializer_list<std::uint32_t>{0, 1, 2, 3, 4, 63, 1024, 4096}) {
      const auto op = static_cast<BthOpcode>(opcode);
      EXPECT_EQ(written(sample(op, payload)).size() + kUncapturedBytes, wire_bytes(op, payload)) << opcode;
    }
  }
  EXPECT_EQ(written(sample(BthOpcode::cnp, 0)).size() + kUncapturedBytes, wire_bytes(BthOpcode::cnp, 0));
}

TEST(FrameBytes, write_frame__puts_every_header_field_in_its_place) {
  Frame frame = sample(BthOpcode::write_only_imm, 5);
  frame.solicited = frame.ack_req = true;
  frame.va = 0x0102030405060708;
  frame.rkey = 0x0a0b0c0d;
  frame.dma_length = 5;
  frame.imm = 0xdeadbeef;
  const std::vector<unsigned> bytes = written(frame);
  EXPECT_EQ(part(bytes, 0, 14), (std::vector<unsigned>{2, 0, 0, 0, 3, 4, 2, 0, 0, 0, 1, 2, 8, 0}));
  EXPECT_EQ(part(bytes, kIp, 2), (std::vector<unsigned>{0x45, 26U << 2U | 2U}));
  EXPECT_EQ(part(bytes, kIp + 2, 2), (std::vector<unsigned>{0, 20 + 8 + 12 + 20 + 8 + 4}));
  EXPECT_EQ(part(bytes, kIp + 12, 8), (std::vector<unsigned>{10, 0, 1, 3, 10, 0, 3, 5}));
  EXPECT_EQ(part(bytes, kIp + 20, 8), (std::vector<unsigned>{0xc1, 0x23, 0x12, 0xb7, 0, 52, 0, 0}));
  EXPECT_EQ(part(bytes, kBth, 12), (std::vector<unsigned>{11, 0x80 | 0x40 | 3U << 4U, 0xff, 0xff, 0, 0x11,
                                                          0x22, 0x33, 0x80, 0x44, 0x55, 0x66}));
  EXPECT_EQ(part(bytes, kBth + 12, 20), (std::vector<unsigned>{1,  2,  3, 4, 5, 6, 7,    8,    10,   11,
                                                               12, 13, 0, 0, 0, 5, 0xde, 0xad, 0xbe, 0xef}));
  EXPECT_EQ(part(bytes, kBth + 32, 8),
            (std::vector<unsigned>(8, 0)));  // lengths only: zeros, and 3 of padding
}

TEST(FrameBytes, write_frame__copies_the_payload) {
  FramePool pool;
  Frame* frame = pool.make();
  *frame = sample(BthOpcode::send_only, 3);
  frame->payload = pool.make_payload();
  for (unsigned i = 0; i < 3; ++i) frame->payload->bytes[i] = static_cast<std::byte>(0xa0 + i);
  EXPECT_EQ(part(written(*frame), kBth + 12, 4), (std::vector<unsigned>{0xa0, 0xa1, 0xa2, 0}));
  pool.free(frame);
}

// IEEE 802.1Q-2018, figure 36-1.
TEST(FrameBytes, write_frame__pfc) {
  Frame frame;
  frame.kind = FrameKind::pfc;
  frame.pfc_enable = 0b1000;
  frame.pfc_quanta[3] = 0xfffe;
  const std::vector<unsigned> bytes = written(frame);
  EXPECT_EQ(bytes.size(), 60U);
  EXPECT_EQ(part(bytes, 0, 18),
            (std::vector<unsigned>{1, 0x80, 0xc2, 0, 0, 1, 2, 1, 0, 7, 0, 9, 0x88, 8, 1, 1, 0, 8}));
  EXPECT_EQ(part(bytes, 18, 16),
            (std::vector<unsigned>{0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0}));
}

// Fields that change on the way do not count; all others do.
TEST(FrameBytes, icrc_of__masks_what_may_change_and_nothing_else) {
  Bytes bytes;
  const std::size_t size = write_frame(sample(BthOpcode::write_only, 32), {}, bytes);
  const std::span<std::byte> packet = std::span(bytes).subspan(kIp, size - kIp - 4);
  const std::uint32_t icrc = icrc_of(packet);
  std::vector<std::size_t> ignored;
  for (std::size_t i = 0; i < packet.size(); ++i) {
    packet[i] ^= std::byte{0x21};
    if (icrc_of(packet) == icrc) ignored.push_back(i);
    packet[i] ^= std::byte{0x21};
  }
  EXPECT_EQ(ignored, (std::vector<std::size_t>{1, 8, 10, 11, 26, 27, 32}));
}

}  // namespace
}  // namespace bx::sim
