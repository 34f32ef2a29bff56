// SPDX-License-Identifier: GPL-2.0-only
// The hosts of a run with the library on each of them: what the network looks like to the harness.
#pragma once

#include <bx/bx.h>

#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "harness/measure/metric_set.h"
#include "harness/measure/series.h"
#include "harness/run/backend.h"
#include "harness/run/variant_result.h"
#include "harness/scenario/settings.h"

namespace bx::harness {

struct Node {
  std::uint32_t number = 0;
  bool client = false;
  bool server = false;
  std::unique_ptr<fabric::Host> host;
  std::unique_ptr<Context> context;  // null on a host that only flows use, and while its process is dead
};

class World {
 public:
  // Opens every host that a workload names. The error is a sentence for a person.
  static Parsed<std::unique_ptr<World>> create(const BackendChoice& choice, const Settings& settings);
  // Only those of `only`, which other processes' worlds complete.
  static Parsed<std::unique_ptr<World>> create(std::unique_ptr<Backend> backend, const Settings& settings,
                                               const HostList& only);

  [[nodiscard]] Backend& backend() noexcept { return *backend_; }
  [[nodiscard]] const Backend& backend() const noexcept { return *backend_; }
  [[nodiscard]] std::vector<Node>& nodes() noexcept { return nodes_; }
  [[nodiscard]] bool has(std::uint32_t host) const noexcept;
  [[nodiscard]] Worker worker(std::uint32_t host) noexcept;  // one with a context
  [[nodiscard]] fabric::Host& host(std::uint32_t number) noexcept;
  // Ends the host's process, as kill -9 does, or starts a new one. The error is a sentence.
  void kill(std::uint32_t host);
  Parsed<void> revive(std::uint32_t host, const Settings& settings);
  [[nodiscard]] Instant now() const noexcept { return reactor().now(); }
  // Runs every host until `limit`, stop() or nothing is left to happen.
  fabric::RunEnd run(Instant limit) { return reactor().run(limit); }
  void stop() noexcept { reactor().stop(); }

  // Counters of the network and of all workers together.
  [[nodiscard]] MetricSet counters() const;
  // CPU time of the clients (or else the servers) so far, in nanoseconds.
  [[nodiscard]] std::uint64_t cpu_time_ns(bool clients) const;
  [[nodiscard]] std::uint64_t hosts(bool clients) const;
  // Payload that clients have received so far.
  [[nodiscard]] std::uint64_t client_bytes() const;
  // One row of the series, without its goodput.
  [[nodiscard]] SeriesRow sample() const;
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::vector<std::uint32_t> busy_hosts() const;
  void check_invariants() const;
  // Grows when the network or any worker gets anything done.
  [[nodiscard]] std::uint64_t progress() const;
  // Of each worker that is not idle, then of the network.
  [[nodiscard]] std::vector<std::string> describe_stall() const;
  // What each worker was made with.
  [[nodiscard]] std::vector<Config> configs() const;

 private:
  World() = default;
  Parsed<void> open(std::uint32_t number, Node node, const Settings& settings);
  // Hosts with the library.
  [[nodiscard]] auto workers() const {
    return nodes_ | std::views::filter([](const Node& node) { return node.context != nullptr; });
  }
  [[nodiscard]] fabric::Reactor& reactor() const noexcept { return nodes_.front().host->reactor(); }

  std::unique_ptr<Backend> backend_;
  std::vector<Node> nodes_;  // by number
  MetricSet of_the_dead_;    // counters of processes that were killed
};

// The knobs in force, the largest value of any host where the harness sized them.
std::vector<KnobInForce> knobs_in_force(const Settings& settings, std::span<const Config> configs);
// Every key of the scenario but the library's.
std::vector<KnobInForce> settings_in_force(const Settings& settings);

}  // namespace bx::harness
