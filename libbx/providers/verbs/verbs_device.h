// SPDX-License-Identifier: BSD-3-Clause
// fabric::Device over one port of an RDMA device. It owns the protection domain, the completion channel and
// the asynchronous events, and finds the owner of each completion.
//
//   VerbsDevice --makes--> VerbsMr, VerbsCq, VerbsSrq, VerbsQueuePair (each counted: destroying it first is a
//   checked error)
//        | watches two file descriptors of the loop: completion channel, asynchronous events
//
// Differences of SoftRoCE that are hidden here: it takes retry_cnt 7 for "for ever", so 7 becomes 6.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "libbx/base/prng.h"
#include "libbx/base/ring.h"
#include "libbx/fabric/device.h"
#include "libbx/providers/native/native_loop.h"
#include "libbx/providers/native/native_reactor.h"
#include "libbx/providers/verbs/device_list.h"
#include "libbx/providers/verbs/owner_table.h"

namespace bx::verbs {

class VerbsCq;
class VerbsQueuePair;
class VerbsSrq;

// Deleters of libibverbs' objects.
struct Release {
  void operator()(ibv_pd* pd) const noexcept { ::ibv_dealloc_pd(pd); }
  void operator()(ibv_comp_channel* channel) const noexcept { ::ibv_destroy_comp_channel(channel); }
  void operator()(ibv_mr* mr) const noexcept { ::ibv_dereg_mr(mr); }
  void operator()(ibv_cq* cq) const noexcept { ::ibv_destroy_cq(cq); }
  void operator()(ibv_srq* srq) const noexcept { ::ibv_destroy_srq(srq); }
  void operator()(ibv_qp* qp) const noexcept { ::ibv_destroy_qp(qp); }
};
template <class T>
using Handle = std::unique_ptr<T, Release>;

class VerbsDevice final : public fabric::Device {
 public:
  // Events that wait for poll_events; when that many wait, the newest is replaced by device_fatal.
  static constexpr std::size_t kEventsMax = 4096;

  // Takes the port over. Errors: device, exhausted.
  static Result<std::unique_ptr<VerbsDevice>> open(native::NativeLoop& loop, DevicePort port,
                                                   std::uint8_t service_level, Prng prng);
  ~VerbsDevice() override;
  VerbsDevice(const VerbsDevice&) = delete;
  VerbsDevice& operator=(const VerbsDevice&) = delete;

  [[nodiscard]] const fabric::DeviceCaps& caps() const noexcept override { return caps_; }
  // Errors also: exhausted, with the memory lock limit and its remedy in the text if that is what is short.
  Result<std::unique_ptr<fabric::MemoryRegion>> register_memory(std::span<std::byte> bytes,
                                                                fabric::Access access) override;
  Result<std::unique_ptr<fabric::CompletionQueue>> create_cq(const fabric::CqConfig& config) override;
  Result<std::unique_ptr<fabric::SharedReceiveQueue>> create_srq(const fabric::SrqConfig& config) override;
  Result<std::unique_ptr<fabric::QueuePair>> create_qp(const fabric::QpConfig& config) override;
  std::size_t poll_events(std::span<fabric::DeviceEvent> out) noexcept override;
  void set_event_waker(fabric::Waker* waker) noexcept override { event_waker_ = waker; }

  // For the objects of the device.
  [[nodiscard]] native::NativeLoop& loop() noexcept { return loop_; }
  [[nodiscard]] const DevicePort& port() const noexcept { return port_; }
  [[nodiscard]] ibv_pd* pd() const noexcept { return pd_.get(); }
  [[nodiscard]] ibv_comp_channel* channel() const noexcept { return channel_.get(); }
  [[nodiscard]] bool soft_roce() const noexcept { return soft_roce_; }
  [[nodiscard]] std::uint8_t service_level() const noexcept { return service_level_; }
  [[nodiscard]] OwnerTable& owners() noexcept { return owners_; }
  [[nodiscard]] std::uint32_t random_psn() noexcept;
  void add_object() noexcept { ++objects_; }
  void remove_object() noexcept { --objects_; }
  void add(VerbsQueuePair& qp) { queue_pairs_.push_back(&qp); }
  void remove(VerbsQueuePair& qp) noexcept { std::erase(queue_pairs_, &qp); }
  // Queue pairs with requests that the device never saw (verbs_queue_pair.h): rarely any.
  void add_refused() noexcept { ++refused_; }
  void remove_refused() noexcept { --refused_; }
  [[nodiscard]] bool any_refused() const noexcept { return refused_ > 0; }
  std::size_t take_refused(const VerbsCq& cq, std::span<fabric::Completion> out) noexcept;
  void raise(fabric::DeviceEventKind kind, std::uint32_t id) noexcept;
  void cq_overrun(VerbsCq& cq) noexcept;

 private:
  // One of the device's two file descriptors.
  struct Listener final : native::FdListener {
    Listener(VerbsDevice& of, void (VerbsDevice::*then)() noexcept) : device(of), call(then) {}
    void on_ready(std::uint32_t /*epoll_events*/) noexcept override { (device.*call)(); }
    VerbsDevice& device;
    void (VerbsDevice::*call)() noexcept;
  };

  VerbsDevice(native::NativeLoop& loop, DevicePort port, std::uint8_t service_level, Prng prng);
  Result<> start();
  Result<> find_caps();
  [[nodiscard]] std::uint32_t largest_inline() noexcept;
  void on_completion_events() noexcept;
  void on_async_events() noexcept;

  native::NativeLoop& loop_;
  DevicePort port_;
  Handle<ibv_pd> pd_;
  Handle<ibv_comp_channel> channel_;
  fabric::DeviceCaps caps_{};
  Prng prng_;
  std::uint8_t service_level_;
  bool soft_roce_ = false;
  Listener completion_listener_{*this, &VerbsDevice::on_completion_events};
  Listener async_listener_{*this, &VerbsDevice::on_async_events};
  OwnerTable owners_;
  std::vector<VerbsQueuePair*> queue_pairs_;
  Ring<fabric::DeviceEvent> events_{kEventsMax};
  fabric::Waker* event_waker_ = nullptr;
  std::uint32_t objects_ = 0;
  std::uint32_t refused_ = 0;
};

}  // namespace bx::verbs
