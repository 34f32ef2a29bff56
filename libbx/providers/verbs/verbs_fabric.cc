// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/verbs_fabric.h"

#include <algorithm>

#include "libbx/base/check.h"
#include "libbx/providers/native/native_reactor.h"
#include "libbx/providers/native/socket_address.h"
#include "libbx/providers/verbs/device_list.h"
#include "libbx/providers/verbs/verbs_device.h"

namespace bx::verbs {
namespace {

class VerbsHost final : public fabric::Host {
 public:
  VerbsHost(native::NativeLoop& loop, const native::HostTable& hosts, const native::HostEntry& entry,
            std::vector<std::string>& open_hosts, Prng prng)
      : name_(entry.name),
        open_hosts_(open_hosts),
        reactor_(loop),
        streams_(loop, reactor_, hosts, entry.address),
        prng_(prng) {
    open_hosts_.push_back(name_);
  }
  ~VerbsHost() override { std::erase(open_hosts_, name_); }
  VerbsHost(const VerbsHost&) = delete;
  VerbsHost& operator=(const VerbsHost&) = delete;
  Result<> open(native::NativeLoop& loop, DevicePort port, std::uint8_t service_level) {
    auto device = VerbsDevice::open(loop, std::move(port), service_level, prng_.fork("device"));
    if (!device) return tl::unexpected<Error>(device.error());
    device_ = std::move(*device);
    return {};
  }

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  fabric::Reactor& reactor() noexcept override { return reactor_; }
  fabric::Device& device() noexcept override { return *device_; }
  fabric::StreamNetwork& streams() noexcept override { return streams_; }
  Prng& prng() noexcept override { return prng_; }

 private:
  std::string name_;
  std::vector<std::string>& open_hosts_;
  native::NativeReactor reactor_;
  native::TcpStreams streams_;
  std::unique_ptr<VerbsDevice> device_;
  Prng prng_;
};

}  // namespace

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::create(const VerbsConfig& config) {
  auto loop = native::NativeLoop::create(config.wait);
  if (!loop) return tl::unexpected<Error>(loop.error());
  return std::unique_ptr<VerbsFabric>(new VerbsFabric(config, std::move(*loop)));
}

VerbsFabric::VerbsFabric(const VerbsConfig& config, std::unique_ptr<native::NativeLoop> loop)
    : config_(config), hosts_(config.hosts), prng_(config.seed), loop_(std::move(loop)) {}

VerbsFabric::~VerbsFabric() {
  BX_CHECK(open_.empty(), "a fabric was destroyed before its hosts");
}

Result<std::unique_ptr<fabric::Host>> VerbsFabric::open_host(std::string_view host) {
  const native::HostEntry* entry = hosts_.find(host);
  const auto address = entry != nullptr ? native::SocketAddress::parse(entry->address) : std::nullopt;
  if (!address) {
    return fail(ErrorCode::unreachable, ErrorScope::device,
                "the fabric's table has no host of that name with an IPv4 or IPv6 address");
  }
  if (std::ranges::find(open_, host) != open_.end()) {
    return fail(ErrorCode::exhausted, ErrorScope::device, "the host is open already");
  }
  auto port = find_port(config_.device, address->gid());
  if (!port) return tl::unexpected<Error>(port.error());
  auto made = std::make_unique<VerbsHost>(*loop_, hosts_, *entry, open_, prng_.fork(host));
  if (auto opened = made->open(*loop_, std::move(*port), config_.service_level); !opened) {
    return tl::unexpected<Error>(opened.error());
  }
  return made;
}

}  // namespace bx::verbs
