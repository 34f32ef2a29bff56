// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/intrusive_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace bx {
namespace {

struct OtherTag;

struct Item : ListHook<>, ListHook<OtherTag> {
  explicit Item(int v) : value(v) {}
  int value;
};

using List = IntrusiveList<Item>;
using OtherList = IntrusiveList<Item, OtherTag>;

void unlink(Item& item) {
  static_cast<ListHook<>&>(item).unlink();
}

std::vector<int> drain(List& list) {
  std::vector<int> values;
  while (Item* item = list.pop_front()) values.push_back(item->value);
  return values;
}

TEST(IntrusiveList, push_and_pop__keep_the_order) {
  Item a(1);
  Item b(2);
  Item c(3);
  List list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  list.push_back(b);
  list.push_back(c);
  list.push_front(a);
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(list.front(), &a);
  EXPECT_EQ(drain(list), (std::vector{1, 2, 3}));
  EXPECT_EQ(list.pop_front(), nullptr);
}

TEST(IntrusiveList, next__walks_to_the_end) {
  Item a(1);
  Item b(2);
  List list;
  list.push_back(a);
  list.push_back(b);
  EXPECT_EQ(list.next(a), &b);
  EXPECT_EQ(list.next(b), nullptr);
  drain(list);
}

TEST(IntrusiveList, unlink__takes_an_element_out_of_any_place) {
  Item a(1);
  Item b(2);
  Item c(3);
  for (Item* victim : {&a, &b, &c}) {
    List list;
    for (Item* item : {&a, &b, &c}) list.push_back(*item);
    unlink(*victim);
    EXPECT_FALSE(static_cast<ListHook<>&>(*victim).linked());
    std::vector<int> rest;
    for (Item* item : {&a, &b, &c}) {
      if (item != victim) rest.push_back(item->value);
    }
    EXPECT_EQ(drain(list), rest);
  }
}

TEST(IntrusiveList, unlink__of_an_element_on_no_list_does_nothing) {
  Item a(1);
  unlink(a);
  EXPECT_FALSE(static_cast<ListHook<>&>(a).linked());
}

TEST(IntrusiveList, element__may_be_on_one_list_per_tag) {
  Item a(1);
  List list;
  OtherList other;
  list.push_back(a);
  other.push_back(a);
  EXPECT_EQ(list.pop_front(), &a);
  EXPECT_EQ(other.front(), &a);
  EXPECT_EQ(other.pop_front(), &a);
}

TEST(IntrusiveList, element__can_come_back_after_it_left) {
  Item a(1);
  List list;
  for (int i = 0; i < 3; ++i) {
    list.push_back(a);
    EXPECT_EQ(list.pop_front(), &a);
  }
}

TEST(IntrusiveListDeathTest, push__of_an_element_that_is_linked_is_a_programming_error) {
  Item a(1);
  List list;
  list.push_back(a);
  EXPECT_DEATH(list.push_back(a), "one list at a time");
  drain(list);
}

TEST(IntrusiveListDeathTest, destruction__of_a_linked_element_is_a_programming_error) {
  List list;
  auto a = std::make_unique<Item>(1);
  list.push_back(*a);
  EXPECT_DEATH(a.reset(), "still on a list");
  drain(list);
}

TEST(IntrusiveListDeathTest, destruction__of_a_list_with_elements_is_a_programming_error) {
  Item a(1);
  auto list = std::make_unique<List>();
  list->push_back(a);
  EXPECT_DEATH(list.reset(), "elements on it");
  drain(*list);
}

TEST(IntrusiveList, splice_back__moves_everything_behind_what_is_there) {
  Item a(1);
  Item b(2);
  Item c(3);
  List list;
  List other;
  list.splice_back(other);
  EXPECT_TRUE(list.empty());
  other.push_back(b);
  other.push_back(c);
  list.push_back(a);
  list.splice_back(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(drain(list), (std::vector{1, 2, 3}));
  other.push_back(a);
  list.splice_back(other);
  EXPECT_EQ(drain(list), std::vector{1});
}

}  // namespace
}  // namespace bx
