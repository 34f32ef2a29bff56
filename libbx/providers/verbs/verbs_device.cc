// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/verbs_device.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "libbx/base/check.h"
#include "libbx/providers/verbs/fork_safety.h"
#include "libbx/providers/verbs/verbs_queue_pair.h"
#include "libbx/providers/verbs/verbs_queues.h"
#include "libbx/providers/verbs/verbs_values.h"

namespace bx::verbs {
namespace {

using fabric::DeviceEventKind;

constexpr std::uint32_t kPsnMask = (1U << 24U) - 1;
constexpr std::uint32_t kElementsMax = 16;  // of one request; devices offer more, the library needs fewer

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::operation, detail);
}

tl::unexpected<Error> refused(const char* detail, int error) {
  const bool exhausted = error == ENOMEM || error == EMFILE || error == ENOSPC;
  return fail(exhausted ? ErrorCode::exhausted : ErrorCode::device, ErrorScope::device, detail, error);
}

bool set_nonblocking(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

std::uint32_t positive(int value) noexcept {
  return static_cast<std::uint32_t>(std::max(value, 0));
}

}  // namespace

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::open(native::NativeLoop& loop, DevicePort port,
                                                       std::uint8_t service_level, Prng prng) {
  std::unique_ptr<VerbsDevice> device(new VerbsDevice(loop, std::move(port), service_level, prng));
  if (auto started = device->start(); !started) return tl::unexpected<Error>(started.error());
  return device;
}

VerbsDevice::VerbsDevice(native::NativeLoop& loop, DevicePort port, std::uint8_t service_level, Prng prng)
    : loop_(loop), port_(std::move(port)), prng_(prng), service_level_(service_level) {}

VerbsDevice::~VerbsDevice() {
  BX_CHECK(objects_ == 0, "a device was destroyed before its queue pairs, queues and memory regions");
  if (channel_ != nullptr) {
    loop_.forget(channel_->fd, completion_listener_);
    loop_.forget(port_.device->async_fd, async_listener_);
  }
}

Result<> VerbsDevice::start() {
  protect_from_fork();
  pd_.reset(::ibv_alloc_pd(port_.device.get()));
  if (pd_ == nullptr) return refused("no protection domain", errno);
  if (auto found = find_caps(); !found) return found;
  channel_.reset(::ibv_create_comp_channel(port_.device.get()));
  if (channel_ == nullptr) return refused("no completion channel", errno);
  const bool watched = set_nonblocking(channel_->fd) && set_nonblocking(port_.device->async_fd) &&
                       loop_.watch(channel_->fd, completion_listener_) &&
                       loop_.watch(port_.device->async_fd, async_listener_);
  return watched ? Result<>{} : refused("the device's file descriptors cannot be watched", errno);
}

Result<> VerbsDevice::find_caps() {
  ibv_device_attr device{};
  ibv_port_attr port{};
  if (::ibv_query_device(port_.device.get(), &device) != 0 ||
      ::ibv_query_port(port_.device.get(), port_.port, &port) != 0) {
    return refused("the device does not say what it can do", errno);
  }
  soft_roce_ = is_soft_roce(device);
  caps_ = {.message_bytes_max = port.max_msg_sz,
           .cq_depth_max = positive(device.max_cqe),
           .srq_depth_max = positive(device.max_srq_wr),
           .send_depth_max = positive(device.max_qp_wr),
           .sges_max = std::min(positive(device.max_sge), kElementsMax),
           .recv_sges_max = std::min(positive(device.max_srq_sge), kElementsMax),
           .inline_max = 0,
           .mtu_max = bytes_of(port.active_mtu),
           .rd_atomic_max = positive(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom)),
           .atomics = device.atomic_cap != IBV_ATOMIC_NONE,
           .mrs_max = positive(device.max_mr),
           .mr_bytes_max = device.max_mr_size,
           .pins_memory = true};
  if (caps_.srq_depth_max == 0) return refused("the device has no shared receive queues", ENOTSUP);
  caps_.inline_max = largest_inline();
  return {};
}

// Devices do not say how much they inline: what a queue pair that asks for so much is given.
std::uint32_t VerbsDevice::largest_inline() noexcept {
  const Handle<ibv_cq> cq(::ibv_create_cq(port_.device.get(), 1, nullptr, nullptr, 0));
  if (cq == nullptr) return 0;
  for (const std::uint32_t bytes : {1024U, 512U, 256U, 220U, 128U, 64U, 32U}) {
    ibv_qp_init_attr wish{};
    wish.send_cq = wish.recv_cq = cq.get();
    wish.cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = bytes};
    wish.qp_type = IBV_QPT_RC;
    const Handle<ibv_qp> qp(::ibv_create_qp(pd_.get(), &wish));
    if (qp != nullptr) return bytes;
  }
  return 0;
}

Result<std::unique_ptr<fabric::MemoryRegion>> VerbsDevice::register_memory(std::span<std::byte> bytes,
                                                                           fabric::Access access) {
  if (bytes.empty()) return invalid("an empty memory region");
  Handle<ibv_mr> mr(::ibv_reg_mr(pd_.get(), bytes.data(), bytes.size(), to_ibv(access)));
  if (mr == nullptr) {
    const int error = errno;
    return refused(error == ENOMEM
                       ? "memory could not be registered: raise the memory lock limit (ulimit -l, "
                         "LimitMEMLOCK= of the service, or memlock in /etc/security/limits.conf)"
                       : "memory could not be registered",
                   error);
  }
  return std::make_unique<VerbsMr>(*this, std::move(mr), bytes);
}

