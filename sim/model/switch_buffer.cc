// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch_buffer.h"

#include <algorithm>

#include "libbx/base/check.h"

namespace bx::sim {
namespace {

constexpr int kAlphaLog2Max = 10;

std::uint64_t scale(std::uint64_t bytes, int alpha_log2) noexcept {
  return alpha_log2 >= 0 ? bytes << static_cast<unsigned>(alpha_log2)
                         : bytes >> static_cast<unsigned>(-alpha_log2);
}

std::uint64_t shared_part(std::uint64_t used, std::uint64_t reserved) noexcept {
  return used > reserved ? used - reserved : 0;
}

// Bits of `rate` in `time`, in bytes, rounded up.
std::uint64_t bytes_in(Picoseconds time, Rate rate) noexcept {
  constexpr Wide kBytePicoseconds = Wide{8} * 1'000'000'000'000ULL;
  const Wide scaled = static_cast<Wide>(time.count()) * rate.bits_per_second;
  return static_cast<std::uint64_t>((scaled + kBytePicoseconds - 1) / kBytePicoseconds);
}

Result<> check_class(const ClassBufferConfig& config) {
  if (config.alpha_log2 < -kAlphaLog2Max || config.alpha_log2 > kAlphaLog2Max) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, "alpha is out of [2^-10, 2^10]");
  }
  if (!config.lossless && (config.headroom_bytes != 0 || config.xon_offset_bytes != 0 ||
                           config.xon_floor_bytes != 0 || config.egress_bytes_max != UINT64_MAX)) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device,
                "headroom, XON thresholds and static egress limits belong to lossless classes only");
  }
  return {};
}

std::uint32_t headroom_of(const BufferConfig& config, std::size_t port, const ClassBufferConfig& c) noexcept {
  if (!c.lossless) return 0;
  return config.port_headroom_bytes.empty() ? c.headroom_bytes : config.port_headroom_bytes[port];
}

}  // namespace

Result<BufferPlan> plan_buffer(const BufferConfig& config) {
  if (config.ports == 0 || config.frame_bytes_max == 0) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, "a switch has ports and a largest frame");
  }
  if (!config.port_headroom_bytes.empty() && config.port_headroom_bytes.size() != config.ports) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, "give the headroom of all ports or of none");
  }
  BufferPlan plan;
  for (const ClassBufferConfig& c : config.classes) {
    if (const Result<> checked = check_class(c); !checked) return tl::unexpected(checked.error());
    plan.reserved_bytes += std::uint64_t{config.ports} * c.reserved_bytes;
    if (!c.lossless) continue;
    for (std::size_t port = 0; port < config.ports; ++port)
      plan.headroom_bytes += headroom_of(config, port, c);
    plan.crossing_bytes += std::uint64_t{config.ports} * (config.frame_bytes_max + c.xon_floor_bytes);
  }
  if (config.headroom_pool_bytes != 0) {
    plan.headroom_bytes = std::min(plan.headroom_bytes, config.headroom_pool_bytes);
  }
  const std::uint64_t fixed = plan.reserved_bytes + plan.headroom_bytes + plan.crossing_bytes;
  if (fixed + config.frame_bytes_max > config.total_bytes) {
    return fail(
        ErrorCode::exhausted, ErrorScope::device,
        "the buffer is smaller than ports * (reserved + headroom + one frame) and one frame to share");
  }
  plan.shared_bytes = config.total_bytes - fixed;
  return plan;
}

std::uint64_t xoff_threshold_bytes(const BufferConfig& config, std::uint8_t priority,
                                   std::uint32_t active_ports) {
  const Result<BufferPlan> plan = plan_buffer(config);
  BX_CHECK(plan.has_value(), "only a buffer that has a plan has thresholds");
  const ClassBufferConfig& c = config.classes[priority];
  const std::uint64_t shared =
      c.alpha_log2 >= 0 ? scale(plan->shared_bytes, c.alpha_log2) / (1 + scale(active_ports, c.alpha_log2))
                        : plan->shared_bytes / (scale(1, -c.alpha_log2) + active_ports);
  return c.reserved_bytes + shared;
}

std::uint64_t headroom_needed_bytes(const HeadroomInputs& inputs) noexcept {
  return std::uint64_t{inputs.own_frame_bytes} + kMinimumWireBytes +
         bytes_in(2 * inputs.delay + inputs.response, inputs.rate) + inputs.peer_frame_bytes;
}

