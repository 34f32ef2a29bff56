// SPDX-License-Identifier: BSD-3-Clause
// Between libibverbs' values and ours.
#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "libbx/fabric/device.h"

namespace bx::verbs {

static_assert(sizeof(fabric::Sge) == sizeof(ibv_sge) &&
              offsetof(fabric::Sge, addr) == offsetof(ibv_sge, addr) &&
              offsetof(fabric::Sge, length) == offsetof(ibv_sge, length) &&
              offsetof(fabric::Sge, lkey) == offsetof(ibv_sge, lkey));

inline ibv_sge* as_ibv(std::span<const fabric::Sge> sges) noexcept {
  // The library does not write through it; its type lacks a const.
  return reinterpret_cast<ibv_sge*>(const_cast<fabric::Sge*>(sges.data()));
}

fabric::WcStatus status_of(ibv_wc_status status) noexcept;
fabric::WcOpcode opcode_of(ibv_wc_opcode opcode) noexcept;
ibv_wr_opcode to_ibv(fabric::Opcode opcode) noexcept;
unsigned to_ibv(fabric::SendFlags flags) noexcept;
int to_ibv(fabric::Access access) noexcept;
ibv_mtu mtu_of(std::uint32_t bytes) noexcept;  // of a path MTU that there is
std::uint32_t bytes_of(ibv_mtu mtu) noexcept;
// Nothing for events that the boundary does not know.
std::optional<fabric::DeviceEventKind> event_kind_of(ibv_event_type type) noexcept;

}  // namespace bx::verbs
