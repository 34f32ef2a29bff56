// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "harness/base/stopwatch.h"

namespace bx::harness {
namespace {

constexpr std::size_t kBatch = 16;     // requests of one post
constexpr std::size_t kRepeats = 201;  // of each timing
constexpr std::uint32_t kReceives = 1024;
constexpr std::size_t kMessage = 64;  // bytes

double ns_of(const Stopwatch& stopwatch) {
  return stopwatch.seconds() * 1e9;
}

double median(std::vector<double>& samples) {
  std::ranges::nth_element(samples, samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
  return samples[samples.size() / 2];
}

// Two queue pairs of one device, each other's peers.
class Pair {
 public:
  explicit Pair(fabric::Host& host) : device_(host.device()) {}

  Result<> open() {
    auto region = device_.register_memory(memory_, fabric::Access::remote_write);
    if (!region) return tl::unexpected<Error>(region.error());
    region_ = std::move(*region);
    auto cq = device_.create_cq({.depth = 4 * kBatch});
    if (!cq) return tl::unexpected<Error>(cq.error());
    cq_ = std::move(*cq);
    auto srq = device_.create_srq({.depth = kReceives});
    if (!srq) return tl::unexpected<Error>(srq.error());
    srq_ = std::move(*srq);
    for (auto& end : ends_) {
      auto qp = device_.create_qp(
          {.send_cq = cq_.get(), .recv_cq = cq_.get(), .srq = srq_.get(), .send_depth = 2 * kBatch});
      if (!qp) return tl::unexpected<Error>(qp.error());
      end = std::move(*qp);
    }
    const fabric::PathConfig path{.mtu_bytes = device_.caps().mtu_max, .ack_timeout = 18, .retry_cnt = 6};
    if (Result<> first = ends_[0]->connect(ends_[1]->address(), path); !first) return first;
    return ends_[1]->connect(ends_[0]->address(), path);
  }

  // Time of one post of `count` WRITEs, all of which are complete when it returns; that of the poll that
  // finds them goes to `poll_ns`, if it found all at once. Negative if a request failed.
  double time_post(std::size_t count, std::vector<double>& poll_ns) {
    const fabric::Sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), kMessage, region_->lkey()};
    std::array<fabric::SendWr, kBatch> requests;
    requests.fill({.sges = {&sge, 1},
                   .remote = {reinterpret_cast<std::uintptr_t>(memory_.data()), region_->rkey()},
                   .opcode = fabric::Opcode::rdma_write});
    const Stopwatch post;
    const std::size_t taken = ends_[0]->post_send(std::span(requests).first(count));
    const double time = ns_of(post);
    if (taken != count) return -1;
    for (const Stopwatch wait; wait.seconds() < kSettleSeconds;) {
    }
    std::array<fabric::Completion, kBatch> batch;
    std::size_t done = 0;
    for (const Stopwatch limit; done < count && limit.seconds() < kLimitSeconds;) {
      const Stopwatch poll;
      const std::size_t now = cq_->poll(batch);
      if (now == count) poll_ns.push_back(ns_of(poll) / static_cast<double>(count));
      for (std::size_t i = 0; i < now; ++i) {
        if (batch[i].status != fabric::WcStatus::success) return -1;
      }
      done += now;
    }
    return done == count ? time : -1;
  }

  double time_empty_poll() {
    constexpr int kPolls = 10'000;
    std::array<fabric::Completion, kBatch> batch;
    const Stopwatch stopwatch;
    for (int i = 0; i < kPolls; ++i) (void)cq_->poll(batch);
    return ns_of(stopwatch) / kPolls;
  }

  double time_receives() {
    const fabric::Sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), kMessage, region_->lkey()};
    std::array<fabric::RecvWr, kBatch> requests;
    requests.fill({.wr_id = {}, .sges = {&sge, 1}});
    std::vector<double> times;
    for (std::uint32_t posted = 0; posted + kBatch <= kReceives; posted += kBatch) {
      const Stopwatch stopwatch;
      if (srq_->post_recv(requests) != kBatch) break;
      times.push_back(ns_of(stopwatch) / kBatch);
    }
    return times.empty() ? 0 : median(times);
  }

 private:
  static constexpr double kSettleSeconds = 0.0005;  // by when a batch of small WRITEs is complete
  static constexpr double kLimitSeconds = 5;

  fabric::Device& device_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(4096);
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::unique_ptr<fabric::SharedReceiveQueue> srq_;
  std::array<std::unique_ptr<fabric::QueuePair>, 2> ends_;  // destroyed first
};

