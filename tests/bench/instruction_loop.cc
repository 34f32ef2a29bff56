// SPDX-License-Identifier: BSD-3-Clause
// instruction_loop COUNT WHAT [BYTES DEPTH]: does WHAT, one of calls, credits and buffers, COUNT times.
// scripts/instructions.py counts the instructions of two runs of different length and divides the difference.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/bench/echo.h"
#include "tests/bench/steps.h"

namespace bench {
namespace {

// Not inlined, so that the instructions are theirs by name.
[[gnu::noinline]] bool loop_credits(std::uint64_t count) {
  Credits credits;
  bool good = true;
  for (; count > 0; --count) good &= update(credits);
  return good;
}

[[gnu::noinline]] bool loop_buffers(bx::Worker& worker, std::uint64_t count) {
  for (; count > 0; --count) allocate_and_free(worker);
  return true;
}

bool run(std::string_view what, std::uint64_t count, std::size_t bytes, std::size_t depth) {
  if (what == "credits") return loop_credits(count);
  EchoPair pair;
  if (what == "buffers") return loop_buffers(pair.client(), count);
  if (what != "calls") return false;
  pair.run(count, bytes, depth);
  return true;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const auto number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  if (argc < 3 || !bench::run(argv[2], number(1, 0), number(3, 64), number(4, 1))) {
    std::fprintf(stderr, "usage: instruction_loop COUNT calls|credits|buffers [BYTES DEPTH]\n");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
