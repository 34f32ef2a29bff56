// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/device_list.h"

#include <cerrno>
#include <cstring>
#include <span>

namespace bx::verbs {
namespace {

constexpr std::size_t kGidsMax = 1024;

struct FreeList {
  void operator()(ibv_device** list) const noexcept { ::ibv_free_device_list(list); }
};

GidType type_of(std::uint32_t type) noexcept {
  if (type == IBV_GID_TYPE_ROCE_V2) return GidType::roce_v2;
  return type == IBV_GID_TYPE_ROCE_V1 ? GidType::roce_v1 : GidType::infiniband;
}

tl::unexpected<Error> none(const char* detail, int error = 0) {
  return fail(ErrorCode::unreachable, ErrorScope::device, detail, error);
}

}  // namespace

std::vector<GidEntry> gids_of(ibv_context* device, std::uint8_t port) {
  std::vector<ibv_gid_entry> raw(kGidsMax);
  const ssize_t count = ::ibv_query_gid_table(device, raw.data(), raw.size(), 0);
  std::vector<GidEntry> gids;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = raw[static_cast<std::size_t>(i)];
    if (entry.port_num != port) continue;
    GidEntry& gid =
        gids.emplace_back(GidEntry{.gid = {}, .index = entry.gid_index, .type = type_of(entry.gid_type)});
    std::memcpy(gid.gid.data(), entry.gid.raw, gid.gid.size());
  }
  return gids;
}

bool is_soft_roce(const ibv_device_attr& attributes) noexcept {
  constexpr std::uint32_t kRxeVendor = 0xffffff;  // RXE_VENDOR_ID of Linux' drivers/infiniband/sw/rxe
  return attributes.vendor_id == kRxeVendor;
}

Result<DevicePort> find_port(const std::string& name, const fabric::Gid& address) {
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(::ibv_get_device_list(&count));
  if (list == nullptr || count == 0) {
    return none(
        "this machine has no RDMA device: load its driver, or make a software one (rdma link add rxe0 type "
        "rxe netdev "
        "eth0), or use scripts/rxe",
        errno);
  }
  bool named = false;
  bool down = false;
  for (ibv_device* one : std::span(list.get(), static_cast<std::size_t>(count))) {
    if (!name.empty() && name != ::ibv_get_device_name(one)) continue;
    named = true;
    DeviceHandle device(::ibv_open_device(one));
    ibv_device_attr attributes{};
    if (device == nullptr || ::ibv_query_device(device.get(), &attributes) != 0) continue;
    for (std::uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
      const auto gid = choose_gid(gids_of(device.get(), port), &address);
      if (!gid) continue;
      ibv_port_attr state{};
      if (::ibv_query_port(device.get(), port, &state) == 0 && state.state == IBV_PORT_ACTIVE) {
        return DevicePort{.device = std::move(device), .port = port, .gid = *gid};
      }
      down = true;
    }
  }
  if (down) return none("the port with the host's address is down: set its network interface up");
  if (!named) return none("there is no RDMA device of that name: `rdma link` lists them");
  return none(
      "no RDMA device has the host's address as a GID: compare `ip addr` with `rdma link` and the host's "
      "entry");
}

}  // namespace bx::verbs
