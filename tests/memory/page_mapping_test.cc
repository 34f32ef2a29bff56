// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/page_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/memory/fake_memory.h"

namespace bx::memory {
namespace {

constexpr std::size_t kBytes = 4 * kHugePageBytes;

class PageMappingTest : public ::testing::Test {
 protected:
  // The kind of pages got, and whether a remedy came with them.
  PageKind kind_of(const PageWish& wish, std::string_view remedy = {}) {
    auto mapping = PageMapping::create(system_, kBytes, wish);
    EXPECT_TRUE(mapping.has_value());
    EXPECT_EQ(mapping->bytes().size(), kBytes);
    if (remedy.empty()) {
      EXPECT_EQ(mapping->remedy(), nullptr);
    } else {
      EXPECT_NE(mapping->remedy(), nullptr);
      EXPECT_NE(std::string_view(mapping->remedy()).find(remedy), std::string_view::npos)
          << mapping->remedy();
    }
    return mapping->kind();
  }
  FakeMemory system_;
};

TEST_F(PageMappingTest, create__prefers_huge_pages_then_transparent_then_ordinary) {
  const PageWish wish{.huge_pages = HugePages::prefer};
  EXPECT_EQ(kind_of(wish), PageKind::huge);
  system_.huge = false;
  EXPECT_EQ(kind_of(wish, "vm.nr_hugepages"), PageKind::transparent);
  system_.transparent = false;
  EXPECT_EQ(kind_of(wish, "transparent_hugepage/enabled"), PageKind::ordinary);
  EXPECT_EQ(system_.mapped, 0);
}

TEST_F(PageMappingTest, create__requires_huge_pages_or_says_what_to_set) {
  const PageWish wish{.huge_pages = HugePages::require};
  EXPECT_EQ(kind_of(wish), PageKind::huge);
  system_.huge = false;
  const auto mapping = PageMapping::create(system_, kBytes, wish);
  ASSERT_FALSE(mapping.has_value());
  EXPECT_EQ(mapping.error().code, ErrorCode::exhausted);
  EXPECT_NE(std::string_view(mapping.error().detail).find("vm.nr_hugepages"), std::string_view::npos);
}

TEST_F(PageMappingTest, create__off_asks_for_none) {
  EXPECT_EQ(kind_of({.huge_pages = HugePages::off}), PageKind::ordinary);
  EXPECT_TRUE(system_.advised.empty());
}

TEST_F(PageMappingTest, create__automatic_is_prefer_where_memory_is_pinned) {
  EXPECT_EQ(kind_of({.pinned = false}), PageKind::ordinary);
  EXPECT_EQ(kind_of({.pinned = true}), PageKind::huge);
}

TEST_F(PageMappingTest, create__without_address_space_is_exhausted) {
  system_.ordinary = false;
  const auto mapping = PageMapping::create(system_, kBytes, {});
  ASSERT_FALSE(mapping.has_value());
  EXPECT_EQ(mapping.error().code, ErrorCode::exhausted);
  EXPECT_EQ(mapping.error().sys, ENOMEM);
}

// A child that forks off could otherwise take a pinned page away from the NIC by writing to it first.
TEST_F(PageMappingTest, create__keeps_pinned_pages_out_of_forks) {
  const auto no_fork = [this] { return std::ranges::count(system_.advised, Advice::not_in_a_fork); };
  EXPECT_EQ(kind_of({.huge_pages = HugePages::off, .pinned = false}), PageKind::ordinary);
  EXPECT_EQ(no_fork(), 0);
  EXPECT_EQ(kind_of({.huge_pages = HugePages::off, .pinned = true}), PageKind::ordinary);
  EXPECT_EQ(no_fork(), 1);
}

TEST_F(PageMappingTest, move__leaves_one_owner) {
  auto mapping = PageMapping::create(system_, kBytes, {});
  ASSERT_TRUE(mapping.has_value());
  {
    const PageMapping moved(std::move(*mapping));
    EXPECT_EQ(system_.mapped, 1);
    EXPECT_EQ(moved.bytes().size(), kBytes);
  }
  EXPECT_EQ(system_.mapped, 0);
}

}  // namespace
}  // namespace bx::memory
