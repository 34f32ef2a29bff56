// SPDX-License-Identifier: GPL-2.0-only
// The shared buffer of an output-queued switch: who may keep a frame, when a peer must be paused, when it may
// go on. It counts bytes (of the wire, preamble and gap included, so that formulas in rate and time are
// exact; real switches count cells without the gap) and holds no frames.
//
//   total = reserved of every (ingress port, priority)            always granted
//         + headroom of every (ingress port, lossless priority)   only after XOFF, for what is in flight
//         + one largest frame per (ingress port, lossless priority): the frame whose arrival crosses XOFF
//         + shared pool B'                                        granted up to alpha * (B' - used)
//
// Lossless: a frame that brings its (ingress port, priority) to the dynamic threshold is kept and asks for
// XOFF; from then on what is over the threshold goes to headroom, and only a full headroom drops. Egress is
// limited statically, by default by the whole buffer: it never drops. XON when the headroom is empty and the
// shared use is `xon_offset` below the threshold, or at most `xon_floor`. Headroom may be a pool smaller than
// the sum of what its ports may take. Lossy: dropped when the egress queue is at the dynamic threshold or the
// pool is used up.
//
// Dynamic threshold: Choudhury, Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
// 1998. The shape (ingress threshold, static egress for lossless, alpha = 2^n, xon, xon_offset) is that of
// SONiC's buffer profiles.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "libbx/base/result.h"
#include "sim/model/units.h"

namespace bx::sim {

struct ClassBufferConfig {
  bool lossless = false;
  std::int8_t alpha_log2 = 0;                   // alpha = 2^n, n in [-10, 10]
  std::uint32_t reserved_bytes = 0;             // per ingress port
  std::uint32_t headroom_bytes = 0;             // per ingress port, lossless only; see headroom_needed_bytes
  std::uint32_t xon_offset_bytes = 0;           // hysteresis below the dynamic threshold
  std::uint32_t xon_floor_bytes = 0;            // so little of the pool never keeps a peer paused
  std::uint64_t egress_bytes_max = UINT64_MAX;  // of one egress queue, lossless only: the static threshold
};

struct BufferConfig {
  std::uint64_t total_bytes = 0;
  std::uint16_t ports = 0;
  std::uint32_t frame_bytes_max = kFrameBytesMax;  // on the wire
  std::array<ClassBufferConfig, kPriorities> classes{};
  // By port, for each of its lossless classes, in the place of the classes' headroom_bytes: what a port needs
  // follows from its rate and its cable. Empty: as the classes say.
  std::vector<std::uint32_t> port_headroom_bytes{};
  std::uint64_t headroom_pool_bytes = 0;  // 0: every port's headroom is its own
};

// How a buffer divides.
struct BufferPlan {
  std::uint64_t reserved_bytes = 0;
  std::uint64_t headroom_bytes = 0;
  std::uint64_t crossing_bytes = 0;  // for the frames that cross XOFF, again when XON came at the floor
  std::uint64_t shared_bytes = 0;    // B'
};
// Errors: invalid_argument (no ports, alpha or frame size out of range, headroom or a threshold without
// lossless, headroom of another number of ports), exhausted (nothing left for the shared pool).
[[nodiscard]] Result<BufferPlan> plan_buffer(const BufferConfig& config);

// Shared bytes that each of `active_ports` evenly loaded ingress ports holds when it is paused:
// x = a B' / (1 + a N), plus what is reserved for it.
[[nodiscard]] std::uint64_t xoff_threshold_bytes(const BufferConfig& config, std::uint8_t priority,
                                                 std::uint32_t active_ports);

// What can still arrive after XOFF was decided (the terms of IEEE 802.1Q-2018, Annex N.7).
struct HeadroomInputs {
  Rate rate{};
  Picoseconds delay{};                              // one way
  std::uint32_t own_frame_bytes = kFrameBytesMax;   // our largest frame, which the PFC frame waits behind
  std::uint32_t peer_frame_bytes = kFrameBytesMax;  // the peer's, begun just before it stops
  Picoseconds response{};  // from the PFC frame's last bit to the peer's decision; a NIC of ours needs none
};
[[nodiscard]] std::uint64_t headroom_needed_bytes(const HeadroomInputs& inputs) noexcept;

enum class Admission : std::uint8_t {
  kept,
  kept_send_xoff,
  dropped,  // in a lossy class: that is what it is for; in a lossless one: headroom was too small, the egress
            // queue at its static limit, or the frame larger than the largest
  look_again,  // only an exact view of the buffer can tell; nothing has changed
};

// How the buffer compares with what it is at this instant.
enum class BufferView : std::uint8_t {
  exact,
  not_emptier,  // it may hold bytes of frames that have left and are not given back yet
};

class alignas(64) SharedBuffer {
 public:
  // `config` must have a plan.
  explicit SharedBuffer(const BufferConfig& config);

