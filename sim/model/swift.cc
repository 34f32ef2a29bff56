// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/swift.h"

#include <algorithm>
#include <bit>

namespace bx::sim {
namespace {

constexpr std::uint64_t kBitPicoseconds = 8 * 1'000'000'000'000ULL;

std::uint64_t fixed(double packets) noexcept {
  return static_cast<std::uint64_t>(packets * 65536.0);
}

std::uint64_t square_root(std::uint64_t n) noexcept {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << ((static_cast<unsigned>(std::bit_width(n)) + 1) / 2); bit != 0;
       bit >>= 1U) {
    const std::uint64_t candidate = root | bit;
    if (candidate <= n / candidate) root = candidate;
  }
  return root;
}

// 2^16 / sqrt(packets), of a number of packets in 2^-16.
std::uint64_t inverse_root(std::uint64_t packets) noexcept {
  // sqrt(p 2^-16) 2^24 = sqrt(p 2^32)
  const std::uint64_t root = square_root(std::max<std::uint64_t>(packets, 1) << 32U);
  return (std::uint64_t{1} << 40U) / std::max<std::uint64_t>(root, 1);
}

}  // namespace

Swift::Swift(const SwiftConfig& config, Rate line, std::uint32_t packet_bytes) noexcept
    : config_(&config), line_(line.bits_per_second), packet_bytes_(packet_bytes), rtt_(config.base_target) {
  window_ = fixed(config.window_initial);
  if (window_ == 0) {
    const Wide bits = static_cast<Wide>(line_) * static_cast<std::uint64_t>(config.base_target.count());
    window_ = static_cast<std::uint64_t>(bits * kOne / (Wide{kBitPicoseconds} * packet_bytes));
  }
  window_ = std::clamp(window_, kOne, std::max(kOne, fixed(config.window_max)));
}

std::uint32_t Swift::packets() const noexcept {
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, window_ / kOne));
}

std::uint64_t Swift::rate() const noexcept {
  const Wide bits = static_cast<Wide>(packet_bytes_) * window_ * kBitPicoseconds / kOne;
  const Wide rate = bits / static_cast<std::uint64_t>(std::max<std::int64_t>(1, rtt_.count()));
  return static_cast<std::uint64_t>(std::clamp<Wide>(rate, 1, line_));
}

// Linear in 1 / sqrt(window) between the two windows of flow scaling, constant outside.
Picoseconds Swift::target() const noexcept {
  if (config_->flow_scaling_range.count() == 0) return config_->base_target;
  const std::uint64_t most = inverse_root(fixed(config_->flow_scaling_window_min));
  const std::uint64_t least = inverse_root(fixed(config_->flow_scaling_window_max));
  const std::uint64_t here = std::clamp(inverse_root(window_), least, most);
  const Wide extra = static_cast<Wide>(config_->flow_scaling_range.count()) * (here - least) / (most - least);
  return config_->base_target + Picoseconds{static_cast<std::int64_t>(extra)};
}

void Swift::on_rtt(Picoseconds now, Picoseconds rtt, Pacer& pacer) noexcept {
  rtt_ = rtt;
  const Picoseconds wanted = target();
  if (rtt < wanted) {
    const Wide gain = static_cast<Wide>(fixed(config_->ai)) * acknowledged_;
    window_ += static_cast<std::uint64_t>(window_ >= kOne ? gain * kOne / window_ : gain);
    window_ = std::min(window_, std::max(kOne, fixed(config_->window_max)));
  } else {
    const Wide over =
        static_cast<Wide>(fixed(config_->beta)) * static_cast<std::uint64_t>((rtt - wanted).count());
    shrink(now, static_cast<std::uint64_t>(over / static_cast<std::uint64_t>(rtt.count())));
  }
  acknowledged_ = 0;
  pace(now, pacer);
}

void Swift::on_loss(Picoseconds now, Pacer& pacer) noexcept {
  shrink(now, kOne);
  pace(now, pacer);
}

// By `part` in 2^-16, as far as that is allowed.
void Swift::shrink(Picoseconds now, std::uint64_t part) noexcept {
  if (now - last_decrease_ < rtt_) return;
  last_decrease_ = now;
  const std::uint64_t allowed = std::min(part, fixed(config_->decrease_max));
  window_ -= window_ * allowed / kOne;
  window_ = std::max(window_, std::max<std::uint64_t>(1, fixed(config_->window_min)));
}

void Swift::pace(Picoseconds now, Pacer& pacer) noexcept {
  if (window_ >= kOne) {
    pacer.release();
  } else {
    pacer.set_rate(now, rate());
  }
}

}  // namespace bx::sim
