// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/device_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/base/units.h"
#include "harness/run/counter_names.h"
#include "libbx/providers/native/socket_address.h"

namespace bx::harness {
namespace {

constexpr std::array<std::string_view, 5> kQdiscCounts{"packets", "bytes", "drops", "overlimits", "requeues"};

// Of the thousands that drivers have a queue each.
bool is_of_interest(std::string_view name) {
  constexpr std::array<std::string_view, 6> kParts{"pause", "discard", "ecn", "cnp", "out_of_buffer", "roce"};
  for (const std::string_view part : kParts) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// As sysfs writes it: "fe80:0000:0000:0000:0000:0000:0000:0001".
std::string gid_text(const fabric::Gid& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.size(); ++i) {
    text += fmt::format("{:02x}{}", gid[i], i % 2 == 1 && i + 1 < gid.size() ? ":" : "");
  }
  return text;
}

bool has_gid(const std::filesystem::path& port, const std::string& wanted) {
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(port / "gids", none)) {
    std::ifstream in(file.path());
    if (std::string gid; in >> gid && gid == wanted) return true;
  }
  return false;
}

void report_one(std::string_view source, const NamedCount& counter, MetricSink& sink) {
  sink.metric(fmt::format("{}.{}", source, counter.name), static_cast<double>(counter.value), "count");
  for (const StandardMetric& standard : standard_metrics(counter.name)) {
    sink.metric(standard.name, static_cast<double>(counter.value) * standard.factor, standard.unit);
  }
}

}  // namespace

std::optional<CountedPort> find_device_port(const std::string& address, const std::string& device,
                                            const std::string& sysfs) {
  const auto parsed = native::SocketAddress::parse(address);
  if (!parsed) return std::nullopt;
  const std::string wanted = gid_text(parsed->gid());
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator(sysfs + "/class/infiniband", none)) {
    const std::string name = each.path().filename().string();
    if (!device.empty() && name != device) continue;
    for (const auto& port : std::filesystem::directory_iterator(each.path() / "ports", none)) {
      const Parsed<std::uint64_t> number = parse_count(port.path().filename().string());
      if (number && has_gid(port.path(), wanted)) return CountedPort{name, static_cast<unsigned>(*number)};
    }
  }
  return std::nullopt;
}

std::vector<DeviceCounter> read_device_counters(const std::string& device, unsigned port,
                                                const std::string& sysfs) {
  std::map<std::string, std::uint64_t> found;
  for (const char* folder : {"hw_counters", "counters"}) {
    const std::string path = fmt::format("{}/class/infiniband/{}/ports/{}/{}", sysfs, device, port, folder);
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(path, none)) {
      std::ifstream in(file.path());
      std::uint64_t value = 0;  // some files are settings ("lifespan") or cannot be read: they are left out
      if (file.path().filename() != "lifespan" && in >> value) {
        found.try_emplace(file.path().filename().string(), value);
      }
    }
  }
  std::vector<DeviceCounter> counters;
  for (const auto& [name, value] : found) counters.push_back({name, value});
  return counters;
}

std::vector<NamedCount> parse_qdiscs(const std::string& json, const std::vector<std::string>& interfaces) {
  const nlohmann::json disciplines = nlohmann::json::parse(json, nullptr, false);
  std::vector<NamedCount> sums;
  if (!disciplines.is_array()) return sums;
  for (const std::string_view name : kQdiscCounts) {
    NamedCount sum{std::string(name), 0};
    for (const nlohmann::json& discipline : disciplines) {
      if (!discipline.is_object()) continue;
      const auto dev = discipline.find("dev");
      if (dev == discipline.end() || !dev->is_string()) continue;
      if (std::ranges::count(interfaces, dev->get<std::string>()) == 0) continue;
      const auto value = discipline.find(sum.name);
      if (value != discipline.end() && value->is_number_unsigned()) sum.value += value->get<std::uint64_t>();
    }
    sums.push_back(std::move(sum));
  }
  return sums;
}

void report_device(const SystemView& system, const std::string& device, unsigned port,
                   const std::string& interface, MetricSink& sink) {
  for (const DeviceCounter& counter : read_device_counters(device, port, system.path("/sys"))) {
    report_one("device", counter, sink);
  }
  if (interface.empty()) return;
  for (const NamedCount& counter : read_interface_counters(system, interface)) {
    if (is_of_interest(counter.name)) report_one("ethtool", counter, sink);
  }
}

void report_qdiscs(const SystemView& system, const std::vector<std::string>& interfaces, MetricSink& sink) {
  const auto text = system.run({"tc", "-j", "-s", "qdisc", "show"});
  for (const NamedCount& counter : parse_qdiscs(text.value_or(""), interfaces))
    report_one("tc", counter, sink);
}

PortCounters::PortCounters(std::vector<CountedPort> ports, SystemView system)
    : system_(std::move(system)), ports_(std::move(ports)) {
  count(before_);
}

void PortCounters::report(MetricSink& sink) const {
  MetricSet now;
  count(now);
  const MetricSet counted = now.since(before_);
  for (const Metric& metric : counted.all()) sink.metric(metric.name, metric.value, metric.unit);
}

void PortCounters::count(MetricSink& sink) const {
  std::vector<std::string> all;
  for (const CountedPort& port : ports_) {
    const std::vector<std::string> interfaces = interfaces_of(port);
    report_device(system_, port.device, port.port, interfaces.empty() ? std::string() : interfaces.front(),
                  sink);
    all.insert(all.end(), interfaces.begin(), interfaces.end());
  }
  report_qdiscs(system_, all, sink);
}

std::vector<std::string> PortCounters::interfaces_of(const CountedPort& port) const {
  const auto own = system_.read(
      fmt::format("/sys/class/infiniband/{}/ports/{}/gid_attrs/ndevs/0", port.device, port.port));
  if (!own || own->empty()) return {};
  std::vector<std::string> interfaces{*own};
  const std::string other = "p" + own->substr(1);
  if (own->starts_with('h') && system_.exists("/sys/class/net/" + other)) interfaces.push_back(other);
  return interfaces;
}

}  // namespace bx::harness
