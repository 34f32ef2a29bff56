// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/slot_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/property.h"

namespace bx::core {
namespace {

// Counts itself, so that a forgotten destructor shows.
struct Counted {
  Counted(int number, int& count) : value(number), live(&count) { ++*live; }
  ~Counted() { --*live; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int value;
  int* live;
};

TEST(SlotTable, emplace__fills_up_to_its_capacity) {
  SlotTable<int> table(3);
  EXPECT_TRUE(table.empty());
  std::set<SlotHandle> handles;
  for (int i = 0; i < 3; ++i) handles.insert(table.emplace(i));
  EXPECT_TRUE(table.full());
  EXPECT_EQ(handles.size(), 3U);
  EXPECT_FALSE(handles.contains(0));
}

TEST(SlotTable, find__knows_the_living_only) {
  SlotTable<int> table(2);
  const SlotHandle a = table.emplace(7);
  EXPECT_EQ(*table.find(a), 7);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(a + 1), nullptr);                       // the slot next to it, never used
  EXPECT_EQ(table.find(a + 100), nullptr);                     // beyond the capacity
  EXPECT_EQ(table.find(a + (SlotHandle{1} << 32U)), nullptr);  // a generation to come
  table.erase(a);
  EXPECT_EQ(table.find(a), nullptr);
  const SlotHandle b = table.emplace(8);
  EXPECT_EQ(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));  // the same place
  EXPECT_NE(a, b);
  EXPECT_EQ(table.find(a), nullptr);
  EXPECT_EQ(*table.find(b), 8);
}

TEST(SlotTable, from_wire__inverts_to_wire_for_the_living) {
  SlotTable<int> table(8);
  const SlotHandle a = table.emplace(1);
  const SlotHandle b = table.emplace(2);
  const std::uint32_t wire_a = SlotTable<int>::to_wire(a);
  EXPECT_NE(wire_a, 0U);
  EXPECT_EQ(table.from_wire(wire_a), a);
  EXPECT_EQ(table.from_wire(SlotTable<int>::to_wire(b)), b);
  EXPECT_EQ(table.from_wire(0), 0U);
  EXPECT_EQ(table.from_wire(wire_a + 0x10000), 0U);
  EXPECT_EQ(table.from_wire(wire_a + 2), 0U);
  table.erase(a);
  EXPECT_EQ(table.from_wire(wire_a), 0U);
}

// Generations whose low half is 0 are skipped, so a handle on the wire is never 0 and no two that follow each
// other in one place are alike.
TEST(SlotTable, to_wire__is_never_none_through_65536_generations) {
  SlotTable<int> table(1);
  std::uint32_t last = 0;
  for (int i = 0; i < 70'000; ++i) {
    const SlotHandle handle = table.emplace(i);
    const std::uint32_t wire = SlotTable<int>::to_wire(handle);
    ASSERT_NE(wire, 0U);
    ASSERT_NE(wire, last);
    ASSERT_EQ(table.from_wire(last), 0U);
    ASSERT_EQ(table.from_wire(wire), handle);
    last = wire;
    table.erase(handle);
  }
}

TEST(SlotTable, capacity__may_be_the_whole_range_of_the_wire) {
  SlotTable<int> table(65'536);
  SlotHandle last = 0;
  for (int i = 0; i < 65'536; ++i) last = table.emplace(i);
  EXPECT_TRUE(table.full());
  EXPECT_EQ(table.from_wire(SlotTable<int>::to_wire(last)), last);
}

TEST(SlotTable, for_each__visits_the_living_in_index_order_and_may_erase) {
  SlotTable<int> table(4);
  std::vector<SlotHandle> handles;
  for (int i = 0; i < 4; ++i) handles.push_back(table.emplace(i));
  table.erase(handles[1]);
  std::vector<int> seen;
  table.for_each([&](SlotHandle handle, int& value) {
    seen.push_back(value);
    table.erase(handle);
  });
  EXPECT_EQ(seen, (std::vector<int>{0, 2, 3}));
  EXPECT_TRUE(table.empty());
}

TEST(SlotTable, destructor__destroys_what_lives) {
  int live = 0;
  {
    SlotTable<Counted> table(3);
    table.emplace(1, live);
    const SlotHandle gone = table.emplace(2, live);
    table.erase(gone);
    EXPECT_EQ(live, 1);
  }
  EXPECT_EQ(live, 0);
}

TEST(SlotTable, random_use__agrees_with_a_map) {
  test::expect_property([](const std::vector<std::uint8_t>& steps) {
    int live = 0;
    SlotTable<Counted> table(5);
    std::map<SlotHandle, int> model;
    std::set<SlotHandle> dead;
    int number = 0;
    for (const std::uint8_t step : steps) {
      if (step % 3 != 0 && !table.full()) {
        const SlotHandle handle = table.emplace(++number, live);
        RC_ASSERT((!model.contains(handle) && !dead.contains(handle)));
        model[handle] = number;
      } else if (!model.empty()) {
        auto victim = model.begin();
        std::advance(victim, static_cast<std::ptrdiff_t>(step % model.size()));
        table.erase(victim->first);
        dead.insert(victim->first);
        model.erase(victim);
      }
      RC_ASSERT((table.size() == model.size() && static_cast<std::size_t>(live) == model.size()));
      for (const auto& [handle, value] : model) RC_ASSERT(table.find(handle)->value == value);
      for (const SlotHandle handle : dead) RC_ASSERT(table.find(handle) == nullptr);
    }
  });
}

TEST(SlotTableDeathTest, misuse__dies) {
  SlotTable<int> table(1);
  const SlotHandle handle = table.emplace(1);
  EXPECT_DEATH(table.emplace(2), "full slot table");
  table.erase(handle);
  EXPECT_DEATH(table.erase(handle), "not live");
}

TEST(SlotTable, make__gives_what_it_made_and_erase_takes_it) {
  int live = 0;
  SlotTable<Counted> table(2);
  const auto [handle, value] = table.make(5, live);
  EXPECT_EQ(table.find(handle), &value);
  EXPECT_EQ(value.value, 5);
  table.erase(value);
  EXPECT_EQ(live, 0);
  EXPECT_EQ(table.find(handle), nullptr);
  EXPECT_TRUE(table.empty());
}

// A handle nobody was given never finds anything, whatever the slot is: not used yet, free again, or taken.
TEST(SlotTable, find__is_not_fooled_by_guesses) {
  SlotTable<int> table(4);
  const SlotHandle gone = table.emplace(1);
  const SlotHandle kept = table.emplace(2);
  table.erase(gone);
  for (std::uint64_t index : {0U, 1U, 2U, 4U, 0xffffffffU}) {
    for (std::uint64_t generation = 0; generation < 4; ++generation) {
      const SlotHandle guess = generation << 32U | index;
      EXPECT_EQ(table.find(guess) != nullptr, guess == kept) << guess;
    }
  }
}

}  // namespace
}  // namespace bx::core
