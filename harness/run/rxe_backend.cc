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

#include "harness/run/device_counters.h"
#include "harness/run/link_shaping.h"
#include "libbx/providers/verbs/verbs_fabric.h"

namespace bx::harness {
namespace {

constexpr const char* kEntered = "RXE_ENTERED";  // keeps a failed entry from being tried for ever

class RxeBackend final : public Backend {
 public:
  RxeBackend(std::unique_ptr<verbs::VerbsFabric> fabric, std::uint32_t hosts)
      : fabric_(std::move(fabric)), hosts_(hosts), counters_(ports_of(hosts)) {}
  fabric::Fabric& fabric() noexcept override { return *fabric_; }
  [[nodiscard]] std::uint64_t events() const noexcept override { return 0; }
  [[nodiscard]] std::uint64_t digest() const noexcept override { return 0; }
  [[nodiscard]] sim::NetworkSample sample() const noexcept override { return {}; }
  void report(MetricSink& sink) const override { counters_.report(sink); }
  [[nodiscard]] sim::Audit audit() const override { return {}; }
  void start_faults(sim::HostFaultListener* /*listener*/) override {}
  [[nodiscard]] std::vector<sim::FaultRecord> faults() const override { return {}; }
  [[nodiscard]] std::size_t faults_pending() const noexcept override { return 0; }
  [[nodiscard]] std::uint64_t progress() const noexcept override { return 0; }
  [[nodiscard]] std::vector<std::string> describe_stall() const override {
    std::vector<std::string> lines;
    for (std::uint32_t n = 1; n <= hosts_; ++n) {
      std::string line = fmt::format("rxe{}:", n);
      for (const DeviceCounter& counter : read_device_counters(fmt::format("rxe{}", n), 1)) {
        if (counter.value != 0) line += fmt::format(" {} {}", counter.name, counter.value);
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }
  Result<> end_capture() override { return {}; }
  [[nodiscard]] bool has_closed_form() const noexcept override { return false; }
  [[nodiscard]] bool has_virtual_time() const noexcept override { return false; }

 private:
  static std::vector<CountedPort> ports_of(std::uint32_t hosts) {
    std::vector<CountedPort> ports;
    for (std::uint32_t n = 1; n <= hosts; ++n) ports.push_back({fmt::format("rxe{}", n), 1});
    return ports;
  }

  std::unique_ptr<verbs::VerbsFabric> fabric_;
  std::uint32_t hosts_;
  PortCounters counters_;
};

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

Result<std::unique_ptr<Backend>> make_rxe_backend(const Settings& settings) {
  const std::uint32_t hosts = settings.fabric.hosts;
  if (!inside_rxe()) {
    return fail(ErrorCode::unreachable, ErrorScope::device,
                "there are no SoftRoCE hosts: run under scripts/rxe");
  }
  if (!exists(hosts)) {
    return fail(ErrorCode::exhausted, ErrorScope::device,
                "the scenario has more hosts than scripts/rxe made: give it --hosts");
  }
  const LinkShape shape{.hosts = hosts,
                        .rate_bps = settings.fabric.rate_bps,
                        .delay_ns = settings.fabric.delay_ns,
                        .mtu = static_cast<std::uint32_t>(settings.fabric.mtu)};
  if (Parsed<void> shaped = shape_links(shape); !shaped) {
    fmt::print(stderr, "bx: {}\n", shaped.error());
    return fail(ErrorCode::device, ErrorScope::device, "the links could not be shaped");
  }
  verbs::VerbsConfig config;
  config.seed = settings.fabric.seed;
  for (std::uint32_t n = 0; n < hosts; ++n) {
    config.hosts.push_back({.name = fmt::format("host{}", n), .address = fmt::format("10.77.0.{}", n + 1)});
  }
  Result<std::unique_ptr<verbs::VerbsFabric>> fabric = verbs::VerbsFabric::create(config);
  if (!fabric) return tl::unexpected<Error>(fabric.error());
  return std::make_unique<RxeBackend>(std::move(*fabric), hosts);
}

}  // namespace bx::harness
