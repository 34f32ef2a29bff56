// SPDX-License-Identifier: GPL-2.0-only
// A child of this process that does one thing and tells it through a pipe: ns-3 is a singleton of the
// process, the memory of a run comes back with its process, and a broken invariant takes nobody else with it.
// The child dies with its parent.
#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "libbx/base/result.h"

namespace bx::harness {

struct ChildProcess {
  pid_t pid = -1;
  int fd = -1;  // to read what it tells; end of file when it has ended
};

// `body` runs in the child and may write to the descriptor that it is given; false makes the child's exit
// status a failure. `not_for_child` are descriptors of this process that the child must not hold open.
// Errors: exhausted, with the errno.
Result<ChildProcess> start_child(const std::function<bool(int fd)>& body,
                                 std::span<const int> not_for_child = {});
// Closes the pipe and waits. Empty if the child ended well, else how it ended.
std::string end_child(ChildProcess child);

// False if not all could be written.
bool write_all(int fd, std::string_view text);
// Until the end of file.
std::string read_all(int fd);

}  // namespace bx::harness
