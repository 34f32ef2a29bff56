// SPDX-License-Identifier: GPL-2.0-only
// What a scenario may say about the costs of NICs: a profile, and numbers that take the place of its. See
// sim/model/nic_costs.h for what each means.
#pragma once

#include <cstdint>
#include <string>

#include "libbx/base/result.h"
#include "sim/model/nic_costs.h"

namespace bx::sim {

// 0 and "auto" are the profile's.
struct NicSpec {
  std::uint32_t ports = 1;       // of each NIC, see SimNetwork
  std::string profile = "none";  // none (off), ideal (all free, to start from), connectx5
  std::uint64_t pcie_rate_bps = 0;
  std::uint64_t pcie_read_latency_ns = 0;
  std::uint64_t pcie_write_latency_ns = 0;
  std::uint64_t pcie_payload_bytes = 0;
  std::uint64_t pcie_overhead_bytes = 0;
  std::uint64_t doorbell_ns = 0;
  std::uint64_t wqes_per_fetch = 0;
  std::uint64_t blueflame_bytes = 0;
  std::uint64_t units = 0;
  std::uint64_t packet_rate = 0;  // packets a second
  std::uint64_t qp_cache = 0;     // entries
  std::uint64_t translation_cache = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t receive_buffer_bytes = 0;  // a quarter of it is xoff
  std::string late_dma = "auto";           // auto, on, off
};

// Errors: invalid_argument (an unknown word, numbers without a profile, or what check_costs says).
[[nodiscard]] Result<NicCostConfig> plan_costs(const NicSpec& spec);

}  // namespace bx::sim