// Takes turns that do nothing.
class IdleTurns final : public fabric::Turn {
 public:
  explicit IdleTurns(fabric::Reactor& reactor) : reactor_(reactor) {}
  double time() {
    reactor_.attach(this);
    const Stopwatch stopwatch;
    reactor_.run(kNever);
    const double ns = ns_of(stopwatch);
    reactor_.attach(nullptr);
    return ns / kTurns;
  }

 private:
  static constexpr int kTurns = 20'000;
  fabric::TurnResult turn(Instant /*now*/) noexcept override {
    if (++turns_ == kTurns) reactor_.stop();
    return {.more = true};
  }
  fabric::Reactor& reactor_;
  int turns_ = 0;
};

double copy_rate() {
  constexpr std::size_t kBytes = std::size_t{64} << 20U;  // beyond any cache
  std::vector<std::byte> from(kBytes, std::byte{1});
  std::vector<std::byte> to(kBytes);
  std::vector<double> rates;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch stopwatch;
    std::memcpy(to.data(), from.data(), kBytes);
    rates.push_back(static_cast<double>(kBytes) / stopwatch.seconds());
    from[0] = to[kBytes - 1];  // what was copied is used
  }
  return median(rates);
}

std::string duration(double ns) {
  return format_duration_ns(static_cast<std::uint64_t>(std::llround(std::max(0.0, ns))));
}

}  // namespace

Parsed<Calibration> calibrate(fabric::Host& host) {
  Calibration costs;
  Pair pair(host);
  if (const Result<> opened = pair.open(); !opened) {
    return tl::unexpected(fmt::format("{}: {}", host.name(), opened.error().detail));
  }
  std::vector<double> single;
  std::vector<double> batch;
  std::vector<double> polls;
  std::vector<double> ignored;
  for (std::size_t i = 0; i < kRepeats; ++i) {
    single.push_back(pair.time_post(1, ignored));
    batch.push_back(pair.time_post(kBatch, polls));
    if (single.back() < 0 || batch.back() < 0) {
      return tl::unexpected(fmt::format("{}: WRITEs to itself do not complete", host.name()));
    }
  }
  const double one = median(single);
  costs.send_ns = std::max(0.0, (median(batch) - one) / (kBatch - 1));
  costs.doorbell_ns = std::max(0.0, one - costs.send_ns);
  costs.completion_ns = polls.empty() ? 0 : median(polls);
  costs.empty_poll_ns = pair.time_empty_poll();
  costs.receive_ns = pair.time_receives();
  costs.turn_ns = IdleTurns(host.reactor()).time();
  costs.copy_bytes_per_second = copy_rate();
  return costs;
}

double nic_latency_ns(const Calibration& costs, const std::vector<PerfPoint>& points) {
  for (const PerfPoint& point : points) {
    if (point.which != PerfCase::write_latency || point.size > kMessage) continue;
    return std::max(0.0, (point.median - costs.doorbell_ns - costs.send_ns - costs.completion_ns) / 2);
  }
  return 0;
}

std::string host_file_text(const Calibration& costs, std::string_view machine) {
  std::string text = fmt::format("# Written by 'bx perf verbs --calibrate' on {}.\n[fabric.cpu]\n", machine);
  text += fmt::format("turn = \"{}\"\n", duration(costs.turn_ns));
  text += fmt::format("completion = \"{}\"\n", duration(costs.completion_ns));
  text += fmt::format("empty_poll = \"{}\"\n", duration(costs.empty_poll_ns));
  text += fmt::format("send = \"{}\"\n", duration(costs.send_ns));
  text += fmt::format("doorbell = \"{}\"\n", duration(costs.doorbell_ns));
  text += fmt::format("receive = \"{}\"\n", duration(costs.receive_ns));
  text += fmt::format("copy_rate = \"{}Mbps\"\n", std::llround(costs.copy_bytes_per_second * 8 / 1e6));
  if (costs.nic_ns == 0) return text;
  text += "\n[fabric.nic]   # with fabric.delay of the links left out: they are in these\n";
  text += fmt::format("tx_latency = \"{0}\"\nrx_latency = \"{0}\"\n", duration(costs.nic_ns));
  return text;
}

}  // namespace bx::harness
