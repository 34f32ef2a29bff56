// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/object_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace bx::sim {
namespace {

// Neither moved nor copied, and says when it goes.
struct alignas(64) Pinned {
  Pinned(std::vector<int>& log, int number) : gone(log), value(number) {}
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { gone.push_back(value); }
  std::vector<int>& gone;
  int value;
};

TEST(ObjectArray, emplace_back__makes_objects_side_by_side) {
  PageArena arena;
  std::vector<int> gone;
  ObjectArray<Pinned> array;
  array.reserve(arena, 3);
  Pinned& first = array.emplace_back(gone, 7);
  array.emplace_back(gone, 8);
  EXPECT_EQ(array.size(), 2U);
  EXPECT_EQ(&array[0], &first);
  EXPECT_EQ(&array[1], &first + 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&array[1]) % alignof(Pinned), 0U);
  std::vector<int> values;
  for (const Pinned& each : array) values.push_back(each.value);
  EXPECT_EQ(values, (std::vector<int>{7, 8}));
}

TEST(ObjectArray, destructor__destroys_what_was_made_the_last_first) {
  PageArena arena;
  std::vector<int> gone;
  {
    ObjectArray<Pinned> array;
    array.reserve(arena, 5);
    for (int i = 0; i < 3; ++i) array.emplace_back(gone, i);
  }
  EXPECT_EQ(gone, (std::vector<int>{2, 1, 0}));
}

}  // namespace
}  // namespace bx::sim
