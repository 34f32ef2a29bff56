// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/byte_fifo.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "libbx/base/prng.h"

namespace bx::virtual_time {
namespace {

TEST(ByteFifo, push_pop_and_drop__behave_like_a_deque) {
  ByteFifo fifo;
  std::deque<std::byte> model;
  Prng prng(1);
  for (int i = 0; i < 3000; ++i) {
    if (prng.chance(0.5)) {
      std::vector<std::byte> bytes(prng.below(700));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.next() & 0xffU);
      fifo.push(bytes);
      model.insert(model.end(), bytes.begin(), bytes.end());
    } else {
      const std::size_t count = prng.below(model.size() + 1);
      if (prng.chance(0.3)) {
        fifo.drop(count);
      } else {
        std::vector<std::byte> out(count);
        fifo.pop(out);
        ASSERT_TRUE(std::equal(out.begin(), out.end(), model.begin()));
      }
      model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(count));
    }
    ASSERT_EQ(fifo.size(), model.size());
  }
}

TEST(ByteFifoDeathTest, pop_and_drop__beyond_the_end_are_programming_errors) {
  ByteFifo fifo;
  std::vector<std::byte> two(2);
  fifo.push(std::span(two).first(1));
  EXPECT_DEATH(fifo.pop(two), "more bytes");
  EXPECT_DEATH(fifo.drop(2), "more bytes");
}

}  // namespace
}  // namespace bx::virtual_time
