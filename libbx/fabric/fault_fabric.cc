// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/fault_fabric.h"

#include "libbx/base/check.h"
#include "libbx/fabric/fault_queues.h"

namespace bx::fabric {
namespace {

class FaultDevice final : public DeviceDecorator {
 public:
  FaultDevice(Device& made, FaultInjector& injector, Reactor& reactor)
      : DeviceDecorator(made), injector_(injector), reactor_(reactor) {}
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> bytes, Access access) override {
    if (injector_.strikes(FaultKind::creation_refused)) return refused();
    return DeviceDecorator::register_memory(bytes, access);
  }
  Result<std::unique_ptr<CompletionQueue>> create_cq(const CqConfig& config) override {
    if (injector_.strikes(FaultKind::creation_refused)) return refused();
    return DeviceDecorator::create_cq(config);
  }
  Result<std::unique_ptr<SharedReceiveQueue>> create_srq(const SrqConfig& config) override {
    if (injector_.strikes(FaultKind::creation_refused)) return refused();
    return DeviceDecorator::create_srq(config);
  }
  Result<std::unique_ptr<QueuePair>> create_qp(const QpConfig& config) override {
    if (injector_.strikes(FaultKind::creation_refused)) return refused();
    return DeviceDecorator::create_qp(config);
  }

 protected:
  std::unique_ptr<CqDecorator> decorate_cq(const CqConfig& config) override {
    return std::make_unique<FaultCq>(injector_, qps_, reactor_, config.waker);
  }
  std::unique_ptr<QpDecorator> decorate_qp(std::unique_ptr<QueuePair> made, const QpConfig&) override {
    return std::make_unique<FaultQp>(std::move(made), injector_, qps_);
  }

 private:
  static tl::unexpected<Error> refused() {
    return bx::fail(ErrorCode::exhausted, ErrorScope::operation, "refused by an injected fault");
  }

  FaultInjector& injector_;
  Reactor& reactor_;
  FaultQps qps_;
};

class FaultHost final : public HostDecorator {
 public:
  FaultHost(std::unique_ptr<Host> opened, const FaultPlan& plan,
            std::array<std::uint64_t, kFaultKinds>& injected)
      : HostDecorator(std::move(opened)),
        injector_(plan, name(), injected),
        device_(inner().device(), injector_, reactor()) {}
  Device& device() noexcept override { return device_; }

 private:
  FaultInjector injector_;
  FaultDevice device_;
};

}  // namespace

FaultFabric::FaultFabric(std::unique_ptr<Fabric> inner, FaultPlan plan)
    : FabricDecorator(std::move(inner)), plan_(std::move(plan)) {
  BX_CHECK(Duration{0} <= plan_.delay_min && plan_.delay_min <= plan_.delay_max, "delays of a fault plan");
}

std::unique_ptr<Host> FaultFabric::decorate_host(std::unique_ptr<Host> inner) {
  return std::make_unique<FaultHost>(std::move(inner), plan_, injected_);
}

}  // namespace bx::fabric
