// SPDX-License-Identifier: GPL-2.0-only
// The keys of [fabric.congestion_control].
#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kTimeMax = 1'000'000'000'000;
constexpr std::uint64_t kRateMax = 3'200'000'000'000;
const std::string kPrefix = "fabric.congestion_control.";

enum class Zero : std::uint8_t { is_auto, is_zero };

void add_time(std::vector<KeySpec>& keys, std::string name, std::string sentence, Zero zero, auto access) {
  add<Settings>(keys,
                {.name = kPrefix + std::move(name),
                 .kind = KeyKind::duration,
                 .sentence = std::move(sentence),
                 .minimum = zero == Zero::is_auto ? 1U : 0U,
                 .maximum = kTimeMax,
                 .zero_is_auto = zero == Zero::is_auto},
                access);
}
void add_rate(std::vector<KeySpec>& keys, std::string name, std::string sentence, auto access) {
  add<Settings>(keys,
                {.name = kPrefix + std::move(name),
                 .kind = KeyKind::rate,
                 .sentence = std::move(sentence),
                 .minimum = 1'000'000,
                 .maximum = kRateMax,
                 .zero_is_auto = true},
                access);
}
void add_real(std::vector<KeySpec>& keys, std::string name, std::string sentence, double maximum, Zero zero,
              auto access) {
  add<Settings>(keys,
                {.name = kPrefix + std::move(name),
                 .kind = KeyKind::real,
                 .sentence = std::move(sentence),
                 .real_maximum = maximum,
                 .zero_is_auto = zero == Zero::is_auto},
                access);
}
void add_choice(std::vector<KeySpec>& keys, std::string name, std::string sentence,
                std::vector<std::string> choices, auto access) {
  add<Settings>(keys,
                {.name = kPrefix + std::move(name),
                 .kind = KeyKind::choice,
                 .sentence = std::move(sentence),
                 .choices = std::move(choices)},
                access);
}

void add_dcqcn_keys(std::vector<KeySpec>& keys) {
  add_real(
      keys, "dcqcn.g", "Gain of alpha; auto is the profile's.", 1, Zero::is_auto,
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.g; });
  add_real(
      keys, "dcqcn.initial_alpha", "Alpha at the first CNP.", 1, Zero::is_auto,
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.initial_alpha; });
  add_time(
      keys, "dcqcn.alpha_timer", "Alpha decays once in each such time without a CNP.", Zero::is_auto,
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.alpha_timer_ns; });
  add_choice(
      keys, "dcqcn.alpha_update",
      "Whether alpha grows with each cut (the paper) or once an alpha_timer (deployed NICs).",
      {"auto", "cnp", "timer"}, [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.alpha_update; });
  add_time(
      keys, "dcqcn.rate_timer", "T: the rate is raised once in each such time.", Zero::is_auto,
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.rate_timer_ns; });
  add<Settings>(
      keys,
      {.name = kPrefix + "dcqcn.byte_counter",
       .kind = KeyKind::bytes,
       .sentence = "B: the rate is raised once for so many bytes sent; a very large number turns "
                   "the counter off.",
       .minimum = 1024,
       .maximum = 1ULL << 50U,
       .zero_is_auto = true},
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.byte_counter; });
  add<Settings>(
      keys,
      {.name = kPrefix + "dcqcn.threshold",
       .kind = KeyKind::count,
       .sentence = "F: raises of fast recovery before the target rate grows.",
       .minimum = 1,
       .maximum = 1000,
       .zero_is_auto = true},
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.threshold; });
  add_rate(
      keys, "dcqcn.rate_ai", "What additive increase adds to the target rate.",
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.rate_ai_bps; });
  add_rate(
      keys, "dcqcn.rate_hai", "What hyper increase adds to the target rate.",
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.rate_hai_bps; });
  add_rate(
      keys, "dcqcn.rate_min", "No cut goes below this rate.",
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.rate_min_bps; });
  add_real(
      keys, "dcqcn.decrease_max", "The largest part of the rate that one cut takes.", 1, Zero::is_auto,
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.decrease_max; });
  add_rate(
      keys, "dcqcn.rate_on_first_cnp",
      "Rate that the CNP sets which finds a queue pair at line rate; auto is an ordinary cut.",
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.rate_on_first_cnp_bps; });
  add_choice(
      keys, "dcqcn.clamp_target",
      "When a cut takes the target down to the rate: always, if the rate was raised since the last "
      "cut, or only if the byte counter raised it.",
      {"auto", "always", "raised", "raised-by-bytes"},
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.clamp_target; });
  add_time(
      keys, "dcqcn.rate_reduce_monitor_period", "At most one cut in this time.", Zero::is_auto,
      [](auto& s) -> auto& { return s.fabric.congestion.dcqcn.rate_reduce_monitor_period_ns; });
}

