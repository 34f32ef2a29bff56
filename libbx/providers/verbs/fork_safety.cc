// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/fork_safety.h"

#include <infiniband/verbs.h>
#include <sys/utsname.h>

#include <charconv>

namespace bx::verbs {

bool copies_registered_pages(std::string_view kernel_release) noexcept {
  int major = 0;
  int minor = 0;
  const char* const end = kernel_release.data() + kernel_release.size();
  const auto [dot, failed] = std::from_chars(kernel_release.data(), end, major);
  if (failed != std::errc{} || dot == end || *dot != '.') return false;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc{}) return false;
  return major > 5 || (major == 5 && minor >= 12);
}

// Not asked of libibverbs: its own question to the kernel fails now and then, and then it hides the pages for
// good.
void protect_from_fork() noexcept {
  utsname system{};
  if (::uname(&system) == 0 && copies_registered_pages(system.release)) return;
  ::ibv_fork_init();
}

}  // namespace bx::verbs
