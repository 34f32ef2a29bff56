// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/loopback_device.h"

#include "libbx/base/check.h"
#include "libbx/providers/loopback/loopback_fabric.h"
#include "libbx/providers/loopback/loopback_queue_pair.h"
#include "libbx/providers/loopback/loopback_queues.h"

namespace bx::loopback {
namespace {

using fabric::DeviceEventKind;

constexpr std::uint32_t kPsnMask = (1U << 24U) - 1;

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::operation, detail);
}

tl::unexpected<Error> gone() {
  return fail(ErrorCode::device, ErrorScope::device, "the device has failed");
}

}  // namespace

LoopbackDevice::LoopbackDevice(LoopbackWorld& world, virtual_time::VirtualReactor& reactor,
                               const fabric::Gid& gid, Prng prng)
    : world_(world),
      reactor_(reactor),
      gid_(gid),
      prng_(prng),
      memory_(prng.fork("keys")),
      transmitter_(world.config().bytes_per_second),
      event_alarm_(world.alarms(), &LoopbackDevice::on_event_wake, this) {
  world_.add_device(gid_, *this);
}

LoopbackDevice::~LoopbackDevice() {
  BX_CHECK(objects_ == 0, "a device was destroyed before its queue pairs, queues and memory regions");
  world_.remove_device(gid_);
}

const fabric::DeviceCaps& LoopbackDevice::caps() const noexcept {
  return world_.config().caps;
}

Result<std::unique_ptr<fabric::MemoryRegion>> LoopbackDevice::register_memory(std::span<std::byte> bytes,
                                                                              fabric::Access access) {
  if (failed_) return gone();
  if (bytes.size() > caps().mr_bytes_max) return invalid("length of a memory region");
  if (memory_.live() >= caps().mrs_max) {
    return fail(ErrorCode::exhausted, ErrorScope::device, "memory regions of the device");
  }
  const Result<MemoryTable::Keys> keys = memory_.add(bytes, access);
  if (!keys) return tl::unexpected<Error>(keys.error());
  return std::make_unique<LoopbackMr>(*this, bytes, *keys);
}

Result<std::unique_ptr<fabric::CompletionQueue>> LoopbackDevice::create_cq(const fabric::CqConfig& config) {
  if (failed_) return gone();
  if (config.depth == 0 || config.depth > caps().cq_depth_max) return invalid("depth of a completion queue");
  return std::make_unique<LoopbackCq>(*this, config, next_cq_++);
}

Result<std::unique_ptr<fabric::SharedReceiveQueue>> LoopbackDevice::create_srq(
    const fabric::SrqConfig& config) {
  if (failed_) return gone();
  if (config.depth == 0 || config.depth > caps().srq_depth_max) {
    return invalid("depth of a shared receive queue");
  }
  if (config.sges_max == 0 || config.sges_max > caps().recv_sges_max) return invalid("elements of a receive");
  return std::make_unique<LoopbackSrq>(*this, config);
}

Result<std::unique_ptr<fabric::QueuePair>> LoopbackDevice::create_qp(const fabric::QpConfig& config) {
  if (failed_) return gone();
  if (config.send_cq == nullptr || config.recv_cq == nullptr || config.srq == nullptr) {
    return invalid("a queue pair needs two completion queues and a shared receive queue");
  }
  if (config.send_depth == 0 || config.send_depth > caps().send_depth_max) return invalid("send depth");
  if (config.sges_max == 0 || config.sges_max > caps().sges_max) return invalid("elements of a send");
  if (config.inline_max > caps().inline_max) return invalid("inline bytes");
  const auto psn = static_cast<std::uint32_t>(prng_.next()) & kPsnMask;
  world_.loop().reserve_more(LoopbackQueuePair::kEventsMax);
  return std::make_unique<LoopbackQueuePair>(*this, config,
                                             fabric::QpAddress{gid_, world_.next_qp_number(), psn});
}

std::size_t LoopbackDevice::poll_events(std::span<fabric::DeviceEvent> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && !events_.empty()) out[count++] = events_.pop();
  return count;
}

void LoopbackDevice::set_port(PortState state) noexcept {
  if (port_ == state) return;
  port_ = state;
  raise(state == PortState::up ? DeviceEventKind::port_active : DeviceEventKind::port_error, 0);
}

void LoopbackDevice::fail_device() noexcept {
  if (failed_) return;
  failed_ = true;
  raise(DeviceEventKind::device_fatal, 0);
  for (const auto& [number, qp] : qps_) qp->fail();
}

LoopbackQueuePair* LoopbackDevice::find_qp(fabric::QpNum number) noexcept {
  const auto found = qps_.find(number);
  return found == qps_.end() ? nullptr : found->second;
}

void LoopbackDevice::add_qp(fabric::QpNum number, LoopbackQueuePair& qp) {
  qps_.emplace(number, &qp);
  ++objects_;
}

void LoopbackDevice::remove_qp(fabric::QpNum number) noexcept {
  qps_.erase(number);
  --objects_;
}

void LoopbackDevice::cq_overrun(LoopbackCq& cq) noexcept {
  raise(DeviceEventKind::cq_overrun, cq.id());
  for (const auto& [number, qp] : qps_) {
    if (!qp->uses(cq)) continue;
    raise(DeviceEventKind::qp_fatal, static_cast<std::uint32_t>(number));
    qp->fail();
  }
}

void LoopbackDevice::raise(DeviceEventKind kind, std::uint32_t id) noexcept {
  if (events_.full()) {
    events_.back() = {DeviceEventKind::device_fatal, 0};
  } else {
    events_.push({kind, id});
  }
  ++events_unannounced_;
  event_alarm_.arm(reactor_.now());
}

void LoopbackDevice::record(const fabric::Completion& completion) noexcept {
  Digest& digest = world_.digest();
  digest.add(static_cast<std::uint64_t>(reactor_.now().time_since_epoch().count()));
  digest.add(static_cast<std::uint64_t>(completion.qp));
  digest.add(static_cast<std::uint64_t>(completion.wr_id));
  digest.add(static_cast<std::uint64_t>(completion.opcode) << 8U |
             static_cast<std::uint64_t>(completion.status));
  digest.add(completion.byte_len);
}

void LoopbackDevice::on_event_wake(void* opaque) {
  auto& device = *static_cast<LoopbackDevice*>(opaque);
  for (; device.events_unannounced_ > 0; --device.events_unannounced_) {
    if (device.event_waker_ != nullptr) device.event_waker_->wake();
  }
}

}  // namespace bx::loopback
