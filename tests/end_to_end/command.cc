// SPDX-License-Identifier: GPL-2.0-only
#include "tests/end_to_end/command.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace bx::end_to_end {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void execute(const fs::path& directory, const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment) {
  std::vector<std::string> words{BX_COMMAND};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (::chdir(directory.c_str()) == 0) ::execv(BX_COMMAND, argv.data());
  ::_exit(127);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void redirect(int fd, const fs::path& to) {
  const int file = ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, fd);
  ::close(file);
}

}  // namespace

std::string incast_scenario(const std::string& more) {
  return R"(name = "incast"
[fabric]
hosts = 17
buffer = "12MiB"
[[workload]]
kind = "incast"
clients = 0
servers = "1..16"
answer = "1MiB"
)" + more;
}

void CommandTest::SetUp() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  directory_ = fs::temp_directory_path() / ("bx-" + std::string(test->test_suite_name()) + "-" +
                                            test->name() + "-" + std::to_string(::getpid()));
  fs::create_directories(directory_);
}

void CommandTest::TearDown() {
  fs::remove_all(directory_);
}

Outcome CommandTest::bx(const std::vector<std::string>& arguments,
                        const std::map<std::string, std::string>& environment) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    redirect(STDOUT_FILENO, directory_ / ".out");
    redirect(STDERR_FILENO, directory_ / ".err");
    execute(directory_, arguments, environment);
  }
  Outcome outcome;
  outcome.status = wait_for(pid);
  outcome.out = read(".out");
  outcome.err = read(".err");
  fs::remove(directory_ / ".out");
  fs::remove(directory_ / ".err");
  return outcome;
}

Outcome CommandTest::bx_interrupted_at(const std::string& marker, const std::vector<std::string>& arguments) {
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) execute(directory_, arguments, {});
  Outcome outcome;
  bool sent = false;
  char buffer[4096];
  // A terminal whose other end is gone gives EIO.
  for (ssize_t length; (length = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    outcome.out.append(buffer, static_cast<std::size_t>(length));
    if (!sent && outcome.out.find(marker) != std::string::npos) {
      ::kill(pid, SIGINT);
      sent = true;
    }
  }
  ::close(terminal);
  outcome.status = wait_for(pid);
  EXPECT_TRUE(sent) << "'" << marker << "' never appeared in:\n" << outcome.out;
  return outcome;
}

std::string CommandTest::file(const std::string& name, const std::string& content) {
  std::ofstream(directory_ / name, std::ios::binary) << content;
  return name;
}

std::string CommandTest::read(const fs::path& name) const {
  std::ifstream stream(directory_ / name, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

nlohmann::json CommandTest::result(const std::string& directory) const {
  return nlohmann::json::parse(read(fs::path(directory) / "result.json"));
}

std::string CommandTest::source(const std::string& path) {
  return std::string(BX_SOURCE_DIR) + "/" + path;
}

}  // namespace bx::end_to_end
