// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace bx {

void check_failed(const char* file, int line, const char* expression, const char* message) noexcept {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, expression, message);
  std::abort();
}

}  // namespace bx
