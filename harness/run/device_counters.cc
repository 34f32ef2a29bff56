// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/device_counters.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace bx::harness {

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
