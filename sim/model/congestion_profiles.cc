// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/congestion_profiles.h"

#include <algorithm>
#include <array>

#include "sim/model/named.h"

namespace bx::sim {
namespace {

constexpr std::uint64_t kMbps = 1'000'000;

// Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 5 and figure 14:
// what the paper deploys. Where it gives no value the comment says so.
CongestionProfile zhu15(Rate /*line*/) {
  return {.dcqcn = {.g = 1.0 / 256,
                    .initial_alpha = 1,
                    .alpha_timer = microseconds{55},
                    .alpha_update = AlphaUpdate::on_cnp,
                    .rate_timer = microseconds{55},
                    .byte_counter = 10'000'000,
                    .threshold = 5,
                    .rate_ai = 40 * kMbps,
                    .rate_hai = 400 * kMbps,  // not in the paper: ten times R_AI, as in QCN
                    .rate_min = 10 * kMbps,   // not in the paper: QCN's
                    .decrease_max = 0.5,      // alpha / 2 of at most one
                    .rate_on_first_cnp = 0,
                    .clamp_target = true,  // figure 7: each cut sets the target
                    .clamp_target_after_timer = true,
                    .rate_reduce_monitor_period = {},  // none: the notification point spaces CNPs
                    .reaction_delay = {}},
          .cnp = {.interval = microseconds{50}, .scope = CnpScope::queue_pair, .delay = {}, .dscp = 48}};
}

// NVIDIA DOCA documentation, "DCQCN CC parameters" (defaults); the names in the comments are its.
CongestionProfile nvidia(Rate /*line*/) {
  return {
      .dcqcn = {.g = 5.0 / 1024,                 // dce_tcp_g 1019: alpha keeps 1019 / 1024
                .initial_alpha = 1023.0 / 1024,  // initial_alpha_value 1023
                .alpha_timer = microseconds{1},  // dce_tcp_rtt
                .alpha_update = AlphaUpdate::on_timer,
                .rate_timer = microseconds{300},   // rpg_time_reset
                .byte_counter = 32'767,            // rpg_byte_reset
                .threshold = 1,                    // rpg_threshold
                .rate_ai = 5 * kMbps,              // rpg_ai_rate
                .rate_hai = 50 * kMbps,            // rpg_hai_rate
                .rate_min = 1 * kMbps,             // rpg_min_rate
                .decrease_max = 0.5,               // rpg_min_dec_fac 50 %; rpg_gd 11 makes it alpha / 2
                .rate_on_first_cnp = 0,            // rate_to_set_on_first_cnp: no jump
                .clamp_target = false,             // clamp_tgt_rate
                .clamp_target_after_timer = true,  // clamp_tgt_rate_after_time_inc
                .rate_reduce_monitor_period = microseconds{4},
                .reaction_delay = {}},
      // min_time_between_cnps 4 us, cnp_dscp 48; for each port as Lumina (SIGCOMM 2023) found on ConnectX-5.
      // CNPs for losses: the counter roce_slow_restart_cnps (Linux commit d7fab916374c) says that ConnectX
      // sends them; that it is the receiver with its sequence NAK is our reading.
      .cnp = {
          .interval = microseconds{4}, .scope = CnpScope::port, .delay = {}, .dscp = 48, .with_naks = true}};
}

// The DCQCN of the HPCC artefact (alibaba-edu/High-Precision-Congestion-Control, simulation/run.py): NVIDIA's
// timers with the increases scaled by the rate of the link and no byte counter. Its notification is a bit in
// each ACK that the sender looks at every 4 us; here that is a CNP every 4 us a queue pair.
CongestionProfile alibaba(Rate line) {
  const std::uint64_t scale = std::max<std::uint64_t>(1, line.bits_per_second / 25'000'000'000ULL);
  CongestionProfile profile = nvidia(line);
  profile.dcqcn.g = 1.0 / 256;  // EWMA_GAIN 0.00390625; CLAMP_TARGET_RATE 0 is as in nvidia
  profile.dcqcn.initial_alpha = 1;
  profile.dcqcn.byte_counter = 0;
  profile.dcqcn.rate_ai = 5 * kMbps * scale;    // RATE_AI 5 * bw / 25
  profile.dcqcn.rate_hai = 50 * kMbps * scale;  // RATE_HAI 50 * bw / 25
  profile.dcqcn.rate_min = 100 * kMbps;         // MIN_RATE
  profile.cnp.scope = CnpScope::queue_pair;
  profile.cnp.with_naks = false;  // its NAK carries the switch's mark and no other
  return profile;
}

struct NamedProfile {
  std::string_view name;
  CongestionProfile (*make)(Rate line);
};
constexpr std::array<NamedProfile, 3> kProfiles{{{"zhu15", zhu15}, {"nvidia", nvidia}, {"alibaba", alibaba}}};

}  // namespace

std::optional<CongestionProfile> congestion_profile(std::string_view name, Rate line) {
  const NamedProfile* found = find_named(kProfiles, name, &NamedProfile::name);
  return found == nullptr ? std::nullopt : std::optional(found->make(line));
}

}  // namespace bx::sim
