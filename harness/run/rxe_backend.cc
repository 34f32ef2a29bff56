// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/rxe_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/run/link_shaping.h"
#include "harness/run/verbs_backend.h"

namespace bx::harness {
namespace {

constexpr const char* kEntered = "RXE_ENTERED";  // keeps a failed entry from being tried for ever

bool exists(std::uint32_t host) {
  std::error_code none;
  return std::filesystem::exists(fmt::format("/sys/class/infiniband/rxe{}", host), none);
}

}  // namespace

bool inside_rxe() {
  return exists(1) && std::filesystem::exists("/sys/class/net/bxbr");
}

std::string enter_rxe(std::uint32_t hosts, const std::string& writable) {
  const std::string script = std::string(BX_SOURCE_DIRECTORY) + "/scripts/rxe";
  if (::getenv(kEntered) != nullptr) return "scripts/rxe made no hosts";
  if (::access(script.c_str(), X_OK) != 0) return fmt::format("{} is not there: run from a checkout", script);
  ::setenv(kEntered, "1", 1);
  std::vector<std::string> words{script, "--hosts", std::to_string(hosts), "--time-limit", "3600"};
  if (!writable.empty()) words.insert(words.end(), {"--writable", writable});
  words.emplace_back("--");
  const std::size_t program = words.size();
  std::ifstream command_line("/proc/self/cmdline", std::ios::binary);
  std::string word;
  while (std::getline(command_line, word, '\0')) words.push_back(word);
  words[program] = std::filesystem::read_symlink("/proc/self/exe").string();  // as the guest finds it, too
  std::vector<char*> argv;
  for (std::string& each : words) argv.push_back(each.data());
  argv.push_back(nullptr);
  ::execv(script.c_str(), argv.data());
  return fmt::format("{}: {}", script, std::strerror(errno));
}

std::string shape_rxe_links(const Settings& settings) {
  const std::uint32_t hosts = settings.fabric.hosts;
  if (!inside_rxe()) return "there are no SoftRoCE hosts: run under scripts/rxe";
  if (!exists(hosts)) return "the scenario has more hosts than scripts/rxe made: give it --hosts";
  const LinkShape shape{.hosts = hosts,
                        .rate_bps = settings.fabric.rate_bps,
                        .delay_ns = settings.fabric.delay_ns,
                        .mtu = static_cast<std::uint32_t>(settings.fabric.mtu)};
  Parsed<void> shaped = shape_links(shape);
  return shaped ? std::string() : "the links could not be shaped: " + shaped.error();
}

std::string rxe_address(std::uint32_t host) {
  return fmt::format("10.77.0.{}", host + 1);
}

Result<std::unique_ptr<Backend>> make_rxe_backend(const Settings& settings) {
  if (const std::string why = shape_rxe_links(settings); !why.empty()) {
    fmt::print(stderr, "bx: {}\n", why);
    return fail(ErrorCode::device, ErrorScope::device, "the SoftRoCE hosts could not be set up");
  }
  verbs::VerbsConfig config;
  config.seed = settings.fabric.seed;
  std::vector<CountedPort> ports;
  for (std::uint32_t n = 0; n < settings.fabric.hosts; ++n) {
    config.hosts.push_back({.name = fmt::format("host{}", n), .address = rxe_address(n)});
    ports.push_back({fmt::format("rxe{}", n + 1), 1});
  }
  return make_verbs_backend(config, std::move(ports));
}

}  // namespace bx::harness
