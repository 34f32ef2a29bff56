// SPDX-License-Identifier: GPL-2.0-only
#include "harness/machine/system_view.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "harness/base/text.h"

extern char** environ;

namespace bx::harness {
namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text.erase(end == std::string::npos ? 0 : end + 1);
  return text;
}

// Reads the pipe to its end, of which at most `limit` bytes are kept.
std::string drain(int descriptor, std::size_t limit) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t count = ::read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(part.data(), std::min(static_cast<std::size_t>(count), limit - text.size()));
  }
}

std::optional<std::string> output_of(const std::vector<std::string>& words, std::size_t limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text = failed == 0 ? drain(ends[0], limit) : std::string();
  ::close(ends[0]);
  if (failed != 0) return std::nullopt;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return trimmed(std::move(text));
}

}  // namespace

SystemView::SystemView(std::string root) : root_(std::move(root)) {
  while (root_.ends_with('/')) root_.pop_back();
}

std::optional<std::string> SystemView::read(std::string_view path) const {
  std::ifstream file(root_ + std::string(path), std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kTextMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return trimmed(std::move(text));
}

std::optional<std::uint64_t> SystemView::read_number(std::string_view path) const {
  const std::optional<std::string> text = read(path);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end == text->data()) return std::nullopt;
  return number;
}

std::vector<std::string> SystemView::list(std::string_view directory) const {
  std::vector<std::string> names;
  std::error_code none;
  for (fs::directory_iterator it(root_ + std::string(directory), none), end; !none && it != end;
       it.increment(none)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

bool SystemView::exists(std::string_view path) const {
  std::error_code none;
  return fs::exists(fs::symlink_status(root_ + std::string(path), none));
}

std::optional<std::string> SystemView::link_name(std::string_view path) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(root_ + std::string(path), error);
  if (error) return std::nullopt;
  return target.filename().string();
}

std::optional<std::string> SystemView::run(const std::vector<std::string>& words) const {
  if (is_this_machine()) return output_of(words, kTextMax);
  return read("/commands/" + join(words, "_"));
}

}  // namespace bx::harness
