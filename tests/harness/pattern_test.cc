// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace bx::harness {
namespace {

TEST(pattern, fill_request__header_reads_back_and_the_rest_is_pattern) {
  std::vector<std::byte> bytes(40);
  fill_request({0x0102030405060708, 77}, bytes);
  EXPECT_EQ(bytes[0], std::byte{8});  // little-endian
  const auto header = read_request_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->call, 0x0102030405060708U);
  EXPECT_EQ(header->answer_bytes, 77U);
  const auto rest = std::span(bytes).subspan(kRequestHeaderBytes);
  EXPECT_EQ(find_wrong_byte(PatternOf::request, header->call, rest), std::nullopt);
  EXPECT_FALSE(read_request_header(std::span(bytes).first(15)).has_value());
}

TEST(pattern, find_wrong_byte__every_single_byte_counts) {
  for (const std::size_t size : {0U, 1U, 7U, 8U, 9U, 16U, 31U}) {
    std::vector<std::byte> bytes(size);
    fill_pattern(PatternOf::answer, 5, bytes);
    EXPECT_EQ(find_wrong_byte(PatternOf::answer, 5, bytes), std::nullopt);
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] ^= std::byte{1};
      EXPECT_EQ(find_wrong_byte(PatternOf::answer, 5, bytes), i) << size;
      bytes[i] ^= std::byte{1};
    }
  }
}

TEST(pattern, find_wrong_byte__other_calls_other_direction_and_shifts_differ) {
  std::vector<std::byte> bytes(64);
  fill_pattern(PatternOf::answer, 5, bytes);
  EXPECT_TRUE(find_wrong_byte(PatternOf::answer, 6, bytes));
  EXPECT_TRUE(find_wrong_byte(PatternOf::request, 5, bytes));
  std::rotate(bytes.begin(), bytes.begin() + 8, bytes.end());
  EXPECT_EQ(find_wrong_byte(PatternOf::answer, 5, bytes), 0U);
}

}  // namespace
}  // namespace bx::harness
