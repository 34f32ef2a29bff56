// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "harness/perf/sim_measure.h"
#include "harness/report/result_file.h"
#include "harness/report/table.h"

namespace bx::harness {
namespace {

struct Row {
  SimCase measured;
  SimMeasurement result;
};

double cpu_seconds_a_packet(const SimMeasurement& result) {
  return result.cpu_seconds / static_cast<double>(result.packets);
}

std::string bytes_each(double bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.0f}", bytes);
}

void print_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    cases.push_back({{"name", row.measured.name},
                     {"packets", row.result.packets},
                     {"events", row.result.events},
                     {"seconds", row.result.seconds},
                     {"cpu_seconds", row.result.cpu_seconds},
                     {"peak_mib", row.result.peak_mib},
                     {"switch_port_bytes", row.result.switch_port_bytes},
                     {"queue_pair_bytes", row.result.queue_pair_bytes},
                     {"session_bytes", row.result.session_bytes},
                     {"digest", fmt::format("{:016x}", row.result.digest)}});
  }
  fmt::print("{}\n",
             nlohmann::ordered_json{{"schema", 1}, {"commit", build_commit()}, {"cases", cases}}.dump(2));
}

void print_table(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells{{"case", "packets", "events", "events/packet", "packets/s",
                                               "CPU/packet", "seconds", "peak MiB", "B/port", "B/QP",
                                               "B/session", "digest"}};
  for (const Row& row : rows) {
    const SimMeasurement& r = row.result;
    const double packets = static_cast<double>(r.packets);
    cells.push_back(
        {std::string(row.measured.name), fmt::format("{}", r.packets), fmt::format("{}", r.events),
         fmt::format("{:.2f}", static_cast<double>(r.events) / packets),
         fmt::format("{:.2f} M", packets / r.seconds / 1e6),
         fmt::format("x{:.2f}", cpu_seconds_a_packet(r) / cpu_seconds_a_packet(rows.front().result)),
         fmt::format("{:.2f}", r.seconds), fmt::format("{:.0f}", r.peak_mib), bytes_each(r.switch_port_bytes),
         bytes_each(r.queue_pair_bytes), bytes_each(r.session_bytes), fmt::format("{:016x}", r.digest)});
  }
  fmt::print("{}\n", align(cells));
  for (const Row& row : rows) fmt::print("{}: {}\n", row.measured.name, row.measured.sentence);
  fmt::print(
      "packets/s: of real time. CPU/packet: time on a core, in terms of the first case of this run.\n"
      "B/port, B/QP, B/session: memory of a switch port, of a connected queue pair that is idle, of a "
      "session.\n");
}

}  // namespace

int perf_sim_command(const PerfSimOptions& options) {
  std::vector<SimCase> cases = sim_cases();
  if (!options.only.empty()) {
    const auto unwanted = [&](const SimCase& one) {
      return std::find(options.only.begin(), options.only.end(), one.name) == options.only.end();
    };
    for (const std::string& name : options.only) {
      if (std::none_of(cases.begin(), cases.end(), [&](const SimCase& one) { return one.name == name; })) {
        std::string names;
        for (const SimCase& one : cases) names += fmt::format(" {}", one.name);
        fmt::print(stderr, "bx: error: perf sim has no case '{}'; the cases are:{}\n", name, names);
        return kExitUsage;
      }
    }
    cases.erase(std::remove_if(cases.begin(), cases.end(), unwanted), cases.end());
  }
  std::vector<Row> rows;
  for (const SimCase& one : cases) {
    if (!options.json) fmt::print(stderr, "{} ...\n", one.name);
    const Result<SimMeasurement> result = options.here ? measure_here(one) : measure(one);
    if (!result) {
      fmt::print(stderr, "bx: error: {}: {}\n", one.name, result.error().detail);
      return kExitNotGood;
    }
    rows.push_back({one, *result});
  }
  if (options.json) {
    print_json(rows);
  } else {
    print_table(rows);
  }
  return kExitGood;
}

}  // namespace bx::harness
