// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/sim_device.h"

#include <algorithm>
#include <optional>

#include "libbx/base/check.h"
#include "sim/model/psn.h"
#include "sim/provider/host_address.h"
#include "sim/provider/sim_queue_pair.h"
#include "sim/provider/sim_queues.h"
#include "sim/provider/translate.h"

namespace bx::sim {
namespace {

// Depths and counts of the order of a ConnectX-5's, rounded; they bound what one object may take.
fabric::DeviceCaps caps_of(const Nic& nic, std::uint32_t mtu) noexcept {
  return {.message_bytes_max = nic.config().message_bytes_max,
          .cq_depth_max = 1U << 22U,
          .srq_depth_max = 1U << 15U,
          .send_depth_max = 1U << 15U,
          .sges_max = kSegmentsMax,
          .recv_sges_max = kSegmentsMax,
          .inline_max = 956,
          .mtu_max = mtu,
          .rd_atomic_max = 16,
          .atomics = true,
          .mrs_max = 1U << 20U,
          .mr_bytes_max = std::uint64_t{1} << 44U,
          .pins_memory = false};
}

// The boundary's word for an event; nothing for what it does not speak of: it has no SQD, no RTR that lasts,
// and no limit of a shared receive queue, and QPs that fail are told by completions.
std::optional<fabric::DeviceEvent> event_of(NicEventKind kind, std::uint32_t id) noexcept {
  using Kind = fabric::DeviceEventKind;
  switch (kind) {
    case NicEventKind::cq_overrun:
      return fabric::DeviceEvent{Kind::cq_overrun, id};
    case NicEventKind::qp_fatal:
    case NicEventKind::qp_request_error:
    case NicEventKind::qp_access_error:
      return fabric::DeviceEvent{Kind::qp_fatal, id};
    case NicEventKind::port_active:
      return fabric::DeviceEvent{Kind::port_active, 0};
    case NicEventKind::port_error:
      return fabric::DeviceEvent{Kind::port_error, 0};
    case NicEventKind::device_fatal:
      return fabric::DeviceEvent{Kind::device_fatal, 0};
    case NicEventKind::sq_drained:
    case NicEventKind::communication_established:
    case NicEventKind::last_wqe_reached:
    case NicEventKind::srq_limit_reached:
      break;
  }
  return std::nullopt;
}

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::operation, detail);
}

// As RcQueuePair::to_init(), bound to a port, which are counted from 0 here.
bool bring_to_init(RcQueuePair& qp, std::uint8_t port) {
  constexpr MemoryAccess kAll = MemoryAccess::local_write | MemoryAccess::remote_read |
                                MemoryAccess::remote_write | MemoryAccess::remote_atomic;
  const QpAttributes values{
      .state = QpState::init, .access = kAll, .port = static_cast<std::uint8_t>(port + 1U)};
  return qp.modify(values, QpAttr::state | QpAttr::pkey_index | QpAttr::port | QpAttr::access_flags)
      .has_value();
}

}  // namespace

SimDevice::SimDevice(const Place& place, virtual_time::VirtualReactor& reactor, std::uint32_t mtu, Prng prng)
    : nic_(*place.nic),
      nic_events_(*place.events),
      port_(place.port),
      reactor_(reactor),
      caps_(caps_of(*place.nic, mtu)),
      prng_(prng) {
  nic_events_.add(this);
}

SimDevice::~SimDevice() {
  BX_CHECK(objects_ == 0, "a device was destroyed before its queue pairs, queues and memory regions");
  nic_events_.remove(this);
}

Result<std::unique_ptr<fabric::MemoryRegion>> SimDevice::register_memory(std::span<std::byte> bytes,
                                                                         fabric::Access access) {
  if (bytes.size() > caps_.mr_bytes_max) return invalid("length of a memory region");
  const Result<MemoryKeys> keys = nic_.memory().add(bytes, translate(access));
  if (!keys) return tl::unexpected<Error>(keys.error());
  return std::make_unique<SimMr>(*this, bytes, *keys);
}

