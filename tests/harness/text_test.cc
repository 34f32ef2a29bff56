// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/text.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

TEST(text, edit_distance__steps_and_transpositions) {
  EXPECT_EQ(edit_distance("rate", "rate"), 0U);
  EXPECT_EQ(edit_distance("raet", "rate"), 1U);
  EXPECT_EQ(edit_distance("rat", "rate"), 1U);
  EXPECT_EQ(edit_distance("", "rate"), 4U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(text, nearest__near_enough_or_nothing) {
  const std::vector<std::string> words{"rate", "delay", "mtu"};
  EXPECT_EQ(nearest("raet", words), "rate");
  EXPECT_EQ(nearest("dealy", words), "delay");
  EXPECT_EQ(nearest("temperature", words), std::nullopt);
  EXPECT_EQ(nearest(std::string(100, 'r'), words), std::nullopt);
  EXPECT_EQ(did_you_mean("mut", words), "; did you mean 'mtu'?");
  EXPECT_EQ(did_you_mean("temperature", words), "");
}

TEST(text, find_invalid_utf8__accepts_what_rfc_3629_accepts) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("plain"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("\u00e9\u20ac\U0010FFFF"), std::nullopt);
}

TEST(text, find_invalid_utf8__finds_the_first_bad_byte) {
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2U);
  EXPECT_EQ(find_invalid_utf8("\xc0\xaf"), 0U);          // overlong '/'
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\xaf"), 0U);      // overlong
  EXPECT_EQ(find_invalid_utf8("a\xed\xa0\x80"), 1U);     // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(find_invalid_utf8("x\xe2\x82"), 1U);         // cut short
}

TEST(text, printable__escapes_and_cuts) {
  EXPECT_EQ(printable("a\nb\x1b["), "a\\x0ab\\x1b[");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}), "a, b");
}

}  // namespace
}  // namespace bx::harness
