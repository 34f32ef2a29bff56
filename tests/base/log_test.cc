// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace bx {
namespace {

TEST(LogLine, add__puts_words_plain_and_sentences_quoted) {
  LogLine line(LogLevel::error);
  line.add("peer", "host7:7000").add("hint", "look there").add("count", 42).add("empty", "");
  EXPECT_EQ(line.text(), "bx: error peer=host7:7000 hint=\"look there\" count=42 empty=\"\"");
}

TEST(LogLine, add__values_cannot_forge_a_line) {
  LogLine line(LogLevel::error);
  line.add("peer", "a\" status=fine\nbx: error");
  EXPECT_EQ(line.text(), "bx: error peer=\"a? status=fine?bx: error\"");
}

TEST(LogLine, add__cuts_off_what_does_not_fit) {
  LogLine line(LogLevel::dump);
  line.add("long", std::string(2 * LogLine::kBytesMax, 'x')).add("more", 1);
  EXPECT_EQ(line.text().size(), LogLine::kBytesMax);
  EXPECT_TRUE(line.text().starts_with("bx: dump long=xxx"));
}

TEST(LogLimit, admit__a_burst_and_then_one_each_interval) {
  LogLimit limit;
  std::uint64_t suppressed = 99;
  Instant now{};
  for (std::uint32_t i = 0; i < LogLimit::kBurst; ++i) {
    EXPECT_TRUE(limit.admit(now, suppressed));
    EXPECT_EQ(suppressed, 0U);
  }
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.admit(now, suppressed));
  now += LogLimit::kEvery;
  EXPECT_TRUE(limit.admit(now, suppressed));
  EXPECT_EQ(suppressed, 5U);
  EXPECT_FALSE(limit.admit(now, suppressed));
}

TEST(LogLimit, admit__a_long_silence_earns_one_burst) {
  LogLimit limit;
  std::uint64_t suppressed = 0;
  const Instant now = Instant{} + 1000 * LogLimit::kEvery;
  std::uint32_t admitted = 0;
  while (limit.admit(now, suppressed)) ++admitted;
  EXPECT_EQ(admitted, LogLimit::kBurst);
}

}  // namespace
}  // namespace bx
