// SPDX-License-Identifier: BSD-3-Clause
// Nanoseconds of what instruction_loop counts in instructions. They depend on the machine and include the
// provider's; compare within one run only.
#include <benchmark/benchmark.h>

#include "tests/bench/echo.h"
#include "tests/bench/steps.h"

namespace bench {
namespace {

void call(benchmark::State& state) {
  constexpr std::int64_t kBatch = 256;
  EchoPair pair;
  while (state.KeepRunningBatch(kBatch)) {
    pair.run(kBatch, static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  }
}
BENCHMARK(call)
    ->ArgNames({"bytes", "depth"})
    ->Args({64, 1})
    ->Args({64, 32})
    ->Args({1024, 32})
    ->Args({4096, 32});

void credit_update(benchmark::State& state) {
  Credits credits;
  for (auto _ : state) {
    bool good = update(credits);
    benchmark::DoNotOptimize(good);
  }
}
BENCHMARK(credit_update);

void buffer(benchmark::State& state) {
  EchoPair pair;
  for (auto _ : state) allocate_and_free(pair.client());
}
BENCHMARK(buffer);

}  // namespace
}  // namespace bench

BENCHMARK_MAIN();
