// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/wire/codec.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/property.h"

namespace bx::wire {
namespace {

TEST(Writer, put__is_little_endian) {
  std::array<std::byte, 15> out{};
  Writer w(out);
  w.put(std::uint8_t{0x01});
  w.put(std::uint16_t{0x0203});
  w.put(std::uint32_t{0x04050607});
  w.put(std::uint64_t{0x08090a0b0c0d0e0f});
  EXPECT_EQ(w.size(), 15U);
  const std::array<unsigned, 15> expected = {1, 3, 2, 7, 6, 5, 4, 15, 14, 13, 12, 11, 10, 9, 8};
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::to_integer<unsigned>(out[i]), expected[i]);
}

TEST(Writer, put_bytes__appends_and_takes_nothing_too) {
  std::array<std::byte, 2> out{};
  Writer w(out);
  w.put_bytes({});
  const std::array<std::byte, 2> in = {std::byte{7}, std::byte{9}};
  w.put_bytes(in);
  EXPECT_EQ(out, in);
}

TEST(WriterDeathTest, put__past_the_end_dies) {
  std::array<std::byte, 3> out{};
  Writer w(out);
  EXPECT_DEATH(w.put(std::uint32_t{1}), "too small");
  w.put(std::uint16_t{1});
  EXPECT_DEATH(w.put_bytes(std::array<std::byte, 2>{}), "too small");
}

TEST(Reader, get__reads_back_what_was_put) {
  test::expect_property([](std::uint8_t a, std::uint16_t b, std::uint32_t c, std::uint64_t d) {
    std::array<std::byte, 15> bytes{};
    Writer w(bytes);
    w.put(a);
    w.put(b);
    w.put(c);
    w.put(d);
    Reader r(bytes);
    RC_ASSERT(r.get<std::uint8_t>() == a);
    RC_ASSERT(r.get<std::uint16_t>() == b);
    RC_ASSERT(r.get<std::uint32_t>() == c);
    RC_ASSERT(r.get<std::uint64_t>() == d);
    RC_ASSERT((r.ok() && r.rest().empty()));
  });
}

TEST(Reader, get__past_the_end_fails_for_good_and_yields_zeros) {
  const std::array<std::byte, 3> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  Reader r(bytes);
  EXPECT_EQ(r.get<std::uint16_t>(), 0x0201);
  EXPECT_EQ(r.get<std::uint16_t>(), 0);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.get<std::uint8_t>(), 0);  // although a byte is left
  EXPECT_TRUE(r.rest().empty());
  EXPECT_TRUE(r.get_bytes(0).empty());
  EXPECT_FALSE(r.ok());
}

TEST(Reader, get_bytes__gives_a_view_of_exactly_that_many) {
  const std::array<std::byte, 4> bytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  Reader r(bytes);
  EXPECT_EQ(r.get_bytes(3).data(), bytes.data());
  EXPECT_EQ(r.rest().size(), 1U);
  EXPECT_EQ(r.get_bytes(1).size(), 1U);
  EXPECT_TRUE(r.ok());
  EXPECT_TRUE(r.get_bytes(1).empty());
  EXPECT_FALSE(r.ok());
}

}  // namespace
}  // namespace bx::wire
