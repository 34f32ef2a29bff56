// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/named.h"

#include <gtest/gtest.h>

#include <array>

namespace bx::sim {
namespace {

struct Thing {
  std::string_view name;
  int value;
};
constexpr std::array<Thing, 2> kThings{{{"one", 1}, {"two", 2}}};

TEST(named, find_named__by_the_whole_name_or_null) {
  static_assert(find_named(kThings, "two", &Thing::name)->value == 2);
  EXPECT_EQ(find_named(kThings, "one", &Thing::name), kThings.data());
  EXPECT_EQ(find_named(kThings, "on", &Thing::name), nullptr);
  EXPECT_EQ(find_named(kThings, "ones", &Thing::name), nullptr);
  EXPECT_EQ(find_named(kThings, "", &Thing::name), nullptr);
}

}  // namespace
}  // namespace bx::sim
