// SPDX-License-Identifier: BSD-3-Clause
// How a failure is put to people: a word for what happened, and what to look at. One line for every status.
#pragma once

#include <string_view>

#include "libbx/base/result.h"
#include "libbx/fabric/types.h"

namespace bx::engine {

struct ErrorText {
  std::string_view status;  // one word, as in verbs: "retry_exceeded"
  std::string_view hint;    // what to look at first
};

ErrorText text_of(fabric::WcStatus status) noexcept;
// Of an error that is not a completion's.
ErrorText text_of(ErrorCode code) noexcept;
// Of either: an error of a device with a number carries a completion's status.
ErrorText text_of(const Error& error) noexcept;

}  // namespace bx::engine
