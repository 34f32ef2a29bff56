// SPDX-License-Identifier: GPL-2.0-only
// A program that this process has started: an agent, or the ssh client that runs one elsewhere. It is in a
// session of its own, so that Ctrl-C of the terminal reaches the coordinator only, and it dies with its
// parent. What it writes to standard error goes on to ours, with its name before each line; the last lines
// are kept to say why it ended.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"

namespace bx::harness {

class Process {
 public:
  // `input` is all that it gets on standard input, which is closed then. The error is a sentence.
  static Parsed<std::unique_ptr<Process>> start(const std::string& name, std::vector<std::string> words,
                                                const std::string& input);
  // One that was started otherwise, for tests.
  explicit Process(pid_t pid) : pid_(pid) {}
  // Kills it if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // How it ended, or nothing while it runs: "was ended by signal 9 (Killed)". Passes on what it has written.
  [[nodiscard]] std::optional<std::string> ended();
  void kill() noexcept;
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // Of its standard error; -1 if it is not ours to read.
  [[nodiscard]] int error_fd() const noexcept { return error_fd_; }
  void read_errors();

 private:
  std::string name_;
  pid_t pid_ = -1;
  int error_fd_ = -1;
  std::string line_;  // the beginning of one
  std::string last_;  // what it said last
  std::optional<std::string> ended_;
};

}  // namespace bx::harness
