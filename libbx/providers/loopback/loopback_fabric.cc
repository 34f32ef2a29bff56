// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/loopback_fabric.h"

#include <algorithm>

#include "libbx/base/check.h"

namespace bx::loopback {
namespace {

constexpr std::uint32_t kQpMask = (1U << 24U) - 1;
constexpr std::uint32_t kFirstQp = 0x11;  // low numbers belong to management queue pairs
constexpr std::size_t kEventsReserved = 1024;

// ::ffff:10.x.y.z with the host's index.
fabric::Gid gid_of(std::uint32_t index) {
  fabric::Gid gid{};
  gid[10] = gid[11] = 0xff;
  gid[12] = 10;
  gid[13] = static_cast<std::uint8_t>(index >> 16U);
  gid[14] = static_cast<std::uint8_t>(index >> 8U);
  gid[15] = static_cast<std::uint8_t>(index);
  return gid;
}

}  // namespace

LoopbackWorld::LoopbackWorld(const LoopbackConfig& config)
    : config_(config), alarms_(loop_), streams_(alarms_, config.streams), prng_(config.seed) {
  BX_CHECK(config.bytes_per_second > 0 && config.latency >= Duration{0}, "a loopback fabric needs a rate");
  loop_.reserve_more(kEventsReserved);
}

LoopbackWorld::~LoopbackWorld() {
  BX_CHECK(devices_.empty(), "a loopback fabric was destroyed before its hosts");
}

void LoopbackWorld::add_device(const fabric::Gid& gid, LoopbackDevice& device) {
  devices_.emplace(gid, &device);
}

void LoopbackWorld::remove_device(const fabric::Gid& gid) noexcept {
  devices_.erase(gid);
}

LoopbackDevice* LoopbackWorld::find_device(const fabric::Gid& gid) noexcept {
  const auto found = devices_.find(gid);
  return found == devices_.end() ? nullptr : found->second;
}

fabric::QpNum LoopbackWorld::next_qp_number() noexcept {
  return fabric::QpNum{kFirstQp + next_qp_++ % (kQpMask - kFirstQp)};
}

LoopbackFabric::LoopbackFabric(const LoopbackConfig& config) : world_(config) {}

LoopbackFabric::~LoopbackFabric() {
  for (const auto& [name, known] : hosts_) {
    BX_CHECK(known.open == nullptr, "a loopback fabric was destroyed before its hosts");
  }
}

Result<std::unique_ptr<fabric::Host>> LoopbackFabric::open_host(std::string_view host) {
  const auto& allowed = world_.config().hosts;
  if (!allowed.empty() && std::ranges::find(allowed, host) == allowed.end()) {
    return fail(ErrorCode::unreachable, ErrorScope::operation, "no such host in this fabric");
  }
  auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    const auto index = static_cast<std::uint32_t>(hosts_.size()) + 1;
    found = hosts_.emplace(std::string(host), Known{gid_of(index), 0, nullptr}).first;
  }
  Known& known = found->second;
  if (known.open != nullptr) {
    return fail(ErrorCode::exhausted, ErrorScope::operation, "the host is already open");
  }
  const std::string stream = std::string(host) + '#' + std::to_string(known.openings++);
  auto opened = std::make_unique<LoopbackHost>(*this, host, known.gid, world_.prng().fork(stream));
  known.open = opened.get();
  return opened;
}

LoopbackHost& LoopbackFabric::opened(std::string_view host) noexcept {
  const auto found = hosts_.find(host);
  BX_CHECK(found != hosts_.end() && found->second.open != nullptr, "the host is not open");
  return *found->second.open;
}

void LoopbackFabric::set_port(std::string_view host, PortState state) noexcept {
  opened(host).loopback_device().set_port(state);
}

void LoopbackFabric::fail_device(std::string_view host) noexcept {
  opened(host).loopback_device().fail_device();
}

LoopbackHost::LoopbackHost(LoopbackFabric& fabric, std::string_view name, const fabric::Gid& gid, Prng prng)
    : fabric_(fabric),
      name_(name),
      prng_(prng),
      reactor_(fabric.world_.alarms(),
               virtual_time::HostCpu(fabric.world_.config().cpu, fabric.world_.config().wait)),
      device_(fabric.world_, reactor_, gid, prng.fork("device")),
      streams_(fabric.world_.streams(), reactor_, name) {}

LoopbackHost::~LoopbackHost() {
  fabric_.hosts_.find(name_)->second.open = nullptr;
}

}  // namespace bx::loopback
