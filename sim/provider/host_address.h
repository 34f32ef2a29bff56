// SPDX-License-Identifier: GPL-2.0-only
// Hosts are numbered from 0; host i has the IPv4 address 10.0.0.0 + i + 1, and its GID is that address as
// RoCEv2 writes it, ::ffff:a.b.c.d.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "libbx/fabric/types.h"

namespace bx::sim {

inline constexpr std::uint16_t kNoHost = 0xffff;  // no switch has a route to it

inline constexpr std::array<std::uint8_t, 13> kGidPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10};

constexpr fabric::Gid gid_of(std::uint16_t host) noexcept {
  fabric::Gid gid{};
  std::copy(kGidPrefix.begin(), kGidPrefix.end(), gid.begin());
  const std::uint32_t number = std::uint32_t{host} + 1;
  gid[13] = static_cast<std::uint8_t>(number >> 16U);
  gid[14] = static_cast<std::uint8_t>(number >> 8U);
  gid[15] = static_cast<std::uint8_t>(number);
  return gid;
}

// kNoHost for an address that no host can have.
constexpr std::uint16_t host_of(const fabric::Gid& gid) noexcept {
  if (!std::equal(kGidPrefix.begin(), kGidPrefix.end(), gid.begin())) return kNoHost;
  const std::uint32_t number = (std::uint32_t{gid[13]} << 16U) | (std::uint32_t{gid[14]} << 8U) | gid[15];
  return number == 0 || number > kNoHost ? kNoHost : static_cast<std::uint16_t>(number - 1);
}

}  // namespace bx::sim
