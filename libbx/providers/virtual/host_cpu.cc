// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/host_cpu.h"

#include <algorithm>

namespace bx::virtual_time {
namespace {

constexpr std::int64_t kPsPerNs = 1000;

std::int64_t times(Duration cost, std::uint64_t count) noexcept {
  return cost.count() * kPsPerNs * static_cast<std::int64_t>(count);
}

}  // namespace

HostCpu::HostCpu(const HostCpuCosts& costs, WaitMode mode) noexcept : costs_(costs), mode_(mode) {}

Instant HostCpu::charge_turn(Instant now, const fabric::Work& work) noexcept {
  const std::int64_t picoseconds =
      times(costs_.turn, 1) + times(costs_.completion, work.completions) +
      times(costs_.empty_poll, work.polls_empty) + times(costs_.send, work.sends_posted) +
      times(costs_.doorbell, work.doorbells) + times(costs_.receive, work.receives_posted) +
      times(costs_.handler, work.handlers) +
      costs_.copy_ps_byte * static_cast<std::int64_t>(work.bytes_copied);
  return charge(now, picoseconds, breakdown_.turns);
}

Instant HostCpu::charge_tcp(Instant now, std::uint64_t bytes) noexcept {
  if (bytes == 0) return std::max(now, free_at_);
  const std::uint64_t segments = (bytes + costs_.tcp_segment_bytes - 1) / costs_.tcp_segment_bytes;
  const std::int64_t picoseconds =
      times(costs_.tcp_segment, segments) + costs_.tcp_ps_byte * static_cast<std::int64_t>(bytes);
  return charge(now, picoseconds, breakdown_.tcp);
}

Instant HostCpu::charge_wake(Instant now) noexcept {
  // What woke a spinning worker was up to wake_polled before its turn.
  if (spins(now - costs_.wake_polled)) return std::max(now, free_at_);
  return charge(now, times(costs_.interrupt, 1), breakdown_.wakes);
}

Duration HostCpu::wake_latency(Instant now) const noexcept {
  return spins(now) ? costs_.wake_polled : costs_.wake_event;
}

bool HostCpu::spins(Instant now) const noexcept {
  return mode_ == WaitMode::polled || (mode_ == WaitMode::adaptive && now - free_at_ <= costs_.spin);
}

Instant HostCpu::charge(Instant now, std::int64_t picoseconds, Duration& account) noexcept {
  carry_ps_ += picoseconds;
  const Duration whole{carry_ps_ / kPsPerNs};
  carry_ps_ %= kPsPerNs;
  account += whole;
  busy_ += whole;
  free_at_ = std::max(now, free_at_) + whole;
  return free_at_;
}

}  // namespace bx::virtual_time
