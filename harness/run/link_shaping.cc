// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/link_shaping.h"

#include <fmt/format.h>
#include <stdio.h>  // popen
#include <sys/wait.h>

#include <string_view>

namespace bx::harness {
namespace {

constexpr unsigned kWireBytes = 24;            // of a frame that the kernel does not count
constexpr unsigned kQueuePackets = 1'000'000;  // nothing is dropped for want of room
constexpr unsigned kRoceHeaders = 128;         // room for them beside the path MTU

std::string netem(const LinkShape& shape, const std::string& device, std::uint64_t delay_ns) {
  std::string line = fmt::format("qdisc replace dev {} root netem limit {}", device, kQueuePackets);
  if (delay_ns >= 1000) line += fmt::format(" delay {}us", delay_ns / 1000);
  if (shape.rate_bps <= kShapedRateMax) line += fmt::format(" rate {}bit {}", shape.rate_bps, kWireBytes);
  return line;
}

}  // namespace

Parsed<void> run_batch(const char* command, const std::string& lines) {
  FILE* pipe = ::popen(command, "w");
  if (pipe == nullptr) return tl::unexpected(fmt::format("{}: cannot be started", command));
  const bool written = std::fwrite(lines.data(), 1, lines.size(), pipe) == lines.size();
  const int status = ::pclose(pipe);
  if (written && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return tl::unexpected(fmt::format("{} failed; it was given:\n{}", command, lines));
}

std::uint64_t dropped_packets(const std::string& device) {
  FILE* pipe = ::popen(fmt::format("tc -s qdisc show dev {}", device).c_str(), "r");
  if (pipe == nullptr) return 0;
  std::uint64_t sum = 0;
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    const std::string_view text(line);
    unsigned long long dropped = 0;
    const std::size_t at = text.find("(dropped ");
    if (at != std::string_view::npos && std::sscanf(line + at, "(dropped %llu", &dropped) == 1)
      sum += dropped;
  }
  ::pclose(pipe);
  return sum;
}

std::string impairment_line(const LinkShape& shape, const std::string& device, const Impairment& impairment) {
  const std::uint64_t own_delay = shape.rate_bps <= kShapedRateMax ? shape.delay_ns : 0;
  const std::string line = netem(shape, device, own_delay + impairment.delay_ns);
  // Both always: netem keeps some of what a change does not name.
  return fmt::format("{} loss {:.4f}% corrupt {:.4f}%\n", line, impairment.loss * 100,
                     impairment.corruption * 100);
}

std::string tc_lines(const LinkShape& shape) {
  std::string lines;
  for (std::uint32_t n = 1; n <= shape.hosts; ++n) {
    for (const char side : {'h', 'p'}) {
      lines += netem(shape, fmt::format("{}{}", side, n), shape.delay_ns) + "\n";
    }
  }
  return lines;
}

std::string ip_lines(const LinkShape& shape) {
  constexpr std::uint32_t kLargest = 4096;
  constexpr std::uint32_t kJumbo = 9000;
  const std::uint32_t mtu = shape.mtu >= kLargest ? kJumbo : shape.mtu + kRoceHeaders;
  std::string lines;
  for (std::uint32_t n = 1; n <= shape.hosts; ++n) {
    lines +=
        fmt::format("link set h{} mtu {}\nlink set p{} up\n", n, mtu, n);  // down: a fault of the last run
  }
  return lines;
}

Parsed<void> shape_links(const LinkShape& shape) {
  if (Parsed<void> done = run_batch("ip -batch -", ip_lines(shape)); !done) return done;
  if (shape.rate_bps > kShapedRateMax) return {};
  return run_batch("tc -batch -", tc_lines(shape));
}

}  // namespace bx::harness
