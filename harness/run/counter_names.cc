// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/counter_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace bx::harness {
namespace {

struct Name {
  std::string_view driver;
  std::string_view standard;
};

constexpr std::array<Name, 9> kRxe{{
    {"sent_pkts", "nic.packets_tx"},
    {"rcvd_pkts", "nic.packets_rx"},
    {"out_of_seq_request", "nic.sequence_naks"},  // counted once a gap, with the NAK
    {"send_rnr_err", "nic.rnr_naks"},
    {"rcvd_rnr_err", "nic.rnr_naks_rx"},
    {"rcvd_seq_err", "nic.sequence_naks_rx"},
    {"completer_retry_err", "nic.retries"},  // times that a requester went back, for a NAK or a timeout
    {"duplicate_request", "nic.duplicates_rx"},
    {"retry_exceeded_err", "nic.retries_exceeded"},
}};

constexpr std::array<Name, 11> kMlx5{{
    {"out_of_sequence", "nic.out_of_sequence"},  // packets, not NAKs
    {"packet_seq_err", "nic.sequence_naks_rx"},
    {"rnr_nak_retry_err", "nic.rnr_naks_rx"},
    {"local_ack_timeout_err", "nic.timeouts"},
    {"out_of_buffer", "nic.no_receive"},
    {"rx_icrc_encapsulated", "nic.icrc_errors"},
    {"np_cnp_sent", "cc.cnps_tx"},
    {"rp_cnp_handled", "cc.cnps_rx"},
    {"np_ecn_marked_roce_packets", "ecn.marked_rx"},
    {"roce_slow_restart", "nic.slow_restarts"},
    {"rx_discards_phy", "nic.receive_drops"},
}};

// "rx_prio3_pause" has the priority 3 and the rest "rx_pause".
struct OfPriority {
  char priority = '0';
  std::string rest;
};
std::optional<OfPriority> split_priority(std::string_view name) {
  constexpr std::string_view kMark = "_prio";
  const std::size_t at = name.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view after = name.substr(at + kMark.size());
  if (after.size() < 2 || after[0] < '0' || after[0] > '7' || after[1] != '_') return std::nullopt;
  return OfPriority{after[0], std::string(name.substr(0, at)) + std::string(after.substr(1))};
}

std::vector<StandardMetric> pause_metrics(const OfPriority& name) {
  const auto each = [&](std::string_view what, std::string_view unit = "count", double factor = 1) {
    return StandardMetric{fmt::format("pfc.priority{}.{}", name.priority, what), std::string(unit), factor};
  };
  constexpr double kMicrosecond = 1000;  // mlx5 counts pauses in microseconds
  if (name.rest == "rx_pause") return {{"pfc.pause_frames"}, each("pause_frames_rx")};
  if (name.rest == "tx_pause") return {{"nic.pause_frames"}, each("pause_frames_tx")};
  if (name.rest == "rx_pause_duration") {
    return {{"pfc.paused_time", "ns", kMicrosecond}, each("paused_time", "ns", kMicrosecond)};
  }
  if (name.rest == "rx_discards") return {each("discards_rx")};
  return {};
}

}  // namespace

std::vector<StandardMetric> standard_metrics(std::string_view driver_name) {
  const auto is_driver_name = [&](const Name& name) { return name.driver == driver_name; };
  if (const auto found = std::ranges::find_if(kRxe, is_driver_name); found != kRxe.end()) {
    return {{std::string(found->standard)}};
  }
  if (const auto found = std::ranges::find_if(kMlx5, is_driver_name); found != kMlx5.end()) {
    return {{std::string(found->standard)}};
  }
  if (const auto name = split_priority(driver_name)) return pause_metrics(*name);
  return {};
}

bool is_counted_by_rxe(std::string_view metric) {
  return std::ranges::any_of(kRxe, [&](const Name& name) { return name.standard == metric; });
}

}  // namespace bx::harness
