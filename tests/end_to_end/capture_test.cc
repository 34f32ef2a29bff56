// SPDX-License-Identifier: GPL-2.0-only
// `bx run --capture`: what tshark makes of the file.
#include <array>
#include <cstdio>
#include <filesystem>

#include "tests/end_to_end/command.h"

namespace bx::end_to_end {
namespace {

class CaptureRun : public CommandTest {
 protected:
  static std::string output_of(const std::string& command) {
    std::string text;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return text;
    std::array<char, 4096> buffer{};
    while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
      text.append(buffer.data(), count);
    ::pclose(pipe);
    return text;
  }
};

TEST_F(CaptureRun, capture__tshark_reads_the_frames_of_each_named_port) {
  const std::string scenario = file("s.toml", incast_scenario());
  const Outcome outcome =
      bx({"run", scenario, "--capture", "host0", "--capture", "switch0:1", "--out", "captured"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const std::string fields =
      output_of("cd '" + directory().string() +
                "' && tshark -r captured/base.pcapng -T fields -e frame.interface_name -e "
                "infiniband.bth.opcode 2>/dev/null");
  if (fields.empty() && output_of("command -v tshark").empty()) GTEST_SKIP() << "tshark is not installed";
  EXPECT_NE(fields.find("host0\t"), std::string::npos);
  EXPECT_NE(fields.find("switch0:1\t"), std::string::npos);
  EXPECT_GT(std::count(fields.begin(), fields.end(), '\n'), 100);
}

TEST_F(CaptureRun, capture__of_a_port_that_is_not_there_is_refused) {
  const std::string scenario = file("s.toml", incast_scenario());
  for (const char* port : {"host99", "switch0:99", "leaf7:0"}) {
    const Outcome outcome = bx({"run", scenario, "--capture", port, "--out", "none"});
    EXPECT_EQ(outcome.status, 2) << port;
    EXPECT_NE(outcome.err.find("there are host0 to host"), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(directory() / "none")) << port;
  }
  const Outcome loopback = bx({"run", scenario, "--on", "loopback", "--capture", "host0", "--out", "none"});
  EXPECT_EQ(loopback.status, 2);
}

}  // namespace
}  // namespace bx::end_to_end
