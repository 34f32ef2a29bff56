// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/trace_log.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "libbx/fabric/types.h"
#include "tests/support/allocation_guard.h"

namespace bx::fabric {
namespace {

TraceRecord numbered(std::uint64_t n) {
  return {.time = Instant{Duration{static_cast<std::int64_t>(n)}}, .wr_id = n, .kind = TraceKind::post_send};
}

std::vector<std::string> lines(const TraceLog& log) {
  std::vector<std::string> all;
  log.dump([&](std::string_view line) { all.emplace_back(line); });
  return all;
}

TEST(TraceLog, add__keeps_the_newest_records) {
  TraceLog log(4);
  for (std::uint64_t n = 0; n < 3; ++n) log.add(numbered(n));
  EXPECT_EQ(log.size(), 3U);
  EXPECT_EQ(log.dropped(), 0U);
  EXPECT_EQ(log[0].wr_id, 0U);
  for (std::uint64_t n = 3; n < 10; ++n) log.add(numbered(n));
  EXPECT_EQ(log.size(), 4U);
  EXPECT_EQ(log.total(), 10U);
  EXPECT_EQ(log.dropped(), 6U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(log[i].wr_id, 6 + i);
}

TEST(TraceLog, add__allocates_nothing) {
  TraceLog log(8);
  const test::AllocationCount count;
  for (std::uint64_t n = 0; n < 100; ++n) log.add(numbered(n));
  EXPECT_EQ(count.since(), 0U);
}

TEST(TraceLog, digest__covers_every_field_and_the_records_that_were_dropped) {
  std::set<std::uint64_t> digests;
  const auto digest_with = [&](auto&& change) {
    TraceLog log(1);
    TraceRecord record = numbered(1);
    change(record);
    log.add(record);
    log.add(numbered(2));
    return log.digest();
  };
  const auto is_new = [&](auto&& change) { return digests.insert(digest_with(change)).second; };
  EXPECT_TRUE(is_new([](TraceRecord&) {}));
  EXPECT_TRUE(is_new([](TraceRecord& record) { record.time += Duration{1}; }));
  EXPECT_TRUE(is_new([](TraceRecord& record) { record.wr_id = 9; }));
  EXPECT_TRUE(is_new([](TraceRecord& record) { record.length = 9; }));
  EXPECT_TRUE(is_new([](TraceRecord& record) { record.object = 9; }));
  EXPECT_TRUE(is_new([](TraceRecord& record) { record.host = 9; }));
  EXPECT_TRUE(is_new([](TraceRecord& record) { record.kind = TraceKind::wake; }));
  EXPECT_TRUE(is_new([](TraceRecord& record) { record.code = 9; }));
  EXPECT_FALSE(is_new([](TraceRecord&) {}));
}

TEST(TraceLog, dump__gives_one_line_a_record) {
  TraceLog log(2);
  log.add(numbered(1));
  log.add({.time = Instant{Duration{1234}},
           .wr_id = 0xabc,
           .length = 77,
           .object = 0x11,
           .host = 3,
           .kind = TraceKind::completion,
           .code = static_cast<std::uint8_t>(WcStatus::remote_access)});
  const auto two = lines(log);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_NE(two[1].find("1234 ns host 3 completion"), std::string::npos) << two[1];
  EXPECT_NE(two[1].find("object 0x11 wr_id 0xabc length 77 remote access error"), std::string::npos)
      << two[1];
  log.add({.kind = TraceKind::arm, .code = 1});
  const auto three = lines(log);
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(three[0], "... 1 older records");
  EXPECT_NE(three[2].find("pending"), std::string::npos);
}

TEST(TraceLog, to_string__names_are_distinct) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(TraceKind::device_event); ++kind) {
    EXPECT_TRUE(names.insert(to_string(static_cast<TraceKind>(kind))).second);
  }
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(TraceLogDeathTest, misuse__is_a_programming_error) {
  EXPECT_DEATH(TraceLog(0), "room for a record");
  const TraceLog log(4);
  EXPECT_DEATH((void)log[0], "past the end");
}

}  // namespace
}  // namespace bx::fabric
