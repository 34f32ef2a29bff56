// SPDX-License-Identifier: GPL-2.0-only
// A whole system by seed: a few hosts with random tiny limits, all serving and calling each other with random
// sizes, holds, deadlines, rejections, memory of their own, puts, gets, and callers that give up. Then no
// more is started and everything must come to its end. Everything that happens follows from the plan.
//
//   Swarm --owns--> SwarmNetwork (loopback or sim, behind a FaultFabric)
//     '--runs--> Member (one host: service, worker, sessions, calls; acts on a timer of its own)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/swarm/plan.h"
#include "libbx/base/prng.h"
#include "libbx/base/time.h"

namespace bx::harness {

// One promise that was broken: the checker that saw it, and what it saw.
struct SwarmFault {
  std::string checker;
  std::string what;
};

// What went wrong, if anything, and what the run looked like.
struct SwarmReport {
  std::vector<SwarmFault> faults;
  std::uint64_t digest = 0;
  std::uint64_t calls = 0;  // puts and gets included
  std::uint64_t answered = 0;
  std::uint64_t one_sided = 0;    // puts that were read back with a get, byte for byte
  std::uint64_t user_memory = 0;  // sent from memory of the application's own
  std::uint64_t parts = 0;        // of streams, read
  std::uint64_t cancelled = 0;
  std::uint64_t refused = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t expired = 0;
  std::uint64_t failed = 0;  // with their session
  std::uint64_t peers_failed = 0;

  // Adds what another run looked like; faults and digest are its own.
  void add_counts(const SwarmReport& other) noexcept;
};

// Every count of a report: to be written, read, added up and digested.
inline constexpr std::array kSwarmCounts{
    &SwarmReport::calls,   &SwarmReport::answered,  &SwarmReport::one_sided,   &SwarmReport::user_memory,
    &SwarmReport::parts,   &SwarmReport::cancelled, &SwarmReport::refused,     &SwarmReport::abandoned,
    &SwarmReport::expired, &SwarmReport::failed,    &SwarmReport::peers_failed};

class Member;
class SwarmNetwork;

class Swarm {
 public:
  static constexpr std::size_t kFaultsMax = 20;  // more of one run say nothing new

  explicit Swarm(const SwarmPlan& plan);
  ~Swarm();
  SwarmReport run();

  // For the members.
  [[nodiscard]] SwarmNetwork& network() noexcept { return *network_; }
  [[nodiscard]] const SwarmPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] SwarmReport& report() noexcept { return report_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] Member& member(std::size_t number) noexcept { return *members_[number]; }
  void fault(std::string checker, std::string what);

 private:
  void run_until(Instant limit);
  void live();
  void close();

  SwarmPlan plan_;
  Prng prng_;
  SwarmReport report_;
  std::unique_ptr<SwarmNetwork> network_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace bx::harness
