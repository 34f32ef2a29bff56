// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/host_file.h"

#include <fmt/format.h>

#include "harness/scenario/document.h"

namespace bx::harness {
namespace {

bool is_about_hosts(std::string_view key) {
  return key.starts_with("fabric.cpu.") || key == "fabric.nic.tx_latency" || key == "fabric.nic.rx_latency";
}

}  // namespace

std::vector<Assignment> load_host_file(const std::string& path, Diagnostics& diagnostics) {
  std::string text;
  if (!read_text_file(path, text, diagnostics)) return {};
  const std::size_t errors_before = diagnostics.count();
  const Value root = parse_toml(text, path, diagnostics);
  if (diagnostics.count() != errors_before) return {};
  AssignmentReader reader(path, Origin::scenario, diagnostics);
  reader.read_table(root, "");
  std::vector<Assignment> assignments = reader.take();
  for (const Assignment& assignment : assignments) {
    if (is_about_hosts(assignment.key->name)) continue;
    diagnostics.error(
        path, assignment.by.place,
        fmt::format("'{}' is not about a host; a host file has fabric.cpu.*, fabric.nic.tx_latency and "
                    "fabric.nic.rx_latency",
                    assignment.key->name));
  }
  return assignments;
}

}  // namespace bx::harness