Result<std::unique_ptr<fabric::CompletionQueue>> VerbsDevice::create_cq(const fabric::CqConfig& config) {
  if (config.depth == 0 || config.depth > caps_.cq_depth_max) return invalid("depth of a completion queue");
  auto cq = std::make_unique<VerbsCq>(*this, config.waker);
  if (!cq->create(config.depth)) return refused("no completion queue of that depth", errno);
  return cq;
}

Result<std::unique_ptr<fabric::SharedReceiveQueue>> VerbsDevice::create_srq(const fabric::SrqConfig& config) {
  if (config.depth == 0 || config.depth > caps_.srq_depth_max) {
    return invalid("depth of a shared receive queue");
  }
  if (config.sges_max == 0 || config.sges_max > caps_.recv_sges_max) return invalid("elements of a receive");
  ibv_srq_init_attr wish{.srq_context = nullptr,
                         .attr = {.max_wr = config.depth, .max_sge = config.sges_max, .srq_limit = 0}};
  Handle<ibv_srq> srq(::ibv_create_srq(pd_.get(), &wish));
  if (srq == nullptr) return refused("no shared receive queue of that depth", errno);
  return std::make_unique<VerbsSrq>(*this, std::move(srq), config);
}

Result<std::unique_ptr<fabric::QueuePair>> VerbsDevice::create_qp(const fabric::QpConfig& config) {
  if (config.send_cq == nullptr || config.recv_cq == nullptr || config.srq == nullptr) {
    return invalid("a queue pair needs two completion queues and a shared receive queue");
  }
  if (config.send_depth == 0 || config.send_depth > caps_.send_depth_max) return invalid("send depth");
  if (config.sges_max == 0 || config.sges_max > caps_.sges_max) return invalid("elements of a send");
  if (config.inline_max > caps_.inline_max) return invalid("inline bytes");
  ibv_qp_init_attr wish{};
  wish.send_cq = static_cast<VerbsCq*>(config.send_cq)->get();
  wish.recv_cq = static_cast<VerbsCq*>(config.recv_cq)->get();
  wish.srq = static_cast<VerbsSrq*>(config.srq)->get();
  wish.cap.max_send_wr = config.send_depth;
  wish.cap.max_send_sge = config.sges_max;
  wish.cap.max_inline_data = config.inline_max;
  wish.qp_type = IBV_QPT_RC;
  Handle<ibv_qp> qp(::ibv_create_qp(pd_.get(), &wish));
  if (qp == nullptr) return refused("no queue pair of that size", errno);
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = port_.port;
  init.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  if (caps_.atomics) init.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (const int error = ::ibv_modify_qp(qp.get(), &init, kMask); error != 0) {
    return refused("the queue pair could not be initialised", error);
  }
  return std::make_unique<VerbsQueuePair>(*this, std::move(qp), config);
}

std::uint32_t VerbsDevice::random_psn() noexcept {
  return static_cast<std::uint32_t>(prng_.next()) & kPsnMask;
}

std::size_t VerbsDevice::poll_events(std::span<fabric::DeviceEvent> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && !events_.empty()) out[count++] = events_.pop();
  return count;
}

std::size_t VerbsDevice::take_refused(const VerbsCq& cq, std::span<fabric::Completion> out) noexcept {
  std::size_t count = 0;
  for (VerbsQueuePair* qp : queue_pairs_) {
    if (qp->has_refused() && qp->sends_complete_in(cq)) count += qp->take_refused(out.subspan(count));
  }
  return count;
}

void VerbsDevice::raise(DeviceEventKind kind, std::uint32_t id) noexcept {
  if (events_.full()) {
    events_.back() = {DeviceEventKind::device_fatal, 0};
  } else {
    events_.push({kind, id});
  }
  if (event_waker_ != nullptr) event_waker_->wake();
}

void VerbsDevice::cq_overrun(VerbsCq& cq) noexcept {
  raise(DeviceEventKind::cq_overrun, cq.id());
  for (VerbsQueuePair* qp : queue_pairs_) {
    if (!qp->uses(cq)) continue;
    raise(DeviceEventKind::qp_fatal, static_cast<std::uint32_t>(qp->address().qp));
    qp->fail();
  }
}

// An event says only that a queue asked for an interrupt has something; the loop looks at the armed ones
// anyway.
void VerbsDevice::on_completion_events() noexcept {
  ibv_cq* cq = nullptr;
  void* owner = nullptr;
  while (::ibv_get_cq_event(channel_.get(), &cq, &owner) == 0) static_cast<VerbsCq*>(owner)->on_interrupt();
}

void VerbsDevice::on_async_events() noexcept {
  ibv_async_event event{};
  while (::ibv_get_async_event(port_.device.get(), &event) == 0) {
    const auto kind = event_kind_of(event.event_type);
    if (kind == DeviceEventKind::cq_overrun) {
      static_cast<VerbsCq*>(event.element.cq->cq_context)->on_overrun();
    } else if (kind == DeviceEventKind::qp_fatal) {
      raise(*kind, event.element.qp->qp_num);
    } else if (kind == DeviceEventKind::device_fatal) {
      raise(*kind, 0);
    } else if (kind && event.element.port_num == port_.port) {
      raise(*kind, 0);
    }
    ::ibv_ack_async_event(&event);
  }
}

}  // namespace bx::verbs
