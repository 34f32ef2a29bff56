// SPDX-License-Identifier: GPL-2.0-only
// Congestion control as a scenario says it: an algorithm, a named profile, and whatever of its parameters is
// to differ.
#pragma once

#include <cstdint>
#include <string>

#include "libbx/base/result.h"
#include "sim/model/congestion_control.h"
#include "sim/model/units.h"

namespace bx::sim {

// See DcqcnConfig. 0 and "auto" are the profile's value.
struct DcqcnSpec {
  double g = 0;
  double initial_alpha = 0;
  std::uint64_t alpha_timer_ns = 0;
  std::string alpha_update = "auto";  // auto, cnp, timer
  std::uint64_t rate_timer_ns = 0;
  std::uint64_t byte_counter = 0;
  std::uint64_t threshold = 0;
  std::uint64_t rate_ai_bps = 0;
  std::uint64_t rate_hai_bps = 0;
  std::uint64_t rate_min_bps = 0;
  double decrease_max = 0;
  std::uint64_t rate_on_first_cnp_bps = 0;
  std::string clamp_target = "auto";  // auto, always, raised, raised-by-bytes
  std::uint64_t rate_reduce_monitor_period_ns = 0;
};

// See SwiftConfig, whose defaults these are.
struct SwiftSpec {
  std::uint64_t base_target_ns = 15'000;
  double ai = 1;
  double beta = 0.8;
  double decrease_max = 0.5;
  double window_min = 0.01;
  double window_max = 4096;
  double window_initial = 0;
  std::uint64_t flow_scaling_range_ns = 30'000;
  double flow_scaling_window_min = 0.1;
  double flow_scaling_window_max = 100;
};

struct CongestionSpec {
  std::string algorithm = "none";     // none, dcqcn, swift
  std::string profile = "zhu15";      // of congestion_profile()
  std::uint64_t cnp_interval_ns = 0;  // 0: the profile's
  std::string cnp_scope = "auto";     // auto (the profile's), port, address-pair, queue-pair
  std::uint64_t cnp_dscp = 48;
  std::string cnp_with_naks = "auto";  // auto (the profile's), on, off: CnpConfig::with_naks
  std::uint64_t np_delay_ns = 0;       // CnpConfig::delay
  std::uint64_t rp_delay_ns = 0;       // DcqcnConfig::reaction_delay
  DcqcnSpec dcqcn{};
  SwiftSpec swift{};
};

// For NICs of rate `line`. Errors: invalid_argument, naming the field and the remedy.
[[nodiscard]] Result<CongestionConfig> plan_congestion(const CongestionSpec& spec, Rate line);

}  // namespace bx::sim
