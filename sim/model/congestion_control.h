// SPDX-License-Identifier: GPL-2.0-only
// Congestion control of one queue pair, whichever algorithm the NIC runs: both halves of the queue pair ask
// it whether data may leave, and tell it what left and what came back.
//
//   RcRequester, RcResponder --holds? sent--> CongestionControl --+-- Pacer   the time between two packets
//             ACK, CNP, NAK, timeout -------------^               +-- Dcqcn or Swift
//
// It schedules nothing: algorithms catch up with the time when they are called, so a queue pair that is idle
// owns no event. Without an algorithm each call is one branch that always goes the same way.
#pragma once

#include <cstdint>
#include <limits>
#include <variant>

#include "sim/model/dcqcn.h"
#include "sim/model/pacer.h"
#include "sim/model/swift.h"
#include "sim/model/units.h"

namespace bx::sim {

enum class CongestionAlgorithm : std::uint8_t { none, dcqcn, swift };

// Among which packets the minimum time between two CNPs holds. NICs differ: Lumina (SIGCOMM 2023) found port,
// address pair and queue pair.
enum class CnpScope : std::uint8_t { port, address_pair, queue_pair };

// The notification point of DCQCN: what a receiver does about marked packets.
struct CnpConfig {
  Picoseconds interval = microseconds{50};  // N of the paper: at least this between two CNPs
  CnpScope scope = CnpScope::queue_pair;
  Picoseconds delay{};     // from the arrival of a marked packet to the CNP's place in the transmit schedule
  std::uint8_t dscp = 48;  // and so priority 6: deployed NICs' default, in a class of its own
  // A packet found missing counts as a marked one: a CNP goes with the sequence NAK (see the nvidia profile).
  bool with_naks = false;
};

struct CongestionConfig {
  CongestionAlgorithm algorithm = CongestionAlgorithm::none;
  DcqcnConfig dcqcn{};
  CnpConfig cnp{};
  SwiftConfig swift{};
};

class CongestionControl {
 public:
  static constexpr std::uint32_t kNoWindow = std::numeric_limits<std::uint32_t>::max();

  // `config` outlives it.
  CongestionControl(const CongestionConfig& config, Rate line) noexcept : config_(&config), line_(line) {}

  // A new connection, whose full packets are of that size on the wire.
  void start(std::uint32_t packet_bytes) noexcept;
  [[nodiscard]] bool active() const noexcept { return config_->algorithm != CongestionAlgorithm::none; }
  // The algorithm lives on round trips: every packet asks for its acknowledgement.
  [[nodiscard]] bool wants_rtt() const noexcept { return config_->algorithm == CongestionAlgorithm::swift; }

  // Whether data has to wait for resume_at().
  [[nodiscard]] bool holds(Picoseconds now) noexcept { return pacer_.limited() && holds_at(now); }
  // While it holds: when to ask again. That may be before the packet's time, as rates change.
  [[nodiscard]] Picoseconds resume_at() const noexcept;
  // Packets that a requester may have unacknowledged.
  [[nodiscard]] std::uint32_t window() const noexcept { return window_; }

  void on_sent(Picoseconds now, std::uint32_t wire_bytes) noexcept {
    if (active()) sent(now, wire_bytes);
  }
  void on_ack(std::uint64_t packets) noexcept {
    if (auto* swift = std::get_if<Swift>(&machine_)) swift->on_ack(packets);
  }
  void on_rtt(Picoseconds now, Picoseconds rtt) noexcept;
  void on_cnp(Picoseconds now) noexcept;
  void on_nak(Picoseconds now) noexcept { on_loss(now); }
  void on_timeout(Picoseconds now) noexcept { on_loss(now); }

  // Bits a second of the wire, as of now.
  [[nodiscard]] std::uint64_t rate(Picoseconds now) noexcept;

 private:
  [[nodiscard]] bool holds_at(Picoseconds now) noexcept {
    if (auto* dcqcn = std::get_if<Dcqcn>(&machine_)) {
      dcqcn->advance(now, pacer_);
      if (!pacer_.limited()) return false;
    }
    return pacer_.ready_at() > now;
  }
  void sent(Picoseconds now, std::uint32_t wire_bytes) noexcept;
  void on_loss(Picoseconds now) noexcept;

  const CongestionConfig* config_;
  Pacer pacer_;
  std::uint32_t window_ = kNoWindow;
  Rate line_;
  std::variant<std::monostate, Dcqcn, Swift> machine_;
};

}  // namespace bx::sim
