// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/link_shaping.h"

#include <fmt/format.h>
#include <stdio.h>  // popen
#include <sys/wait.h>

namespace bx::harness {
namespace {

constexpr unsigned kWireBytes = 24;            // of a frame that the kernel does not count
constexpr unsigned kQueuePackets = 1'000'000;  // nothing is dropped for want of room
constexpr unsigned kRoceHeaders = 128;         // room for them beside the path MTU

Parsed<void> feed(const char* command, const std::string& lines) {
  FILE* pipe = ::popen(command, "w");
  if (pipe == nullptr) return tl::unexpected(fmt::format("{}: cannot be started", command));
  const bool written = std::fwrite(lines.data(), 1, lines.size(), pipe) == lines.size();
  const int status = ::pclose(pipe);
  if (written && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return tl::unexpected(fmt::format("{} failed; it was given:\n{}", command, lines));
}

}  // namespace

std::string tc_lines(const LinkShape& shape) {
  std::string lines;
  for (std::uint32_t n = 1; n <= shape.hosts; ++n) {
    for (const char side : {'h', 'p'}) {
      lines += fmt::format("qdisc replace dev {}{} root netem limit {}", side, n, kQueuePackets);
      if (shape.delay_ns >= 1000) lines += fmt::format(" delay {}us", shape.delay_ns / 1000);
      lines += fmt::format(" rate {}bit {}\n", shape.rate_bps, kWireBytes);
    }
  }
  return lines;
}

std::string ip_lines(const LinkShape& shape) {
  constexpr std::uint32_t kLargest = 4096;
  constexpr std::uint32_t kJumbo = 9000;
  const std::uint32_t mtu = shape.mtu >= kLargest ? kJumbo : shape.mtu + kRoceHeaders;
  std::string lines;
  for (std::uint32_t n = 1; n <= shape.hosts; ++n) lines += fmt::format("link set h{} mtu {}\n", n, mtu);
  return lines;
}

Parsed<void> shape_links(const LinkShape& shape) {
  if (Parsed<void> done = feed("ip -batch -", ip_lines(shape)); !done) return done;
  if (shape.rate_bps > kShapedRateMax) return {};
  return feed("tc -batch -", tc_lines(shape));
}

}  // namespace bx::harness
