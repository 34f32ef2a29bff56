// SPDX-License-Identifier: BSD-3-Clause
// The RDMA devices of this machine: opening one, reading its GIDs.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

#include "libbx/base/result.h"
#include "libbx/providers/verbs/gid_choice.h"

namespace bx::verbs {

struct CloseDevice {
  void operator()(ibv_context* context) const noexcept { ::ibv_close_device(context); }
};
using DeviceHandle = std::unique_ptr<ibv_context, CloseDevice>;

struct DevicePort {
  DeviceHandle device;
  std::uint8_t port = 1;
  GidEntry gid{};
};

std::vector<GidEntry> gids_of(ibv_context* device, std::uint8_t port);
// SoftRoCE differs from NICs in some values (see docs/verbs.md).
bool is_soft_roce(const ibv_device_attr& attributes) noexcept;

// The port with the GID of `address`; of the device called `name`, unless that is empty. Errors: unreachable,
// with what to do: no device at all, none of that name, none with that address, port down.
Result<DevicePort> find_port(const std::string& name, const fabric::Gid& address);

}  // namespace bx::verbs
