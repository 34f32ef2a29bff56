// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/verbs_backend.h"

#include <fmt/format.h>

#include <utility>

namespace bx::harness {
namespace {

class VerbsBackend final : public Backend {
 public:
  VerbsBackend(std::unique_ptr<verbs::VerbsFabric> fabric, std::vector<CountedPort> ports)
      : fabric_(std::move(fabric)), ports_(ports), counters_(std::move(ports)) {}
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
    for (const CountedPort& port : ports_) {
      std::string line = port.device + ":";
      for (const DeviceCounter& counter : read_device_counters(port.device, port.port)) {
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
  std::unique_ptr<verbs::VerbsFabric> fabric_;
  std::vector<CountedPort> ports_;
  PortCounters counters_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_verbs_backend(const verbs::VerbsConfig& config,
                                                    std::vector<CountedPort> ports) {
  Result<std::unique_ptr<verbs::VerbsFabric>> fabric = verbs::VerbsFabric::create(config);
  if (!fabric) return tl::unexpected<Error>(fabric.error());
  return std::make_unique<VerbsBackend>(std::move(*fabric), std::move(ports));
}

}  // namespace bx::harness
