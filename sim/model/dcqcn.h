// SPDX-License-Identifier: GPL-2.0-only
// The reaction point of DCQCN: the rate of one queue pair, cut by congestion notification packets and raised
// by a timer and a byte counter (Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM
// 2015, section 3.2 and figure 7; IEEE 802.1Qau for its ancestor QCN).
//
//   cut:            target = rate; rate *= 1 - alpha / 2; both counters start again
//   each increase:  (T or BC has grown by one)       until one of them is over F   fast recovery
//                   rate = (rate + target) / 2       then target += rate_ai        additive increase
//                                                    both over F: += rate_hai      hyper increase
//   alpha:          towards 1 by g with a CNP, towards 0 by g without one for alpha_timer
//
// Nothing is scheduled: what timers would have done up to now is made up for when the queue pair next sends
// or hears something (advance), at the instants at which they would have done it. Rates are bits a second of
// the wire, alpha is in 2^-32; no floating point after construction.
#pragma once

#include <cstdint>

#include "sim/model/pacer.h"
#include "sim/model/units.h"

namespace bx::sim {

// How alpha follows the CNPs.
enum class AlphaUpdate : std::uint8_t {
  on_cnp,    // up with each cut, down with each alpha_timer since the last one: the paper
  on_timer,  // at each alpha_timer, up if a CNP came in it and down if not: deployed NICs
};

// All of it may be set; named sets with their sources are in congestion_profiles.h.
struct DcqcnConfig {
  double g = 1.0 / 256;
  double initial_alpha = 1;
  Picoseconds alpha_timer = microseconds{55};
  AlphaUpdate alpha_update = AlphaUpdate::on_cnp;
  Picoseconds rate_timer = microseconds{55};  // T: an increase each
  std::uint64_t byte_counter = 10'000'000;    // B: an increase each so many wire bytes; 0: none
  std::uint32_t threshold = 5;                // F
  std::uint64_t rate_ai = 40'000'000;
  std::uint64_t rate_hai = 400'000'000;
  std::uint64_t rate_min = 10'000'000;
  double decrease_max = 0.5;  // the largest part of the rate that one cut takes
  // Sets this rate at the CNP that finds a queue pair at line rate; 0: an ordinary cut.
  std::uint64_t rate_on_first_cnp = 0;
  // Whether a cut takes the target down to the rate: always, or only if the timer has raised the rate since
  // the cut before. What the byte counter has raised is always taken down.
  bool clamp_target = true;
  bool clamp_target_after_timer = true;
  // At most one cut in this time; a CNP within it takes effect at its end. 0: every CNP cuts.
  Picoseconds rate_reduce_monitor_period{};
  // From the arrival of a CNP to its effect. CNPs that come meanwhile are one with it.
  Picoseconds reaction_delay{};
};

class Dcqcn {
 public:
  Dcqcn(const DcqcnConfig& config, Rate line) noexcept;

  // Brings everything up to `now`. The others expect that of their caller.
  void advance(Picoseconds now, Pacer& pacer) noexcept {
    if (now >= next_change_) advance_to(now, pacer);
  }
  // The next instant at which a timer or a delayed cut changes the rate.
  [[nodiscard]] Picoseconds next_change() const noexcept { return next_change_; }
  void on_cnp(Picoseconds now, Pacer& pacer) noexcept;
  void on_sent(Picoseconds now, std::uint32_t wire_bytes, Pacer& pacer) noexcept {
    if (!limiting_ || config_->byte_counter == 0) return;
    bytes_ += wire_bytes;
    if (bytes_ >= config_->byte_counter) count_bytes(now, pacer);
  }

  [[nodiscard]] std::uint64_t rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint64_t target() const noexcept { return target_; }
  [[nodiscard]] std::uint64_t alpha() const noexcept { return alpha_; }  // in 2^-32, as of the last change
  [[nodiscard]] std::uint64_t cuts() const noexcept { return cuts_; }

 private:
  static constexpr Picoseconds kNever = Picoseconds::max();

  void advance_to(Picoseconds now, Pacer& pacer) noexcept;
  void advance_alpha(Picoseconds now) noexcept;
  void count_bytes(Picoseconds now, Pacer& pacer) noexcept;
  void cut(Picoseconds at, Pacer& pacer) noexcept;
  void increase(Picoseconds at, Pacer& pacer) noexcept;
  void schedule() noexcept;

  const DcqcnConfig* config_;
  std::uint64_t line_;
  std::uint64_t rate_;
  std::uint64_t target_;
  std::uint64_t alpha_ = 0;
  std::uint32_t g_;             // in 2^-32
  std::uint32_t decrease_max_;  // in 2^-32
  Picoseconds next_change_ = kNever;
  Picoseconds cut_at_ = kNever;    // of a CNP that has not taken effect
  Picoseconds timer_at_ = kNever;  // while limiting
  Picoseconds alpha_at_ = kNever;  // from the first CNP on
  Picoseconds last_cut_{};
  std::uint64_t bytes_ = 0;
  std::uint32_t timer_count_ = 0;
  std::uint32_t byte_count_ = 0;
  std::uint32_t cuts_ = 0;
  bool limiting_ = false;   // below line rate
  bool alpha_cnp_ = false;  // since alpha_at_ - alpha_timer; for AlphaUpdate::on_timer
};

}  // namespace bx::sim
