// SPDX-License-Identifier: BSD-3-Clause
// What a loopback fabric is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libbx/fabric/types.h"
#include "libbx/providers/virtual/host_cpu.h"
#include "libbx/providers/virtual/stream_world.h"

namespace bx::loopback {

inline constexpr fabric::DeviceCaps kDefaultCaps{
    .message_bytes_max = std::uint64_t{1} << 30U,
    .cq_depth_max = 1U << 20U,
    .srq_depth_max = 1U << 16U,
    .send_depth_max = 1U << 14U,
    .sges_max = 16,
    .recv_sges_max = 16,
    .inline_max = 256,
    .mtu_max = 4096,
    .rd_atomic_max = 16,
    .atomics = true,
    .mrs_max = 1U << 23U,
    .mr_bytes_max = std::uint64_t{1} << 44U,
    .pins_memory = false,
};

struct LoopbackConfig {
  std::vector<std::string> hosts{};                 // names that may be opened; empty: any
  std::uint64_t seed = 1;                           // of first PSNs, key generations and each host's Prng
  Duration latency{1'000};                          // one way, of every message and every acknowledgement
  std::uint64_t bytes_per_second = 12'500'000'000;  // of a device towards all its peers: 100 Gb/s
  fabric::DeviceCaps caps = kDefaultCaps;
  virtual_time::StreamConfig streams{};
  virtual_time::HostCpuCosts cpu{};
  virtual_time::WaitMode wait = virtual_time::WaitMode::polled;
};

}  // namespace bx::loopback
