// SPDX-License-Identifier: BSD-3-Clause
// What libFuzzer calls; BX_FUZZ_FUNCTION is the target it is built for.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bx::fuzz::BX_FUZZ_FUNCTION(std::as_bytes(std::span(data, size)));
  return 0;
}
