// SPDX-License-Identifier: BSD-3-Clause
// Which entry of a port's GID table a host uses. The index of an entry says nothing: it differs from host to
// host and changes with each address. What counts is the type (RoCE v2 before v1) and the address.
//
// Order: the entry of the address asked for; else RoCE v2 over IPv4, then over a global or unique-local IPv6
// address; link-local addresses and RoCE v1 only if asked for by address.
#pragma once

#include <cstdint>
#include <span>

#include "libbx/base/result.h"
#include "libbx/fabric/types.h"

namespace bx::verbs {

enum class GidType : std::uint8_t { infiniband, roce_v1, roce_v2 };

struct GidEntry {
  fabric::Gid gid{};
  std::uint32_t index = 0;
  GidType type = GidType::roce_v2;
};

enum class GidAddress : std::uint8_t { none, ipv4, ipv6_global, ipv6_link_local };
GidAddress address_kind(const fabric::Gid& gid) noexcept;

// `wanted` may be null: the best there is. Errors: unreachable, with what is missing: no entry at all (no
// address on the network interface, or a container without the table), none of RoCE v2, none with that
// address.
Result<GidEntry> choose_gid(std::span<const GidEntry> table, const fabric::Gid* wanted) noexcept;

}  // namespace bx::verbs
