// SPDX-License-Identifier: BSD-3-Clause
// Makes a program that shows something as small as it gets by leaving out steps, actions, requests, receives
// and flags.
#pragma once

#include <functional>

#include "tests/differential/program.h"

namespace bx::differential {

// `shows` must hold for the program that is given, and holds for the one that is returned. It is asked at
// most `attempts_max` times.
Program shrink(Program program, const std::function<bool(const Program&)>& shows, std::size_t attempts_max);

}  // namespace bx::differential
