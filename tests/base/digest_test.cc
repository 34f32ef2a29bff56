// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/digest.h"

#include <gtest/gtest.h>

#include <set>

namespace bx {
namespace {

// Computed by an independent implementation: a change here changes every recorded digest.
TEST(Digest, add__gives_the_golden_values) {
  Digest digest;
  EXPECT_EQ(digest.value(), 0x2d358dccaa6c78a5ULL);
  digest.add(0);
  EXPECT_EQ(digest.value(), 0xa033e50da4218a21ULL);
  digest.add(1);
  EXPECT_EQ(digest.value(), 0xfb773711075172a6ULL);
  digest.add(UINT64_MAX);
  EXPECT_EQ(digest.value(), 0x2a53332b3caf5394ULL);
}

TEST(Digest, add__depends_on_the_order) {
  Digest a;
  a.add(1);
  a.add(2);
  Digest b;
  b.add(2);
  b.add(1);
  EXPECT_NE(a, b);
}

TEST(Digest, add__depends_on_the_number_of_zeros) {
  std::set<std::uint64_t> seen;
  Digest digest;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(seen.insert(digest.value()).second) << i;
    digest.add(0);
  }
}

TEST(Digest, add__of_words_that_differ_in_one_bit_differs) {
  std::set<std::uint64_t> seen;
  for (unsigned bit = 0; bit < 64; ++bit) {
    Digest digest;
    digest.add(std::uint64_t{1} << bit);
    EXPECT_TRUE(seen.insert(digest.value()).second) << bit;
  }
}

TEST(Digest, equality__is_that_of_the_sequences) {
  Digest a;
  Digest b;
  for (std::uint64_t word : {5U, 6U, 7U}) {
    a.add(word);
    b.add(word);
  }
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace bx
