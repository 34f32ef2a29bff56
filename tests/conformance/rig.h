// SPDX-License-Identifier: BSD-3-Clause
// Two connected hosts, as the conformance tests use them:
//
//   alpha: memory, mr, send_cq, recv_cq, srq, qp  <--->  beta: the same
//
// Tests drive from outside any turn: post, run the loop, poll. Every call to the provider goes through a
// CallGuard, so that a wake-up inside a call shows.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libbx/fabric/fabric.h"
#include "tests/conformance/provider.h"

namespace bx::conformance {

using namespace std::chrono_literals;
using fabric::Access;
using fabric::ArmResult;
using fabric::Completion;
using fabric::Opcode;
using fabric::PathConfig;
using fabric::RecvWr;
using fabric::SendFlags;
using fabric::SendWr;
using fabric::Sge;
using fabric::WcOpcode;
using fabric::WcStatus;
using fabric::WrId;

// Counts wake-ups, and those that came inside a call that the test was making.
class CountingWaker final : public fabric::Waker {
 public:
  explicit CountingWaker(const int& calls_open) : calls_open_(calls_open) {}
  void wake() noexcept override {
    ++wakes;
    if (calls_open_ > 0) ++wakes_inside_call;
  }
  int wakes = 0;
  int wakes_inside_call = 0;

 private:
  const int& calls_open_;
};

struct RigConfig {
  std::uint32_t send_depth = 16;
  std::uint32_t srq_depth = 64;
  std::uint32_t send_cq_depth = 256;
  std::uint32_t recv_cq_depth = 256;
  std::uint32_t sges_max = 4;
  std::uint32_t recv_sges_max = 4;
  std::uint32_t inline_max = 64;
  std::size_t memory_bytes = std::size_t{1} << 18U;
  Access access = Access::remote_all;
  std::uint64_t seed = 7;
  // Quick to fail: 1.05 ms ACK timeout, 0.01 ms RNR timer.
  PathConfig path{.mtu_bytes = 1024, .ack_timeout = 8, .retry_cnt = 2, .rnr_retry = 7, .min_rnr_timer = 1};
  std::optional<PathConfig> beta_path{};  // if it differs from alpha's
};

// One host's objects, declared in the order in which they are made.
class Endpoint {
 public:
  Endpoint(std::unique_ptr<fabric::Host> opened, const RigConfig& config, int& calls_open);

  [[nodiscard]] Sge sge(std::size_t offset, std::size_t length) const;
  [[nodiscard]] fabric::RemoteSpan remote(std::size_t offset) const;
  [[nodiscard]] std::span<std::byte> bytes(std::size_t offset, std::size_t length);
  void fill(std::size_t offset, std::size_t length, std::uint8_t seed);
  [[nodiscard]] bool holds(std::size_t offset, std::size_t length, std::uint8_t seed) const;

  // A second queue pair on the same queues.
  std::unique_ptr<fabric::QueuePair> make_qp();
  std::size_t post(std::span<const SendWr> requests);
  std::size_t post(const SendWr& request) { return post(std::span(&request, 1)); }
  // `count` receives of `length` bytes each at `offset`, all at the same place; wr_ids from `first` on.
  std::size_t post_recv(std::uint64_t first, std::size_t count = 1, std::size_t offset = 0,
                        std::size_t length = 0);
  std::size_t post_recv(const RecvWr& request);
  std::vector<Completion> poll(fabric::CompletionQueue& cq, std::size_t max = SIZE_MAX);
  void fail();

  RigConfig config;
  int& calls_open;
  std::unique_ptr<fabric::Host> host;
  std::vector<std::byte> memory;
  CountingWaker send_waker;
  CountingWaker recv_waker;
  CountingWaker event_waker;
  std::unique_ptr<fabric::MemoryRegion> mr;
  std::unique_ptr<fabric::CompletionQueue> send_cq;
  std::unique_ptr<fabric::CompletionQueue> recv_cq;
  std::unique_ptr<fabric::SharedReceiveQueue> srq;
  std::unique_ptr<fabric::QueuePair> qp;
};

class Rig {
 public:
  explicit Rig(const Provider& provider, const RigConfig& config = {})
      : Rig(provider.make(config.seed), provider.hosts, fitted(config, provider.clock)) {
    clock = provider.clock;
  }
  Rig(std::unique_ptr<fabric::Fabric> made, const std::array<const char*, 2>& hosts, const RigConfig& config);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  static void connect(Endpoint& a, fabric::QueuePair& a_qp, Endpoint& b, fabric::QueuePair& b_qp);
  [[nodiscard]] Instant now() { return alpha->host->reactor().now(); }
  // Runs until `done` or until nothing can happen any more or `limit` has passed; returns done().
  bool run_until(const std::function<bool()>& done, Duration limit = 200ms);
  void run_for(Duration duration);
  // Runs long enough for everything under way to end, retries included.
  void settle() { run_for(100ms); }
  // Runs until `count` completions have been polled; fewer if they do not come.
  std::vector<Completion> wait(Endpoint& at, fabric::CompletionQueue& cq, std::size_t count,
                               Duration limit = 200ms);
  std::vector<Completion> wait_sends(Endpoint& at, std::size_t count, Duration limit = 200ms) {
    return wait(at, *at.send_cq, count, limit);
  }
  std::vector<Completion> wait_recvs(Endpoint& at, std::size_t count, Duration limit = 200ms) {
    return wait(at, *at.recv_cq, count, limit);
  }
  // True if a request posted to the queue pair now completes as flushed: it is in the error state.
  bool failed(Endpoint& at);

  // Whether what should last no longer than `limit` did; under a real clock nobody can say.
  [[nodiscard]] bool within(Duration time, Duration limit) const {
    return clock == Clock::real || time < limit;
  }
  // Under a real clock an ACK timeout of a millisecond is no sign of a lost packet.
  static RigConfig fitted(RigConfig config, Clock clock);

  int calls_open = 0;
  Clock clock = Clock::virtual_time;
  std::unique_ptr<fabric::Fabric> fabric;
  std::unique_ptr<Endpoint> alpha;
  std::unique_ptr<Endpoint> beta;
};

// Requests, by their most common shape.
SendWr send_wr(std::uint64_t id, std::span<const Sge> sges, SendFlags flags = SendFlags::signaled);
SendWr remote_wr(Opcode opcode, std::uint64_t id, std::span<const Sge> sges, fabric::RemoteSpan remote);

std::vector<std::uint64_t> ids(const std::vector<Completion>& completions);
std::vector<std::uint64_t> numbers(std::uint64_t first, std::size_t count);
std::vector<WcStatus> statuses(const std::vector<Completion>& completions);

// The group of one contract point: every test runs on every provider.
class ContractTest : public testing::TestWithParam<Provider> {};

std::string provider_name(const testing::TestParamInfo<Provider>& info);

}  // namespace bx::conformance

// Instantiates a group for the providers of this program.
#define BX_CONFORMANCE_GROUP(group)                                                            \
  INSTANTIATE_TEST_SUITE_P(contract, group, testing::ValuesIn(::bx::conformance::providers()), \
                           ::bx::conformance::provider_name)