void add_flow_scaling_keys(std::vector<KeySpec>& keys) {
  constexpr double kWindowMax = 1'000'000;
  add_real(
      keys, "swift.flow_scaling_window_min", "Window below which flow scaling adds no more.", kWindowMax,
      Zero::is_zero, [](auto& s) -> auto& { return s.fabric.congestion.swift.flow_scaling_window_min; });
  add_real(
      keys, "swift.flow_scaling_window_max", "Window from which flow scaling adds nothing.", kWindowMax,
      Zero::is_zero, [](auto& s) -> auto& { return s.fabric.congestion.swift.flow_scaling_window_max; });
}

void add_swift_keys(std::vector<KeySpec>& keys) {
  constexpr double kWindowMax = 1'000'000;
  add<Settings>(
      keys,
      {.name = kPrefix + "swift.base_target",
       .kind = KeyKind::duration,
       .sentence = "Round trip that a flow of a large window aims at.",
       .minimum = 1,
       .maximum = kTimeMax},
      [](auto& s) -> auto& { return s.fabric.congestion.swift.base_target_ns; });
  add_real(
      keys, "swift.ai", "Packets that a window grows by in a round trip under the target.", 65536,
      Zero::is_zero, [](auto& s) -> auto& { return s.fabric.congestion.swift.ai; });
  add_real(
      keys, "swift.beta", "How strongly a window shrinks for the part of the delay over the target.", 1,
      Zero::is_zero, [](auto& s) -> auto& { return s.fabric.congestion.swift.beta; });
  add_real(
      keys, "swift.decrease_max", "The largest part of a window that a round trip takes.", 1, Zero::is_zero,
      [](auto& s) -> auto& { return s.fabric.congestion.swift.decrease_max; });
  add_real(
      keys, "swift.window_min", "Smallest window, in packets; below one, packets are paced.", kWindowMax,
      Zero::is_zero, [](auto& s) -> auto& { return s.fabric.congestion.swift.window_min; });
  add_real(
      keys, "swift.window_max", "Largest window, in packets.", kWindowMax, Zero::is_zero,
      [](auto& s) -> auto& { return s.fabric.congestion.swift.window_max; });
  add_real(
      keys, "swift.window_initial", "First window, in packets; auto is what line rate sends in base_target.",
      kWindowMax, Zero::is_auto, [](auto& s) -> auto& { return s.fabric.congestion.swift.window_initial; });
  add_time(
      keys, "swift.flow_scaling_range",
      "What is added to the target at the smallest window of flow scaling; 0 turns it off.", Zero::is_zero,
      [](auto& s) -> auto& { return s.fabric.congestion.swift.flow_scaling_range_ns; });
  add_under(keys, not_with(kPrefix + "swift.flow_scaling_range", {"0ns"}),
            [&] { add_flow_scaling_keys(keys); });
}

// Of ECN marks that come back as CNPs.
void add_cnp_keys(std::vector<KeySpec>& keys) {
  add_choice(
      keys, "profile", "Parameters of DCQCN where no key sets them.", {"zhu15", "nvidia", "alibaba"},
      [](auto& s) -> auto& { return s.fabric.congestion.profile; });
  add_time(
      keys, "cnp_interval", "Least time between two CNPs of one cnp_scope; auto is the profile's.",
      Zero::is_auto, [](auto& s) -> auto& { return s.fabric.congestion.cnp_interval_ns; });
  add_choice(
      keys, "cnp_scope", "What shares a cnp_interval.", {"auto", "port", "address-pair", "queue-pair"},
      [](auto& s) -> auto& { return s.fabric.congestion.cnp_scope; });
  add<Settings>(
      keys,
      {.name = kPrefix + "cnp_dscp",
       .kind = KeyKind::count,
       .sentence = "DSCP of CNPs; its top three bits are their priority.",
       .minimum = 0,
       .maximum = 63},
      [](auto& s) -> auto& { return s.fabric.congestion.cnp_dscp; });
  add_choice(
      keys, "cnp_with_naks",
      "Whether a receiver that misses a packet sends a CNP with its NAK; auto is the profile's.",
      {"auto", "on", "off"}, [](auto& s) -> auto& { return s.fabric.congestion.cnp_with_naks; });
  add_time(
      keys, "np_delay", "From a marked packet's arrival to its CNP.", Zero::is_zero,
      [](auto& s) -> auto& { return s.fabric.congestion.np_delay_ns; });
  add_time(
      keys, "rp_delay", "From a CNP's arrival to the cut.", Zero::is_zero,
      [](auto& s) -> auto& { return s.fabric.congestion.rp_delay_ns; });
  add_dcqcn_keys(keys);
}

}  // namespace

void add_congestion_keys(std::vector<KeySpec>& keys) {
  const std::string algorithm = kPrefix + "algorithm";
  add_choice(
      keys, "algorithm", "What paces the NICs' queue pairs: nothing, ECN marks or round-trip times.",
      {"none", "dcqcn", "swift"}, [](auto& s) -> auto& { return s.fabric.congestion.algorithm; });
  add_under(keys, only_with(algorithm, {"dcqcn"}), [&] { add_cnp_keys(keys); });
  add_under(keys, only_with(algorithm, {"swift"}), [&] { add_swift_keys(keys); });
}

}  // namespace bx::harness
