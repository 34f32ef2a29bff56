// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/preflight.h"

#include <gtest/gtest.h>

#include <string_view>

#include "tests/memory/fake_memory.h"

namespace bx::memory {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kNeeds = 6 * kMiB;  // two chunks
constexpr fabric::DeviceCaps kCaps{.mrs_max = 1000, .mr_bytes_max = 1024 * kMiB, .pins_memory = true};

MemoryPlan plan_of(const Config& config) {
  const auto plan = plan_memory(config, kNeeds, kCaps);
  EXPECT_TRUE(plan.has_value()) << plan.error().detail;
  return plan.value_or(MemoryPlan{});
}

TEST(PlanMemory, defaults__are_three_quarters_each) {
  const MemoryPlan plan = plan_of({});
  EXPECT_EQ(plan.arena.bytes, 256 * kMiB);
  EXPECT_EQ(plan.arena.quota[0], 192 * kMiB);
  EXPECT_EQ(plan.arena.quota[1], 192 * kMiB);
  EXPECT_EQ(plan.user_bytes, 1024 * kMiB);
  EXPECT_EQ(plan.user_regions, 64U);
  EXPECT_TRUE(plan.arena.pages.pinned);
}

// What one side leaves is always enough for the other to go on.
TEST(PlanMemory, defaults__leave_each_side_what_it_needs_in_any_arena) {
  for (std::uint64_t arena = 16 * kMiB; arena < 200 * kMiB; arena += kMiB) {
    Config config;
    config.memory_arena = arena;
    const MemoryPlan plan = plan_of(config);
    EXPECT_GE(plan.arena.quota[0], kChunkBytes);
    EXPECT_GE(plan.arena.quota[1], kNeeds);
    EXPECT_GE(plan.arena.bytes - plan.arena.quota[0], kNeeds) << arena;
    EXPECT_GE(plan.arena.bytes - plan.arena.quota[1], kChunkBytes) << arena;
  }
}

struct Refused {
  std::uint64_t Config::*knob;
  std::uint64_t value;
  std::string_view name;
  int fits_mib;
};

TEST(PlanMemory, contradictions__name_the_knob_and_the_number_that_fits) {
  for (const Refused& refused : {Refused{&Config::memory_arena, 8 * kMiB, "memory.arena", 12},
                                 Refused{&Config::memory_send, 249 * kMiB, "memory.send", 248},
                                 Refused{&Config::memory_send, 1 * kMiB, "memory.send", 4},
                                 Refused{&Config::memory_receive, 7 * kMiB, "memory.receive", 8},
                                 Refused{&Config::memory_receive, 253 * kMiB, "memory.receive", 252}}) {
    Config config;
    config.*refused.knob = refused.value;
    const auto plan = plan_memory(config, kNeeds, kCaps);
    ASSERT_FALSE(plan.has_value()) << refused.name;
    EXPECT_EQ(plan.error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(std::string_view(plan.error().detail).starts_with(refused.name)) << plan.error().detail;
    EXPECT_EQ(plan.error().sys, refused.fits_mib);
    config.*refused.knob = static_cast<std::uint64_t>(refused.fits_mib) * kMiB;
    EXPECT_TRUE(plan_memory(config, kNeeds, kCaps).has_value()) << refused.name;
  }
}

void expect_finding(const Findings& findings, Finding::Severity severity, std::string_view need,
                    std::string_view limit, std::string_view remedy) {
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, severity);
  for (const std::string_view part : {need, limit, remedy}) {
    EXPECT_NE(findings[0].text.find(part), std::string::npos) << part << " in " << findings[0].text;
  }
}

TEST(CheckLimits, nothing__is_found_where_all_fits) {
  EXPECT_TRUE(check_limits(plan_of({}), kCaps, FakeMemory()).empty());
}

TEST(CheckLimits, device__regions_are_too_short_or_too_few) {
  fabric::DeviceCaps caps = kCaps;
  caps.mr_bytes_max = 100 * kMiB;
  Findings findings = check_limits(plan_of({}), caps, FakeMemory());
  expect_finding(findings, Finding::Severity::error, "256 MiB", "100 MiB", "lower memory.arena");
  EXPECT_EQ(findings[0].error.sys, 100);
  EXPECT_EQ(findings[0].error.code, ErrorCode::exhausted);
  caps = kCaps;
  caps.mrs_max = 64;
  findings = check_limits(plan_of({}), caps, FakeMemory());
  expect_finding(findings, Finding::Severity::error, "need 65", "is 64", "lower memory.user_regions");
  EXPECT_EQ(findings[0].error.sys, 63);
}

TEST(CheckLimits, locked_memory__is_too_little_for_the_arena) {
  FakeMemory system;
  system.lockable = 8 * kMiB;
  const Findings findings = check_limits(plan_of({}), kCaps, system);
  expect_finding(findings, Finding::Severity::error, "needs 256 MiB", "is 8 MiB", "LimitMEMLOCK");
  EXPECT_EQ(findings[0].error.sys, 8);
  EXPECT_NE(std::string_view(findings[0].error.detail).find("ulimit -l"), std::string_view::npos);
}

TEST(CheckLimits, locked_memory__that_user_memory_may_not_find_is_a_warning) {
  FakeMemory system;
  system.lockable = 300 * kMiB;
  expect_finding(check_limits(plan_of({}), kCaps, system), Finding::Severity::warning, "1280 MiB",
                 "is 300 MiB", "ulimit -l");
}

TEST(CheckLimits, locked_memory__does_not_matter_to_a_device_that_pins_none) {
  FakeMemory system;
  system.lockable = 0;
  fabric::DeviceCaps caps = kCaps;
  caps.pins_memory = false;
  EXPECT_TRUE(check_limits(plan_of({}), caps, system).empty());
}

}  // namespace
}  // namespace bx::memory
