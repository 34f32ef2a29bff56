// SPDX-License-Identifier: GPL-2.0-only
// What is to go wrong in a run, as values: which kinds of fault there are, what each may be done to, and
// which parameters it takes. FaultInjector brings a plan about.
//
// Two ways to name what is hit: by time (from `at`, for `duration`, at random with a probability), or by
// packet, as Lumina does (Yu et al., "Understanding the micro-behaviors of hardware offloaded network stacks
// with Lumina", SIGCOMM 2023): the packet with the k-th PSN of the j-th queue pair of a host, the n-th time
// that it is sent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/topology_plan.h"
#include "sim/model/units.h"

namespace bx::sim {

enum class FaultKind : std::uint8_t {
  link_down,
  link_flap,
  loss,
  drop,
  corrupt,
  reorder,
  delay,
  ecn_mark,
  black_hole,
  cnp_loss,
  pause_loss,
  pause_storm,
  slow_receiver,
  wrong_class,
  nic_reset,
  qp_error,
  process_kill,
  host_crash,
};

// Bits: what a target may name.
namespace fault_target {
inline constexpr std::uint8_t kHost = 1;   // "host3"
inline constexpr std::uint8_t kPort = 2;   // "leaf0:2"
inline constexpr std::uint8_t kLink = 4;   // "leaf0-spine1"
inline constexpr std::uint8_t kQueue = 8;  // "host3:qp2": the second queue pair made on host3
inline constexpr std::uint8_t kWire = kHost | kPort | kLink;
}  // namespace fault_target

// Bits: parameters, beside kind, at and target.
namespace fault_field {
inline constexpr std::uint16_t kDuration = 1;
inline constexpr std::uint16_t kDirection = 2;
inline constexpr std::uint16_t kProbability = 4;
inline constexpr std::uint16_t kPsn = 8;
inline constexpr std::uint16_t kIteration = 16;
inline constexpr std::uint16_t kPackets = 32;
inline constexpr std::uint16_t kDelay = 64;
inline constexpr std::uint16_t kPeriod = 128;
inline constexpr std::uint16_t kCount = 256;
inline constexpr std::uint16_t kRate = 512;
inline constexpr std::uint16_t kPriority = 1024;
}  // namespace fault_field

// A kind may stand in the table twice: random on a wire, and of one packet of a queue pair.
struct FaultForm {
  FaultKind kind;
  std::string_view name;
  std::uint8_t targets;
  std::uint16_t needs;
  std::uint16_t may;
  std::string_view sentence;
};
[[nodiscard]] std::span<const FaultForm> fault_forms() noexcept;
[[nodiscard]] std::string_view to_string(FaultKind kind) noexcept;
// The name of a bit of fault_field, as scenario files write it.
[[nodiscard]] std::string_view field_name(std::uint16_t field) noexcept;

// Of the link or port that a target names: what its first-named end sends, what it receives, or both.
enum class FaultDirection : std::uint8_t { both, sent, received };
// Of a queue pair: its requests, or its answers to the peer's requests (READ responses, ACKs).
enum class FaultPackets : std::uint8_t { requests, answers };

struct FaultSpec {
  FaultKind kind = FaultKind::loss;
  std::string target{};
  Picoseconds at{};
  Picoseconds duration{};  // 0: for ever (an instant, where a kind has no duration)
  FaultDirection direction = FaultDirection::both;
  double probability = 1;
  std::uint32_t psn = 0;        // counted from the queue pair's first
  std::uint32_t iteration = 1;  // the first transmission is 1
  FaultPackets packets = FaultPackets::requests;
  Picoseconds delay{};   // 0 with reorder: long enough for two frames to pass
  Picoseconds period{};  // from one flap to the next
  std::uint32_t count = 1;
  Rate rate{};
  std::uint8_t priority = 0;
  std::uint16_t given = 0;  // bits of fault_field that somebody set
};

struct FaultTarget {
  std::uint8_t form = 0;  // one bit of fault_target; 0: there is no such thing
  std::uint16_t host = 0;
  std::uint32_t queue_pair = 0;  // 1 is the first
  // The ends that the target names, as (link, end): one, or several if links are parallel.
  struct End {
    std::size_t link = 0;
    std::size_t end = 0;
  };
  std::vector<End> ends{};
};
[[nodiscard]] FaultTarget find_fault_target(const TopologyPlan& plan, std::string_view name);

// What is wrong with a fault, as a sentence that begins with the parameter it is about ("target = ..."), or
// empty.
[[nodiscard]] std::string find_fault_error(const FaultSpec& fault, const TopologyPlan& plan);

}  // namespace bx::sim