Result<std::unique_ptr<fabric::CompletionQueue>> SimDevice::create_cq(const fabric::CqConfig& config) {
  if (config.depth == 0 || config.depth > caps_.cq_depth_max) return invalid("depth of a completion queue");
  Result<std::unique_ptr<SimCq>> cq = SimCq::create(*this, config);
  if (!cq) return tl::unexpected<Error>(cq.error());
  return std::move(*cq);
}

Result<std::unique_ptr<fabric::SharedReceiveQueue>> SimDevice::create_srq(const fabric::SrqConfig& config) {
  if (config.depth == 0 || config.depth > caps_.srq_depth_max) {
    return invalid("depth of a shared receive queue");
  }
  if (config.sges_max == 0 || config.sges_max > caps_.recv_sges_max) return invalid("elements of a receive");
  const Result<sim::SharedReceiveQueue*> model = nic_.create_srq(config.depth, config.sges_max);
  if (!model) return tl::unexpected<Error>(model.error());
  return std::make_unique<SimSrq>(*this, **model);
}

Result<std::unique_ptr<fabric::QueuePair>> SimDevice::create_qp(const fabric::QpConfig& config) {
  if (config.send_cq == nullptr || config.recv_cq == nullptr || config.srq == nullptr) {
    return invalid("a queue pair needs two completion queues and a shared receive queue");
  }
  if (config.send_depth == 0 || config.send_depth > caps_.send_depth_max) return invalid("send depth");
  if (config.sges_max == 0 || config.sges_max > caps_.sges_max) return invalid("elements of a send");
  if (config.inline_max > caps_.inline_max) return invalid("inline bytes");
  const Result<RcQueuePair*> model = nic_.create_qp({
      .send_cq = &static_cast<SimCq*>(config.send_cq)->model(),
      .receive_cq = &static_cast<SimCq*>(config.recv_cq)->model(),
      .srq = &static_cast<SimSrq*>(config.srq)->model(),
      .send = {config.send_depth, config.sges_max, config.inline_max},
  });
  if (!model) return tl::unexpected<Error>(model.error());
  RcQueuePair& qp = **model;
  BX_CHECK(bring_to_init(qp, port_), "a new queue pair is in RESET");
  const std::uint32_t psn = static_cast<std::uint32_t>(prng_.next()) & kPsnMask;
  return std::make_unique<SimQueuePair>(
      *this, qp, fabric::QpAddress{gid_of(nic_.host(port_)), fabric::QpNum{qp.number()}, psn});
}

std::size_t SimDevice::poll_events(std::span<fabric::DeviceEvent> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && !events_.empty()) out[count++] = events_.pop();
  return count;
}

// Of a NIC that several hosts share: the event names a port, a queue pair or a completion queue, or it is of
// the NIC as a whole.
bool SimDevice::is_mine(NicEventKind kind, std::uint32_t id) noexcept {
  if (nic_.port_count() == 1) return true;
  switch (kind) {
    case NicEventKind::port_error:
    case NicEventKind::port_active:
      return id == port_ + 1U;
    case NicEventKind::qp_fatal:
    case NicEventKind::qp_request_error:
    case NicEventKind::qp_access_error: {
      const RcQueuePair* qp = nic_.find_qp(id);
      return qp != nullptr && qp->port() == port_;
    }
    case NicEventKind::cq_overrun:
      return std::find(cqs_.begin(), cqs_.end(), id) != cqs_.end();
    default:
      return true;
  }
}

void SimDevice::on_nic_event(NicEventKind kind, std::uint32_t id) {
  const std::optional<fabric::DeviceEvent> event = event_of(kind, id);
  if (!event || !is_mine(kind, id)) return;
  if (events_.full()) {
    events_.back() = {fabric::DeviceEventKind::device_fatal, 0};
  } else {
    events_.push(*event);
  }
  if (event_waker_ != nullptr) event_waker_->wake();
}

}  // namespace bx::sim
