// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace bx::harness {
namespace {

TEST(child_process, start_child__tells_what_its_body_writes) {
  const std::string said(100'000, 'x');  // more than a pipe holds
  const Result<ChildProcess> child = start_child([&](int fd) { return write_all(fd, said); });
  ASSERT_TRUE(child);
  EXPECT_EQ(read_all(child->fd), said);
  EXPECT_EQ(end_child(*child), "");
}

TEST(child_process, start_child__closes_what_the_child_must_not_hold) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Result<ChildProcess> child =
      start_child([&](int) { return ::write(ends[1], "x", 1) == -1; }, std::array{ends[1]});
  ASSERT_TRUE(child);
  EXPECT_EQ(end_child(*child), "");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(child_process, end_child__says_how_it_ended) {
  EXPECT_EQ(end_child(*start_child([](int) { return false; })), "ended with status 1");
  EXPECT_EQ(end_child(*start_child([](int) { return ::raise(SIGKILL) == 0; })),
            "was ended by signal 9 (Killed)");
}

}  // namespace
}  // namespace bx::harness
