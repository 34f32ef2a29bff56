// SPDX-License-Identifier: GPL-2.0-only
// What an agent tells of its hosts: signs of life while they play, and at the end everything that it saw.
// Times are by the agent's own clock; the coordinator knows how far that is ahead.
#pragma once

#include <bx/config.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/cluster/frame.h"
#include "harness/measure/metric_set.h"
#include "harness/measure/oracle.h"
#include "harness/workload/ledger.h"

namespace bx::harness {

// A call as its client saw it.
struct SeenCall {
  std::uint64_t call = 0;
  CallRecord record{};
  ErrorCode code{};  // of one that failed
};

// A request as its server saw it.
struct SeenRequest {
  std::uint64_t call = 0;
  std::uint32_t server = 0;
  std::int64_t at_ns = 0;
};

struct ReadyReport {
  MetricSet counters;  // names and units of what there will be
  std::vector<Config> configs;
};

struct Beat {
  std::int64_t now_ns = 0;
  std::uint64_t bytes = 0;  // payload that its clients have received
  std::uint64_t started = 0;
  std::uint64_t completed = 0;  // calls
  std::uint64_t progress = 0;   // grows when anything gets done
  std::array<std::uint64_t, 5>
      gauges{};  // bytes in flight in and out, credits, messages queued, calls outstanding
};

struct HostReport {
  MetricSet metrics{};  // of the measured part
  std::vector<Breach> breaches{};
  std::uint64_t cpu_ns = 0;          // of the measured part
  std::vector<std::string> waits{};  // who waits for what
  std::vector<SeenCall> calls{};
  std::vector<SeenRequest> requests{};
};

Json to_json(const ReadyReport& ready);
Json to_json(const Beat& beat);
// In messages of kind "records", as many as needed, and one of kind "report" at the end.
std::vector<Json> to_messages(const HostReport& report);

// All throw nlohmann::json::exception on what the functions above did not write.
ReadyReport ready_from(const Json& json);
Beat beat_from(const Json& json);
// Adds what one of the messages holds.
void add_message(const Json& message, HostReport& report);

}  // namespace bx::harness
