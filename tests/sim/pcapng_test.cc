// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/pcapng.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

std::vector<char> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint32_t word(const std::vector<char>& bytes, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

TEST(Pcapng, create__says_why_a_file_cannot_be_written) {
  const auto writer = PcapngWriter::create(::testing::TempDir() + "no/such/folder.pcapng");
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().sys, ENOENT);
}

TEST(Pcapng, flush__says_that_the_disk_is_full) {
  auto writer = PcapngWriter::create("/dev/full");
  ASSERT_TRUE(writer.has_value());
  const Result<> flushed = (*writer)->flush();
  ASSERT_FALSE(flushed.has_value());
  EXPECT_EQ(flushed.error().sys, ENOSPC);
}

// Every block: type, length, body, length again, in words of four bytes.
TEST(Pcapng, write__makes_blocks_that_chain) {
  const std::string path = ::testing::TempDir() + "blocks.pcapng";
  auto writer = PcapngWriter::create(path);
  ASSERT_TRUE(writer.has_value());
  EXPECT_EQ((*writer)->add_interface("host0", testing::gbps(100)), 0U);
  EXPECT_EQ((*writer)->add_interface("leaf0:12", testing::gbps(400)), 1U);
  std::array<std::byte, 61> frame{};
  const Picoseconds late{0x1'2345'6789'abLL};
  (*writer)->write(1, late, Direction::received, frame);
  (*writer)->write(0, late, Direction::sent, std::span(frame).first(60));
  EXPECT_EQ((*writer)->frames(), 2U);
  ASSERT_TRUE((*writer)->flush().has_value());
  const std::vector<char> bytes = contents(path);
  std::vector<std::uint32_t> types;
  std::vector<std::size_t> offsets;
  std::size_t offset = 0;
  while (offset + 12 <= bytes.size()) {
    const std::uint32_t length = word(bytes, offset + 4);
    ASSERT_GE(length, 12U);
    ASSERT_EQ(length % 4, 0U);
    ASSERT_LE(offset + length, bytes.size());
    EXPECT_EQ(word(bytes, offset + length - 4), length);
    types.push_back(word(bytes, offset));
    offsets.push_back(offset);
    offset += length;
  }
  EXPECT_EQ(offset, bytes.size());
  EXPECT_EQ(types, (std::vector<std::uint32_t>{0x0a0d0d0a, 1, 1, 6, 6}));
  EXPECT_EQ(word(bytes, offsets[3] + 8), 1U);  // interface
  EXPECT_EQ(word(bytes, offsets[3] + 12), 0x123U);
  EXPECT_EQ(word(bytes, offsets[3] + 16), 0x456789abU);
  EXPECT_EQ(word(bytes, offsets[3] + 20), 61U);
  EXPECT_EQ(word(bytes, offsets[3] + 28 + 64 + 4), 1U);  // flags: inbound
  EXPECT_EQ(word(bytes, offsets[4] + 28 + 60 + 4), 2U);
}

}  // namespace
}  // namespace bx::sim
