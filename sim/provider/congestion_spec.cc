// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/congestion_spec.h"

#include "sim/model/congestion_profiles.h"
#include "sim/model/units.h"

namespace bx::sim {
namespace {

constexpr std::uint64_t kTimeMaxNs = 1'000'000'000'000;

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::device, detail);
}

Picoseconds ns(std::uint64_t n) {
  return nanoseconds{static_cast<std::int64_t>(n)};
}

// What is 0 stays as the profile has it.
void set(Picoseconds& member, std::uint64_t value_ns) {
  if (value_ns != 0) member = ns(value_ns);
}
template <class T>
void set(T& member, T value) {
  if (value != T{}) member = value;
}

const char* fault_of(const CongestionSpec& spec) noexcept {
  const DcqcnSpec& d = spec.dcqcn;
  for (const std::uint64_t time :
       {spec.cnp_interval_ns, spec.np_delay_ns, spec.rp_delay_ns, d.alpha_timer_ns, d.rate_timer_ns,
        d.rate_reduce_monitor_period_ns, spec.swift.base_target_ns, spec.swift.flow_scaling_range_ns}) {
    if (time > kTimeMaxNs) return "congestion_control: times are at most 1000 s";
  }
  if (spec.cnp_dscp >= kDscps) return "congestion_control.cnp_dscp: give 0 to 63";
  const auto is_part = [](double value) { return value >= 0 && value <= 1; };
  if (!is_part(d.g) || !is_part(d.initial_alpha) || !is_part(d.decrease_max)) {
    return "congestion_control.dcqcn: g, initial_alpha and decrease_max are at most 1";
  }
  const SwiftSpec& s = spec.swift;
  if (s.base_target_ns == 0) return "congestion_control.swift.base_target: give more than 0";
  if (!(s.ai > 0 && s.ai <= 65536) || !(s.beta > 0 && s.beta <= 1) ||
      !(s.decrease_max > 0 && s.decrease_max < 1)) {
    return "congestion_control.swift: ai is above 0, beta in (0, 1], decrease_max in (0, 1)";
  }
  if (!(s.window_min >= 0.0001 && s.window_min <= s.window_max && s.window_max >= 1) ||
      s.window_max > 1'000'000 || s.window_initial > s.window_max) {
    return "congestion_control.swift: windows need 0.0001 <= window_min <= window_max <= 1000000, and a "
           "window_initial up to window_max";
  }
  if (!(s.flow_scaling_window_min >= 0.001 && s.flow_scaling_window_min < s.flow_scaling_window_max) ||
      s.flow_scaling_window_max > 1'000'000) {
    return "congestion_control.swift: flow scaling needs 0.001 <= window_min < window_max <= 1000000";
  }
  return nullptr;
}

const char* read_words(const CongestionSpec& spec, CongestionConfig& config) noexcept {
  const DcqcnSpec& d = spec.dcqcn;
  if (spec.cnp_scope == "port") {
    config.cnp.scope = CnpScope::port;
  } else if (spec.cnp_scope == "address-pair") {
    config.cnp.scope = CnpScope::address_pair;
  } else if (spec.cnp_scope == "queue-pair") {
    config.cnp.scope = CnpScope::queue_pair;
  } else if (spec.cnp_scope != "auto") {
    return "congestion_control.cnp_scope: give auto, port, address-pair or queue-pair";
  }
  if (spec.cnp_with_naks == "on" || spec.cnp_with_naks == "off") {
    config.cnp.with_naks = spec.cnp_with_naks == "on";
  } else if (spec.cnp_with_naks != "auto") {
    return "congestion_control.cnp_with_naks: give auto, on or off";
  }
  if (d.alpha_update == "cnp") {
    config.dcqcn.alpha_update = AlphaUpdate::on_cnp;
  } else if (d.alpha_update == "timer") {
    config.dcqcn.alpha_update = AlphaUpdate::on_timer;
  } else if (d.alpha_update != "auto") {
    return "congestion_control.dcqcn.alpha_update: give auto, cnp or timer";
  }
  if (d.clamp_target == "auto") return nullptr;
  if (d.clamp_target != "always" && d.clamp_target != "raised" && d.clamp_target != "raised-by-bytes") {
    return "congestion_control.dcqcn.clamp_target: give auto, always, raised or raised-by-bytes";
  }
  config.dcqcn.clamp_target = d.clamp_target == "always";
  config.dcqcn.clamp_target_after_timer = d.clamp_target != "raised-by-bytes";
  return nullptr;
}

void apply(const DcqcnSpec& spec, DcqcnConfig& config) {
  set(config.g, spec.g);
  set(config.initial_alpha, spec.initial_alpha);
  set(config.alpha_timer, spec.alpha_timer_ns);
  set(config.rate_timer, spec.rate_timer_ns);
  set(config.byte_counter, spec.byte_counter);
  set(config.threshold, static_cast<std::uint32_t>(spec.threshold));
  set(config.rate_ai, spec.rate_ai_bps);
  set(config.rate_hai, spec.rate_hai_bps);
  set(config.rate_min, spec.rate_min_bps);
  set(config.decrease_max, spec.decrease_max);
  set(config.rate_on_first_cnp, spec.rate_on_first_cnp_bps);
  set(config.rate_reduce_monitor_period, spec.rate_reduce_monitor_period_ns);
}

SwiftConfig translate(const SwiftSpec& spec) {
  return {.base_target = ns(spec.base_target_ns),
          .ai = spec.ai,
          .beta = spec.beta,
          .decrease_max = spec.decrease_max,
          .window_min = spec.window_min,
          .window_max = spec.window_max,
          .window_initial = spec.window_initial,
          .flow_scaling_range = ns(spec.flow_scaling_range_ns),
          .flow_scaling_window_min = spec.flow_scaling_window_min,
          .flow_scaling_window_max = spec.flow_scaling_window_max};
}

}  // namespace

Result<CongestionConfig> plan_congestion(const CongestionSpec& spec, Rate line) {
  if (const char* fault = fault_of(spec); fault != nullptr) return invalid(fault);
  const auto profile = congestion_profile(spec.profile, line);
  if (!profile) return invalid("congestion_control.profile: give zhu15, nvidia or alibaba");
  CongestionConfig config{.dcqcn = profile->dcqcn, .cnp = profile->cnp, .swift = translate(spec.swift)};
  if (spec.algorithm == "dcqcn") {
    config.algorithm = CongestionAlgorithm::dcqcn;
  } else if (spec.algorithm == "swift") {
    config.algorithm = CongestionAlgorithm::swift;
  } else if (spec.algorithm != "none") {
    return invalid("congestion_control.algorithm: give none, dcqcn or swift");
  }
  if (const char* fault = read_words(spec, config); fault != nullptr) return invalid(fault);
  apply(spec.dcqcn, config.dcqcn);
  set(config.cnp.interval, spec.cnp_interval_ns);
  config.cnp.dscp = static_cast<std::uint8_t>(spec.cnp_dscp);
  config.cnp.delay = ns(spec.np_delay_ns);
  config.dcqcn.reaction_delay = ns(spec.rp_delay_ns);
  if (spec.algorithm == "dcqcn" && config.dcqcn.rate_min > line.bits_per_second) {
    return invalid("congestion_control.dcqcn.rate_min: give at most the rate of the hosts' links");
  }
  return config;
}

}  // namespace bx::sim
