// SPDX-License-Identifier: BSD-3-Clause
// The queues of a FaultFabric's device: where its faults strike.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "libbx/fabric/decorator.h"
#include "libbx/fabric/fault_plan.h"

namespace bx::fabric {

// The queue pairs of one device by number, to fail the one that a replaced completion belongs to.
class FaultQp;
using FaultQps = std::map<QpNum, FaultQp*>;

// A delayed completion is taken from the inner queue and held; nothing behind it is taken until it is due, so
// the order stays. Its send-queue slot is free a little before the user sees it.
class FaultCq final : public CqDecorator {
 public:
  FaultCq(FaultInjector& injector, FaultQps& qps, Reactor& reactor, Waker* waker);
  std::size_t poll(std::span<Completion> out) noexcept override;
  [[nodiscard]] ArmResult arm() noexcept override;

 protected:
  void on_wake() noexcept override;

 private:
  class DueTimer final : public Timer {
   public:
    explicit DueTimer(FaultCq& owner) : owner_(owner) {}
    void on_timer(Instant) noexcept override { owner_.on_due(); }

   private:
    FaultCq& owner_;
  };
  void on_due() noexcept;
  void wake_once() noexcept;
  void maybe_replace(Completion& completion) noexcept;

  FaultInjector& injector_;
  FaultQps& qps_;
  Reactor& reactor_;
  std::optional<Completion> held_;
  Instant due_{};  // of held_
  bool armed_ = false;
  DueTimer timer_;
};

class FaultQp final : public QpDecorator {
 public:
  FaultQp(std::unique_ptr<QueuePair> made, FaultInjector& injector, FaultQps& qps);
  ~FaultQp() override;
  std::size_t post_send(std::span<const SendWr> requests) noexcept override;

 private:
  FaultInjector& injector_;
  FaultQps& qps_;
  QpNum number_;
};

}  // namespace bx::fabric