SharedBuffer::SharedBuffer(const BufferConfig& config) : config_(config) {
  const Result<BufferPlan> plan = plan_buffer(config);
  BX_CHECK(plan.has_value(), "the configuration was to be checked with plan_buffer");
  plan_ = *plan;
  groups_.resize(std::size_t{config.ports} * kPriorities);
  for (std::size_t port = 0; port < config.ports; ++port) {
    for (std::size_t p = 0; p < kPriorities; ++p) {
      groups_[p * config.ports + port].headroom_max = headroom_of(config, port, config.classes[p]);
    }
  }
}

// While `shared` bytes of the pool are used.
std::uint64_t SharedBuffer::threshold(const ClassBufferConfig& config, std::uint64_t shared) const noexcept {
  // Crossing frames may take the pool past B'; then nothing is left to share.
  if (shared >= plan_.shared_bytes) return 0;
  return scale(plan_.shared_bytes - shared, config.alpha_log2);
}

void SharedBuffer::account(std::uint32_t bytes) noexcept {
  used_ += bytes;
  used_max_ = std::max(used_max_, used_);
  BX_CHECK(used_ <= config_.total_bytes, "the shared buffer holds more than it has");
}

Admission SharedBuffer::admit(std::uint16_t ingress_port, std::uint8_t priority, std::uint32_t bytes,
                              std::uint64_t egress_queue_bytes, BufferView view) noexcept {
  const ClassBufferConfig& config = config_.classes[priority];
  Group& group = groups_[index(ingress_port, priority)];
  if (bytes > config_.frame_bytes_max || egress_queue_bytes >= config.egress_bytes_max) {
    return Admission::dropped;
  }
  const bool exact = view == BufferView::exact;
  if (!exact && used_ + bytes > used_max_) return Admission::look_again;  // a new maximum must be a true one
  if (group.used + bytes <= config.reserved_bytes) {
    group.used += bytes;
    account(bytes);
    return Admission::kept;
  }
  const std::uint64_t shared_before = shared_part(group.used, config.reserved_bytes);
  const std::uint64_t shared_after = group.used + bytes - config.reserved_bytes;
  const std::uint64_t growth = shared_after - shared_before;
  if (!config.lossless) {
    if (egress_queue_bytes >= threshold(config, shared_used_) || shared_used_ + growth > plan_.shared_bytes) {
      return exact ? Admission::dropped : Admission::look_again;
    }
  } else if (group.xoff && shared_before >= threshold(config, shared_used_)) {
    if (!exact) return Admission::look_again;
    if (group.headroom + bytes > group.headroom_max || headroom_used_ + bytes > plan_.headroom_bytes) {
      return Admission::dropped;
    }
    group.headroom += bytes;
    headroom_used_ += bytes;
    account(bytes);
    return Admission::kept;
  }
  // In a lossless class this is either under the threshold or the one frame that crosses it.
  const bool crosses =
      config.lossless && !group.xoff && shared_after >= threshold(config, shared_used_ + growth);
  if (crosses && !exact) return Admission::look_again;
  group.used += bytes;
  shared_used_ += growth;
  account(bytes);
  if (!crosses) return Admission::kept;
  group.xoff = true;
  return Admission::kept_send_xoff;
}

bool SharedBuffer::release(std::uint16_t ingress_port, std::uint8_t priority, std::uint32_t bytes) noexcept {
  const ClassBufferConfig& config = config_.classes[priority];
  Group& group = groups_[index(ingress_port, priority)];
  BX_CHECK(group.used + group.headroom >= bytes, "more buffer given back than taken");
  used_ -= bytes;
  // Headroom empties first, whichever frame leaves: it must be free again before XON.
  const std::uint32_t from_headroom = std::min(group.headroom, bytes);
  group.headroom -= from_headroom;
  headroom_used_ -= from_headroom;
  const std::uint64_t shared_before = shared_part(group.used, config.reserved_bytes);
  group.used -= bytes - from_headroom;
  const std::uint64_t shared_after = shared_part(group.used, config.reserved_bytes);
  shared_used_ -= shared_before - shared_after;
  if (!group.xoff || group.headroom != 0) return false;
  // Going on with something still shared while the threshold is at zero would let the same port cross twice:
  // the buffer sets aside one crossing frame and the floor for each.
  if (shared_after > config.xon_floor_bytes &&
      shared_after + config.xon_offset_bytes > threshold(config, shared_used_)) {
    return false;
  }
  group.xoff = false;
  return true;
}

}  // namespace bx::sim
