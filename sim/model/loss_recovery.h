// SPDX-License-Identifier: GPL-2.0-only
// How a queue pair recovers lost packets, and how eagerly its responder acknowledges.
//
// Go-back-N is the standard's way. Selective repeat follows the idea of IRN (Mittal et al., SIGCOMM 2018) in
// a form of our own: the responder keeps packets that come early in a buffer and executes them in order; for
// each new hole it sends a sequence NAK whose 16 bytes of payload are a map of what it has behind the first
// hole; the requester sends again what the map shows missing, each packet once until the ACK timer expires,
// and has no more than `window_packets` (the bandwidth-delay product) unacknowledged. Timeouts, RNR NAKs and
// lost READ responses go back as ever.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/model/frame.h"
#include "sim/model/units.h"

namespace bx::sim {

enum class LossRecovery : std::uint8_t { go_back_n, selective_repeat };

struct RecoveryConfig {
  LossRecovery kind = LossRecovery::go_back_n;
  std::uint32_t window_packets = 256;  // of selective repeat; both ends alike
  // The responder acknowledges packets that do not ask for it, too: every so many, or when the first of fewer
  // is that old. 0: only when asked.
  std::uint32_t ack_every = 0;
  Picoseconds ack_delay = microseconds{4};
};

// Of a selective NAK, behind its AETH: bit i of the map (byte i / 8, low bit first) says that the packet i +
// 1 PSNs behind the NAK's is there.
inline constexpr std::uint32_t kReceivedMapBytes = 16;
inline constexpr std::uint32_t kReceivedMapBits = 8 * kReceivedMapBytes;

// The responder's: packets that came before their turn.
class ReorderBuffer {
 public:
  void start(std::uint32_t window);
  [[nodiscard]] bool enabled() const noexcept { return !slots_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Keeps a copy. False if it is there already, or not within the window from `expected`.
  bool keep(FramePool& pool, std::uint64_t expected, std::uint64_t position, const Frame& frame);
  // The packet of this position, which is the caller's to free, or null.
  Frame* take(FramePool& pool, std::uint64_t position) noexcept;
  void write_map(std::uint64_t expected, std::byte* out) const noexcept;  // kReceivedMapBytes
  void clear(FramePool& pool) noexcept;

 private:
  struct Slot {
    Frame* frame = nullptr;
    std::uint64_t position = 0;
  };
  [[nodiscard]] bool holds(std::uint64_t position) const noexcept {
    const Slot& slot = slots_[position & (slots_.size() - 1)];
    return slot.frame != nullptr && slot.position == position;
  }
  std::vector<Slot> slots_;  // a power of two
  std::size_t size_ = 0;
  std::uint32_t window_ = 0;
};

// The requester's: what is known of the packets from the oldest unacknowledged one on.
class LossMap {
 public:
  void start(std::uint32_t window, std::uint64_t first);
  [[nodiscard]] bool enabled() const noexcept { return !flags_.empty(); }
  [[nodiscard]] std::uint32_t waiting() const noexcept { return waiting_; }
  void mark_received(std::uint64_t position) noexcept;
  // To be sent again, unless it was before, or has been received.
  void mark_lost(std::uint64_t position) noexcept;
  // The first of those that wait to be sent again. waiting() > 0.
  std::uint64_t take_lost() noexcept;
  void acknowledge_below(std::uint64_t position) noexcept;
  void clear() noexcept;  // everything will be sent again

 private:
  static constexpr std::uint8_t kReceived = 1;
  static constexpr std::uint8_t kRepeated = 2;  // has been marked lost
  static constexpr std::uint8_t kWaiting = 4;
  [[nodiscard]] bool knows(std::uint64_t position) const noexcept {
    return position >= base_ && position - base_ < flags_.size();
  }
  [[nodiscard]] std::uint8_t& at(std::uint64_t position) noexcept {
    return flags_[position & (flags_.size() - 1)];
  }
  std::vector<std::uint8_t> flags_;  // a power of two
  std::uint64_t base_ = 0;
  std::uint32_t waiting_ = 0;
};

}  // namespace bx::sim
