// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/shrink.h"

#include <algorithm>

namespace bx::differential {
namespace {

class Shrinker {
 public:
  Shrinker(Program program, const std::function<bool(const Program&)>& shows, std::size_t attempts)
      : program_(std::move(program)), shows_(shows), attempts_(attempts) {}

  Program run() {
    bool smaller = true;
    while (smaller && attempts_ > 0) {
      smaller = thin([](Program & program) -> auto& { return program.steps; });
      for (std::size_t step = program_.steps.size(); step > 0; --step) {
        smaller = thin([&](Program & p) -> auto& { return p.steps[step - 1].actions; }) || smaller;
        const std::size_t actions = program_.steps[step - 1].actions.size();
        for (std::size_t i = 0; i < actions; ++i) smaller = thin_action(step - 1, i) || smaller;
      }
    }
    return std::move(program_);
  }

 private:
  // Leaves out runs of the list's elements, long ones first, the last ones first. True if some could be.
  template <class ListOf>
  bool thin(const ListOf& list_of) {
    bool smaller = false;
    for (std::size_t length = std::max<std::size_t>(1, list_of(program_).size() / 2); length > 0;
         length /= 2) {
      std::size_t end = list_of(program_).size();
      while (end >= length && attempts_ > 0) {
        Program candidate = program_;
        auto& list = list_of(candidate);
        const auto last = list.begin() + static_cast<std::ptrdiff_t>(end);
        list.erase(last - static_cast<std::ptrdiff_t>(length), last);
        --attempts_;
        if (shows_(candidate)) {
          program_ = std::move(candidate);
          smaller = true;
          end = std::min(end, list_of(program_).size());
          continue;
        }
        --end;
      }
    }
    return smaller;
  }

  bool thin_action(std::size_t step, std::size_t action) {
    const Action& given = program_.steps[step].actions[action];
    if (std::holds_alternative<Post>(given)) {
      const auto requests = [=](Program & p) -> auto& {
        return std::get<Post>(p.steps[step].actions[action]).requests;
      };
      const bool fewer = thin(requests);
      for (std::size_t i = 0; i < requests(program_).size(); ++i) make_plain(requests, i);
      return fewer;
    }
    if (std::holds_alternative<PostReceives>(given)) {
      return thin([&](Program & p) -> auto& {
        return std::get<PostReceives>(p.steps[step].actions[action]).receives;
      });
    }
    return false;
  }

  // Signalled, and nothing else.
  template <class ListOf>
  void make_plain(const ListOf& requests, std::size_t which) {
    if (requests(program_)[which].flags == fabric::SendFlags::signaled || attempts_ == 0) return;
    Program candidate = program_;
    requests(candidate)[which].flags = fabric::SendFlags::signaled;
    --attempts_;
    if (shows_(candidate)) program_ = std::move(candidate);
  }

  Program program_;
  const std::function<bool(const Program&)>& shows_;
  std::size_t attempts_;
};

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& shows, std::size_t attempts_max) {
  return Shrinker(std::move(program), shows, attempts_max).run();
}

}  // namespace bx::differential
