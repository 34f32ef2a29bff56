// SPDX-License-Identifier: GPL-2.0-only
// Runs the command `bx` from a test, in a directory of its own that is gone afterwards.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bx::end_to_end {

struct Outcome {
  int status = -1;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

// Sixteen servers with a shallow buffer: small enough for every test, large enough to pause.
std::string incast_scenario(const std::string& more = "");

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Runs `bx ARGUMENTS...` in the test's directory, with `environment` added.
  Outcome bx(const std::vector<std::string>& arguments,
             const std::map<std::string, std::string>& environment = {});
  // Runs it on a terminal, sends SIGINT to it when `marker` has appeared there, and reads on to the end.
  Outcome bx_interrupted_at(const std::string& marker, const std::vector<std::string>& arguments);

  // Writes a file in the test's directory and returns its name.
  std::string file(const std::string& name, const std::string& content);
  std::string read(const std::filesystem::path& name) const;
  nlohmann::json result(const std::string& directory) const;
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  static std::string source(const std::string& path);  // a file of the source tree

 private:
  std::filesystem::path directory_;
};

}  // namespace bx::end_to_end
