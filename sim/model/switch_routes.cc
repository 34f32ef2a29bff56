// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch_routes.h"

#include "libbx/base/check.h"

namespace bx::sim {

void SwitchRoutes::clear() noexcept {
  by_host_.clear();
  groups_.clear();
  ports_.clear();
  codes_.clear();
}

SwitchRoutes::Code SwitchRoutes::code_of(std::span<const std::uint16_t> ports) {
  if (ports.empty()) return kNone;
  for (const std::uint16_t port : ports) BX_CHECK(port < kGroup, "a switch has fewer ports");
  if (ports.size() == 1) return ports.front();
  const std::size_t next = kGroup + groups_.size();
  BX_CHECK(next < kNone, "a switch has fewer groups of equal ways");
  const auto [place, is_new] = codes_.try_emplace({ports.begin(), ports.end()}, static_cast<Code>(next));
  if (is_new) {
    groups_.push_back({static_cast<std::uint32_t>(ports_.size()), static_cast<std::uint32_t>(ports.size())});
    ports_.insert(ports_.end(), ports.begin(), ports.end());
  }
  return place->second;
}

void SwitchRoutes::set(std::uint16_t host, Code code) {
  if (by_host_.size() <= host) by_host_.resize(std::size_t{host} + 1, kNone);
  by_host_[host] = code;
}

}  // namespace bx::sim
