// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/child_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bx::harness {

Result<ChildProcess> start_child(const std::function<bool(int fd)>& body,
                                 std::span<const int> not_for_child) {
  int ends[2];
  std::fflush(nullptr);  // or the child would print it again
  const bool piped = ::pipe(ends) == 0;
  const pid_t pid = piped ? ::fork() : -1;
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody is left to hear the result
    ::close(ends[0]);
    for (const int fd : not_for_child) ::close(fd);
    const bool good = body(ends[1]);
    ::close(ends[1]);
    std::exit(good ? EXIT_SUCCESS : EXIT_FAILURE);  // not _exit: the leak checker of ASan runs at exit
  }
  if (pid < 0) {
    const int error = errno;
    if (piped) ::close(ends[0]), ::close(ends[1]);
    return fail(ErrorCode::exhausted, ErrorScope::operation, "no process could be started", error);
  }
  ::close(ends[1]);
  return ChildProcess{pid, ends[0]};
}

std::string end_child(ChildProcess child) {
  ::close(child.fd);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != EXIT_SUCCESS) return fmt::format("ended with status {}", WEXITSTATUS(status));
  return {};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t length = ::read(fd, buffer, sizeof buffer);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(length));
  }
}

}  // namespace bx::harness
