// SPDX-License-Identifier: GPL-2.0-only
#include "harness/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace bx::harness {

std::string_view to_string(Diagnosis::Level level) noexcept {
  switch (level) {
    case Diagnosis::Level::ok:
      return "ok";
    case Diagnosis::Level::warn:
      return "warn";
    case Diagnosis::Level::fail:
      return "fail";
  }
  return "unknown";
}

std::vector<Diagnosis> diagnose(const SystemView& system, const Config& config) {
  std::vector<Diagnosis> all = diagnose_machine(system, config);
  const std::vector<RdmaPort> ports = read_rdma_ports(system);
  if (ports.empty()) {
    all.push_back(
        {Diagnosis::Level::fail, "machine", "devices", "there is no RDMA device",
         "load the NIC's driver (mlx5_ib, ...), or try SoftRoCE: scripts/rxe bx doctor; sim and loopback "
         "need no device"});
  }
  for (const RdmaPort& port : ports) {
    for (Diagnosis& one : diagnose_port(system, port, config)) all.push_back(std::move(one));
  }
  return all;
}

std::string render_diagnoses(const std::vector<Diagnosis>& diagnoses) {
  std::string text;
  std::string subject;
  for (const Diagnosis& one : diagnoses) {
    if (one.subject != subject) text += fmt::format("{}{}\n", subject.empty() ? "" : "\n", one.subject);
    subject = one.subject;
    text += fmt::format("  {:<4}  {:<14} {}\n", to_string(one.level), one.check, one.text);
    if (!one.remedy.empty()) text += fmt::format("        {:<14} -> {}\n", "", one.remedy);
  }
  const auto count = [&](Diagnosis::Level level) {
    return std::ranges::count(diagnoses, level, &Diagnosis::level);
  };
  text += fmt::format("\n{} ok, {} warn, {} fail\n", count(Diagnosis::Level::ok),
                      count(Diagnosis::Level::warn), count(Diagnosis::Level::fail));
  return text;
}

std::string diagnoses_json(const std::vector<Diagnosis>& diagnoses) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Diagnosis& one : diagnoses) {
    findings.push_back({{"level", to_string(one.level)},
                        {"subject", one.subject},
                        {"check", one.check},
                        {"text", one.text},
                        {"remedy", one.remedy}});
  }
  const nlohmann::ordered_json json{{"schema", 1}, {"findings", findings}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace bx::harness
