// SPDX-License-Identifier: BSD-3-Clause
// How the library reports failure: values, never exceptions. The scope of an Error says what is no longer
// usable and so drives recovery.
#pragma once

#include <cstdint>
#include <string_view>
#include <tl/expected.hpp>

namespace bx {

enum class ErrorCode : std::uint8_t {
  invalid_argument,   // the caller asked for something that can never work
  unsupported,        // this provider or peer cannot do it
  exhausted,          // a named limit is reached; the sum that would fit is in the message or the docs
  unreachable,        // nobody answers at that address, or the answer was a refusal
  deadline_exceeded,  // the caller's deadline passed first
  cancelled,          // the caller or the owner gave up
  closed,             // the session, lane or host is shutting down
  protocol,           // the peer sent what the protocol forbids
  device,             // the device or a queue pair failed
  too_large,          // longer than a limit both ends agreed on
  draining,           // the worker that serves is about to close: ask another
  would_block,        // it would have to wait, and was asked not to
};
inline constexpr ErrorCode kErrorCodeLast = ErrorCode::would_block;

// The largest thing that is no longer usable after the error.
enum class ErrorScope : std::uint8_t { operation, queue_pair, session, device };

struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  ErrorScope scope = ErrorScope::operation;
  int sys = 0;              // errno, the numeric WcStatus of a failed completion, or the number that a limit
                            // allows (in MiB where the detail says so); 0 when there is none
  const char* detail = "";  // static text: what was wrong, for a person

  friend bool operator==(const Error& a, const Error& b) {
    return a.code == b.code && a.scope == b.scope && a.sys == b.sys;
  }
};

template <class T = void>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, ErrorScope scope, const char* detail, int sys = 0) {
  return tl::unexpected<Error>(Error{code, scope, sys, detail});
}

std::string_view to_string(ErrorCode code) noexcept;
std::string_view to_string(ErrorScope scope) noexcept;

}  // namespace bx
