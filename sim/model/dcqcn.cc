// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/dcqcn.h"

#include <algorithm>

namespace bx::sim {
namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << 32U;

// `fraction` in [0, 1]; 1 becomes the largest fraction that is less.
std::uint32_t fixed(double fraction) noexcept {
  return static_cast<std::uint32_t>(
      std::min(fraction * static_cast<double>(kOne), static_cast<double>(kOne - 1)));
}

// value * fraction, rounded down.
std::uint64_t part(std::uint64_t value, std::uint64_t fraction) noexcept {
  return static_cast<std::uint64_t>((static_cast<Wide>(value) * fraction) >> 32U);
}

}  // namespace

Dcqcn::Dcqcn(const DcqcnConfig& config, Rate line) noexcept
    : config_(&config),
      line_(line.bits_per_second),
      rate_(line.bits_per_second),
      target_(line.bits_per_second),
      g_(fixed(config.g)),
      decrease_max_(fixed(config.decrease_max)) {}

void Dcqcn::on_cnp(Picoseconds now, Pacer& pacer) noexcept {
  if (alpha_at_ == kNever) {
    alpha_ = fixed(config_->initial_alpha);
    alpha_at_ = now + config_->alpha_timer;
  } else if (config_->alpha_update == AlphaUpdate::on_timer) {
    advance_alpha(now);
    alpha_cnp_ = true;
  }
  if (cut_at_ != kNever) return;
  Picoseconds at = now + config_->reaction_delay;
  if (cuts_ != 0) at = std::max(at, last_cut_ + config_->rate_reduce_monitor_period);
  if (at == now) {
    cut(now, pacer);
  } else {
    cut_at_ = at;
  }
  schedule();
}

void Dcqcn::schedule() noexcept {
  next_change_ = std::min(cut_at_, timer_at_);
}

// Cuts and increases in the order of their times; at equal times the cut first.
void Dcqcn::advance_to(Picoseconds now, Pacer& pacer) noexcept {
  while (next_change_ <= now) {
    const Picoseconds at = next_change_;
    if (at == cut_at_) {
      cut_at_ = kNever;
      cut(at, pacer);
    } else {
      timer_at_ = at + config_->rate_timer;
      ++timer_count_;
      increase(at, pacer);
    }
    schedule();
  }
}

void Dcqcn::advance_alpha(Picoseconds now) noexcept {
  while (alpha_at_ <= now) {
    if (alpha_ == 0 && !alpha_cnp_) {
      // Decayed for good: only the phase of the timer is left.
      const auto periods = (now - alpha_at_) / config_->alpha_timer;
      alpha_at_ += (periods + 1) * config_->alpha_timer;
      return;
    }
    alpha_ = part(alpha_, kOne - g_) + (alpha_cnp_ ? g_ : 0);
    alpha_cnp_ = false;
    alpha_at_ += config_->alpha_timer;
  }
}

void Dcqcn::cut(Picoseconds at, Pacer& pacer) noexcept {
  advance_alpha(at);
  const bool first = !limiting_;
  if (first || config_->clamp_target || byte_count_ > 0 ||
      (config_->clamp_target_after_timer && timer_count_ > 0)) {
    target_ = rate_;
  }
  if (first && config_->rate_on_first_cnp != 0) {
    rate_ = std::min(rate_, config_->rate_on_first_cnp);
    target_ = rate_;
  } else {
    rate_ -= std::min(part(rate_, alpha_ / 2), part(rate_, decrease_max_));
  }
  rate_ = std::min(std::max(rate_, config_->rate_min), line_);
  if (config_->alpha_update == AlphaUpdate::on_cnp) {
    alpha_ = part(alpha_, kOne - g_) + g_;
    alpha_at_ = at + config_->alpha_timer;
  }
  ++cuts_;
  last_cut_ = at;
  timer_count_ = byte_count_ = 0;
  bytes_ = 0;
  timer_at_ = at + config_->rate_timer;
  limiting_ = true;
  pacer.set_rate(at, rate_);
}

void Dcqcn::count_bytes(Picoseconds now, Pacer& pacer) noexcept {
  bytes_ -= config_->byte_counter;
  ++byte_count_;
  increase(now, pacer);
  schedule();
}

void Dcqcn::increase(Picoseconds at, Pacer& pacer) noexcept {
  // Without a byte counter the timer alone goes through the stages, one increase each additive.
  const bool by_bytes = config_->byte_counter != 0;
  const std::uint32_t most = std::max(timer_count_, byte_count_);
  const std::uint32_t least = by_bytes ? std::min(timer_count_, byte_count_) : timer_count_ - 1;
  if (most > config_->threshold) {
    target_ += least > config_->threshold ? config_->rate_hai : config_->rate_ai;
    target_ = std::min(target_, line_);
  }
  rate_ = std::min((rate_ + target_ + 1) / 2, line_);  // rounded up, so that it gets there
  if (rate_ < line_) {
    pacer.set_rate(at, rate_);
    return;
  }
  // The limiter is free again; alpha goes on decaying.
  limiting_ = false;
  timer_at_ = kNever;
  pacer.release();
}

}  // namespace bx::sim
