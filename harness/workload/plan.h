// SPDX-License-Identifier: GPL-2.0-only
// Every call that a run will make, drawn from the seed before anything starts. So the closed form can be
// computed, two variants make the same calls, and what one host does cannot shift what another draws.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/scenario/settings.h"
#include "harness/workload/path_model.h"

namespace bx::harness {

inline constexpr std::uint16_t kFirstPort = 7000;  // of workload i: kFirstPort + i

struct CallPlan {
  std::uint32_t server = 0;  // host number
  std::uint32_t request_bytes = 0;
  std::uint32_t answer_bytes = 0;
};

// The calls of one client of one workload, in rounds of `fan_out` calls that start together.
struct ClientPlan {
  std::uint32_t host = 0;
  std::uint32_t workload = 0;
  std::uint32_t service = 0;     // of which workload
  std::uint32_t sessions = 1;    // to each server; round n uses the n-th, and so on in turn
  std::uint64_t first_call = 0;  // the calls of the whole run are numbered from 0
  std::uint32_t fan_out = 1;
  std::uint32_t warm_up_rounds = 0;
  std::uint32_t rounds = 0;  // measured ones
  std::uint32_t concurrency = 1;
  std::uint64_t think_time_ns = 0;
  std::vector<CallPlan> calls;

  [[nodiscard]] std::span<const CallPlan> round(std::uint64_t number) const {
    return std::span(calls).subspan(number * fan_out, fan_out);
  }
};

struct Plan {
  std::vector<ClientPlan> clients;
  std::uint64_t calls = 0;         // warm-up included
  std::uint64_t answer_bytes = 0;  // of the measured calls
  std::uint64_t measured_calls = 0;
};

Plan make_plan(const Settings& settings);

// For each measured round of the client, in picoseconds.
std::vector<std::uint64_t> round_bounds_ps(const ClientPlan& client, const PathModel& paths);
// The link of a host, where they are all the same; of a topology file, the fastest and the shortest.
LinkModel link_model(const Settings& settings);
// The slowest and the longest there is: for how long things may take.
LinkModel slowest_link(const Settings& settings);

// A guess at how long the measured part takes, for sampling, limits and the progress bar.
std::uint64_t expected_duration_ns(const Plan& plan, const Settings& settings);

// Peers of `host` in all workloads.
std::uint32_t peers_of(const Settings& settings, std::uint32_t host);
// The library's knobs for `host`: as set, and where nobody set peers.max, calls.max, requests.max or
// memory.arena, at least what the workloads need there.
Config config_for(const Settings& settings, std::uint32_t host);

}  // namespace bx::harness
