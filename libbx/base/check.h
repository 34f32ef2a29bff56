// SPDX-License-Identifier: BSD-3-Clause
// BX_CHECK: a broken invariant ends the process in every build, with the place and the reason.
// Use it for programming errors and for what a state machine promises. Never use it for input from a peer, a
// file or a device: those give an Error.
#pragma once

namespace bx {

// Prints "file:line: check failed: expression: message" to standard error and aborts.
[[noreturn, gnu::cold]] void check_failed(const char* file, int line, const char* expression,
                                          const char* message) noexcept;

}  // namespace bx

#define BX_CHECK(condition, message)                   \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::bx::check_failed(__FILE__, __LINE__, #condition, message))

// A function off the usual path: never inlined into it, and kept apart from it.
#define BX_COLD [[gnu::noinline, gnu::cold]]
