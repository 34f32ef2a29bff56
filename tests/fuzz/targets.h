// SPDX-License-Identifier: BSD-3-Clause
// The fuzz targets. Each is a function fuzz_<name> over arbitrary bytes, in <name>_fuzz.cc, that aborts when
// something is wrong; CMakeLists.txt makes a libFuzzer program of each and one test that replays every
// corpus.
#pragma once

#include <cstddef>
#include <span>

// X(name); one more needs a line here and one in CMakeLists.txt.
#ifdef BX_FUZZ_SCENARIO
#define BX_FUZZ_TARGETS(X) X(message) X(handshake) X(scenario)
#else
#define BX_FUZZ_TARGETS(X) X(message) X(handshake)
#endif

namespace bx::fuzz {

#define BX_FUZZ_DECLARE(name) void fuzz_##name(std::span<const std::byte> bytes);
BX_FUZZ_TARGETS(BX_FUZZ_DECLARE)
#undef BX_FUZZ_DECLARE

}  // namespace bx::fuzz
