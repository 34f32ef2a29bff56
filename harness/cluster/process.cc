// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "harness/base/child_process.h"
#include "harness/base/text.h"

namespace bx::harness {
namespace {

constexpr std::size_t kLineMax = 500;
constexpr int kNotStarted = 127;

// In the child. Only calls that are safe after fork.
[[noreturn]] void become(char* const* words, int in, int errors) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  ::dup2(in, STDIN_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // it has no result to print
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(words[0], words);
  static constexpr char kWhat[] = "cannot be started\n";
  [[maybe_unused]] const ssize_t said = ::write(STDERR_FILENO, kWhat, sizeof kWhat - 1);
  ::_exit(kNotStarted);
}

}  // namespace

Parsed<std::unique_ptr<Process>> Process::start(const std::string& name, std::vector<std::string> words,
                                                const std::string& input) {
  std::array<int, 2> in{-1, -1};
  std::array<int, 2> errors{-1, -1};
  const auto close_all = [&] {
    for (const int fd : {in[0], in[1], errors[0], errors[1]}) {
      if (fd >= 0) ::close(fd);
    }
  };
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);  // or the child would print it again
  const bool piped = ::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(errors.data(), O_CLOEXEC) == 0;
  const pid_t pid = piped ? ::fork() : -1;
  if (pid == 0) become(argv.data(), in[0], errors[1]);
  if (pid < 0) {
    std::string why = fmt::format("no process could be started: {}", std::strerror(errno));
    close_all();
    return tl::unexpected(std::move(why));
  }
  ::close(std::exchange(in[0], -1));
  ::close(std::exchange(errors[1], -1));
  auto process = std::make_unique<Process>(pid);
  process->name_ = name;
  process->error_fd_ = std::exchange(errors[0], -1);
  ::fcntl(process->error_fd_, F_SETFL, O_NONBLOCK);
  const bool written =
      write_all(in[1], input);  // shorter than a pipe holds; SIGPIPE is ignored (Coordinator)
  close_all();
  if (!written) process->last_ = "it took no input";
  return process;
}

Process::~Process() {
  if (pid_ > 0 && !ended_) {
    kill();
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (error_fd_ >= 0) {
    read_errors();
    ::close(error_fd_);
  }
}

void Process::kill() noexcept {
  if (pid_ > 0 && !ended_) ::kill(pid_, SIGKILL);
}

std::optional<std::string> Process::ended() {
  read_errors();
  if (ended_) return ended_;
  int status = 0;
  const pid_t found = ::waitpid(pid_, &status, WNOHANG);
  if (found != pid_) return std::nullopt;
  read_errors();
  if (WIFSIGNALED(status)) {
    ended_ = fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  } else {
    ended_ = fmt::format("ended with status {}", WEXITSTATUS(status));
  }
  if (!last_.empty()) *ended_ += ": " + last_;
  return ended_;
}

void Process::read_errors() {
  char buffer[4096];
  for (;;) {
    const ssize_t length = error_fd_ < 0 ? 0 : ::read(error_fd_, buffer, sizeof buffer);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return;
    for (const char c : std::string_view(buffer, static_cast<std::size_t>(length))) {
      if (c != '\n' && line_.size() < kLineMax) {
        line_.push_back(c);
      } else if (!line_.empty()) {
        last_ = printable(std::exchange(line_, {}), kLineMax);
        fmt::print(stderr, "{}: {}\n", name_, last_);
      }
    }
  }
}

}  // namespace bx::harness
