// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/gid_choice.h"

#include <algorithm>

namespace bx::verbs {
namespace {

int rank(const GidEntry& entry) noexcept {
  if (entry.type != GidType::roce_v2) return 0;
  switch (address_kind(entry.gid)) {
    case GidAddress::ipv4:
      return 2;
    case GidAddress::ipv6_global:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

GidAddress address_kind(const fabric::Gid& gid) noexcept {
  const auto zero = [](std::uint8_t byte) { return byte == 0; };
  if (std::ranges::all_of(gid, zero)) return GidAddress::none;
  const bool mapped = std::all_of(gid.begin(), gid.begin() + 10, zero) && gid[10] == 0xff && gid[11] == 0xff;
  if (mapped) return GidAddress::ipv4;
  if (gid[0] == 0xfe && (gid[1] & 0xc0U) == 0x80) return GidAddress::ipv6_link_local;
  return GidAddress::ipv6_global;
}

Result<GidEntry> choose_gid(std::span<const GidEntry> table, const fabric::Gid* wanted) noexcept {
  const GidEntry* best = nullptr;
  bool any = false;
  for (const GidEntry& entry : table) {
    if (address_kind(entry.gid) == GidAddress::none) continue;
    any = true;
    if (wanted != nullptr) {
      // The same address stands there once for each version of RoCE.
      if (entry.gid == *wanted && (best == nullptr || entry.type > best->type)) best = &entry;
    } else if (rank(entry) > (best != nullptr ? rank(*best) : 0)) {
      best = &entry;
    }
  }
  if (best != nullptr) return *best;
  const auto none = [](const char* detail) {
    return fail(ErrorCode::unreachable, ErrorScope::device, detail);
  };
  if (!any) {
    return none(
        "the port's GID table is empty: give its network interface an address (in a container: share the "
        "host's "
        "network, or set up the device's GIDs in it)");
  }
  if (wanted != nullptr) {
    return none(
        "no GID of the port is the host's address: compare `ip addr` with `rdma link` and the host's entry");
  }
  return none("no RoCE v2 GID with an IPv4 or global IPv6 address: give the port's network interface one");
}

}  // namespace bx::verbs
