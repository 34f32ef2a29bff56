// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/device_counters.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "harness/base/units.h"
#include "libbx/providers/native/socket_address.h"

namespace bx::harness {
namespace {

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

}  // namespace

std::optional<DevicePortName> find_device_port(const std::string& address, const std::string& device,
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
      if (number && has_gid(port.path(), wanted)) return DevicePortName{name, static_cast<unsigned>(*number)};
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

}  // namespace bx::harness
