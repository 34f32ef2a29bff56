// SPDX-License-Identifier: GPL-2.0-only
// Traffic of the NIC model alone, without the library: each flow is one WRITE over a queue pair of its own.
// What `bx perf sim` measures, so that its figures are those of the network model and of nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/result.h"
#include "sim/provider/sim_config.h"
#include "sim/provider/sim_network.h"

namespace bx::sim {

struct RawFlow {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint64_t bytes = 0;
};

class RawTraffic {
 public:
  // Errors: those of plan_network.
  static Result<std::unique_ptr<RawTraffic>> create(const SimConfig& config);

  // Connects `count` pairs of queue pairs between two hosts that nothing will use.
  void open_idle(std::uint16_t a, std::uint16_t b, std::size_t count);
  // Posts all flows, each over a new connection, at the present moment.
  void post(const std::vector<RawFlow>& flows);
  // Until nothing is left. False: a flow did not complete with success, or something never ends.
  [[nodiscard]] bool run();
  // Lets simulated time pass with nothing to do.
  void idle(Picoseconds time);

  [[nodiscard]] SimNetwork& network() noexcept { return *network_; }
  [[nodiscard]] const SimNetwork& network() const noexcept { return *network_; }

 private:
  struct HostObjects {
    CompletionQueue* cq = nullptr;
    SharedReceiveQueue* srq = nullptr;
    MemoryKeys keys{};
  };
  explicit RawTraffic(std::unique_ptr<SimNetwork> network) : network_(std::move(network)) {}
  [[nodiscard]] HostObjects& objects(std::uint16_t host);
  RcQueuePair& connect(std::uint16_t a, std::uint16_t b);

  // All hosts of a partition send from and receive into one piece of memory: what is written matters to
  // nobody, and the memory of a thousand hosts would be measured for the model's.
  std::vector<std::vector<std::byte>> memory_;
  std::unique_ptr<SimNetwork> network_;
  std::vector<HostObjects> objects_;
  std::size_t posted_ = 0;
};

}  // namespace bx::sim