  // `egress_queue_bytes` are waiting where the frame is going.
  // With a view that is not exact, either the outcome is that of an exact one or look_again.
  Admission admit(std::uint16_t ingress_port, std::uint8_t priority, std::uint32_t bytes,
                  std::uint64_t egress_queue_bytes, BufferView view = BufferView::exact) noexcept;
  // Gives back what admit() kept. True: send XON to the ingress port's peer.
  [[nodiscard]] bool release(std::uint16_t ingress_port, std::uint8_t priority, std::uint32_t bytes) noexcept;

  [[nodiscard]] bool lossless(std::uint8_t priority) const noexcept {
    return config_.classes[priority].lossless;
  }
  [[nodiscard]] bool xoff(std::uint16_t port, std::uint8_t priority) const noexcept {
    return groups_[index(port, priority)].xoff;
  }
  // Bytes kept now for frames that came in there, headroom included.
  [[nodiscard]] std::uint64_t used_bytes(std::uint16_t port, std::uint8_t priority) const noexcept {
    const Group& group = groups_[index(port, priority)];
    return group.used + group.headroom;
  }
  [[nodiscard]] std::uint64_t headroom_bytes(std::uint16_t port, std::uint8_t priority) const noexcept {
    return groups_[index(port, priority)].headroom;
  }
  [[nodiscard]] std::uint64_t headroom_bytes_max(std::uint16_t port, std::uint8_t priority) const noexcept {
    return groups_[index(port, priority)].headroom_max;
  }
  [[nodiscard]] std::uint64_t used_bytes() const noexcept { return used_; }
  // Of these, in the pool that all share, and in headroom.
  [[nodiscard]] std::uint64_t shared_used_bytes() const noexcept { return shared_used_; }
  [[nodiscard]] std::uint64_t headroom_used_bytes() const noexcept { return headroom_used_; }
  [[nodiscard]] std::uint64_t used_bytes_max() const noexcept { return used_max_; }
  [[nodiscard]] const BufferConfig& config() const noexcept { return config_; }
  [[nodiscard]] const BufferPlan& plan() const noexcept { return plan_; }

  // What admit() and release() will touch, from memory.
  void prefetch(std::uint16_t port, std::uint8_t priority) const noexcept {
    __builtin_prefetch(&groups_[index(port, priority)]);
  }

 private:
  // One (ingress port, priority). The first `reserved_bytes` of `used` are its own, the rest is of the pool.
  struct Group {
    std::uint64_t used = 0;  // without headroom
    std::uint32_t headroom = 0;
    std::uint32_t headroom_max = 0;
    bool xoff = false;
  };
  // Few priorities are in use at a time: those of one are side by side.
  [[nodiscard]] std::size_t index(std::uint16_t port, std::uint8_t priority) const noexcept {
    return std::size_t{priority} * config_.ports + port;
  }
  [[nodiscard]] std::uint64_t threshold(const ClassBufferConfig& config, std::uint64_t shared) const noexcept;
  void account(std::uint32_t bytes) noexcept;

  std::vector<Group> groups_;
  std::uint64_t shared_used_ = 0;
  std::uint64_t headroom_used_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t used_max_ = 0;
  BufferPlan plan_;
  BufferConfig config_;
};

}  // namespace bx::sim
