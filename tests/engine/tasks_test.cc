// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/tasks.h"

#include <gtest/gtest.h>

#include <vector>

namespace bx::engine {
namespace {

struct Gate {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) noexcept { waiting.push_back(handle); }
  void await_resume() const noexcept {}
  static inline thread_local std::vector<std::coroutine_handle<>> waiting{};
};

struct Guard {
  explicit Guard(int& count) : live(&count) { ++*live; }
  ~Guard() { --*live; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  int* live;
};

Task<> note(std::vector<int>& log, int number) {
  log.push_back(number);
  co_return;
}

Task<> wait_at(Gate& gate, int& live) {
  const Guard guard(live);
  co_await gate;
}

Task<> spawn_another(Tasks& tasks, FramePool& frames, std::vector<int>& log) {
  log.push_back(1);
  tasks.spawn(frames, spawn_another(tasks, frames, log));
  co_return;
}

TEST(Tasks, spawn__starts_nothing_before_resume_ready_and_keeps_the_order) {
  FramePool frames;
  Tasks tasks;
  std::vector<int> log;
  tasks.spawn(frames, note(log, 1));
  tasks.spawn(frames, note(log, 2));
  EXPECT_TRUE(tasks.ready());
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(tasks.resume_ready(), 2U);
  EXPECT_EQ(log, (std::vector<int>{1, 2}));
  EXPECT_FALSE(tasks.ready());
  EXPECT_EQ(tasks.resume_ready(), 0U);
}

TEST(Tasks, resume_ready__leaves_what_tasks_spawn_for_the_next_time) {
  FramePool frames;
  Tasks tasks;
  std::vector<int> log;
  tasks.spawn(frames, spawn_another(tasks, frames, log));
  for (std::size_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(tasks.resume_ready(), 1U);
    EXPECT_EQ(log.size(), i);
  }
  EXPECT_TRUE(tasks.ready());
}

TEST(Tasks, start__resumes_a_task_of_somebody_elses) {
  Tasks tasks;
  std::vector<int> log;
  const Task<> task = note(log, 3);
  tasks.start(task.handle());
  EXPECT_EQ(tasks.resume_ready(), 1U);
  EXPECT_EQ(log, (std::vector<int>{3}));
  EXPECT_TRUE(task.done());
}

TEST(Tasks, destroy_all__ends_what_is_suspended_and_what_never_began) {
  FramePool frames;
  Gate gate;
  Gate::waiting.clear();
  int live = 0;
  {
    Tasks tasks;
    tasks.spawn(frames, wait_at(gate, live));
    tasks.spawn(frames, wait_at(gate, live));
    tasks.resume_ready();
    tasks.spawn(frames, wait_at(gate, live));
    EXPECT_EQ(live, 2);
    Gate::waiting[1].resume();  // this one ends by itself
    EXPECT_EQ(live, 1);
  }
  EXPECT_EQ(live, 0);  // and the frame pool would die if a frame were left
}

}  // namespace
}  // namespace bx::engine
