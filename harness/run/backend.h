// SPDX-License-Identifier: GPL-2.0-only
// A world to run a scenario in: a provider and what the harness asks of it beyond the boundary. On sim and
// loopback one process holds every host, and running one reactor runs them all; on RDMA devices each host is
// a process (harness/cluster), whose world is its own host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/settings.h"
#include "libbx/base/metrics.h"
#include "libbx/fabric/fabric.h"
#include "sim/provider/sim_fabric.h"

namespace bx::harness {

enum class BackendKind : std::uint8_t { sim, loopback, rxe, verbs };
std::string_view to_string(BackendKind kind) noexcept;

struct BackendChoice {
  BackendKind kind = BackendKind::sim;
  sim::EngineKind engine = sim::EngineKind::fast;
  std::vector<std::string> capture_ports{};  // of the simulated network
  std::string capture_file{};                // pcapng; empty: none
  std::string hosts_file{};                  // of verbs: who the hosts are (harness/cluster/hosts_file.h)
  // Tests break the simulated network with it, before anything runs, to see that a run notices.
  std::function<void(sim::SimNetwork&)> spoil{};
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual fabric::Fabric& fabric() noexcept = 0;
  [[nodiscard]] virtual std::uint64_t events() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t digest() const noexcept = 0;
  [[nodiscard]] virtual sim::NetworkSample sample()
      const noexcept = 0;  // zeros where there is no network to see
  virtual void report(MetricSink& sink) const = 0;
  [[nodiscard]] virtual sim::Audit audit() const = 0;
  // The clock of the scenario's faults begins. `listener` is told of processes and hosts that die.
  virtual void start_faults(sim::HostFaultListener* listener) = 0;
  [[nodiscard]] virtual std::vector<sim::FaultRecord> faults() const = 0;
  [[nodiscard]] virtual std::size_t faults_pending() const noexcept = 0;  // to begin or to end
  // Grows when the network gets anything done.
  [[nodiscard]] virtual std::uint64_t progress() const noexcept = 0;
  // Who waits for what in the network, a line each.
  [[nodiscard]] virtual std::vector<std::string> describe_stall() const = 0;
  // Writes out what a capture still holds. Errors: not all of it could be written.
  virtual Result<> end_capture() = 0;
  // Whether packets cross links at the scenario's rate, so that the closed form is a lower bound.
  [[nodiscard]] virtual bool has_closed_form() const noexcept = 0;
  // Otherwise time passes by itself: there is no digest, CPU time is the thread's, and nothing is ever
  // certain to be over.
  [[nodiscard]] virtual bool has_virtual_time() const noexcept { return true; }
};

// Errors: what the provider says of the configuration.
Result<std::unique_ptr<Backend>> make_backend(const BackendChoice& choice, const Settings& settings);

// Keys that the scenario sets and this backend cannot bring about: the result lists them.
std::vector<std::string> keys_taken_as_given(BackendKind kind, const Settings& settings);

// Why this backend cannot run the scenario's faults; empty if it can.
std::string why_no_faults(BackendKind kind, const Settings& settings);

// Why these ports of the simulated network cannot be captured, with the ports that there are; empty if they
// can.
std::string why_no_capture(const std::vector<std::string>& ports, const Settings& settings);

// Metrics that only a simulated network has ("pfc.", "switch.", ...): on another backend an expectation about
// one does not apply.
bool is_visible(BackendKind kind, std::string_view metric) noexcept;

}  // namespace bx::harness
