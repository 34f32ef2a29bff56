// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/fault_queues.h"

#include <utility>

namespace bx::fabric {

FaultCq::FaultCq(FaultInjector& injector, FaultQps& qps, Reactor& reactor, Waker* waker)
    : CqDecorator(waker), injector_(injector), qps_(qps), reactor_(reactor), timer_(*this) {}

std::size_t FaultCq::poll(std::span<Completion> out) noexcept {
  std::size_t count = 0;
  while (count < out.size()) {
    if (held_) {
      if (reactor_.now() < due_) break;
      out[count++] = *std::exchange(held_, std::nullopt);
      continue;
    }
    Completion& one = out[count];
    if (inner().poll({&one, 1}) == 0) break;
    maybe_replace(one);
    if (injector_.strikes(FaultKind::completion_delay)) {
      held_ = one;
      due_ = reactor_.now() + injector_.delay();
      reactor_.arm(timer_, due_);
      continue;
    }
    ++count;
  }
  return count;
}

void FaultCq::maybe_replace(Completion& completion) noexcept {
  if (completion.status != WcStatus::success || !injector_.strikes(FaultKind::completion_error)) return;
  completion.status = injector_.plan().error_status;
  const auto found = qps_.find(completion.qp);
  if (found != qps_.end()) found->second->fail();
}

ArmResult FaultCq::arm() noexcept {
  if (held_) {
    if (reactor_.now() >= due_) return ArmResult::pending;
  } else if (inner().arm() == ArmResult::pending) {
    return ArmResult::pending;
  }
  armed_ = true;
  return ArmResult::armed;
}

// While a completion is held, what woke us cannot be polled yet: the timer wakes the user instead.
void FaultCq::on_wake() noexcept {
  if (!held_) wake_once();
}

// If the user polled the held completion at this very instant, the inner queue has yet to be armed.
void FaultCq::on_due() noexcept {
  if (held_ || (armed_ && inner().arm() == ArmResult::pending)) wake_once();
}

void FaultCq::wake_once() noexcept {
  if (!armed_) return;
  armed_ = false;
  if (!injector_.strikes(FaultKind::wake_up_lost)) wake_user();
}

FaultQp::FaultQp(std::unique_ptr<QueuePair> made, FaultInjector& injector, FaultQps& qps)
    : QpDecorator(std::move(made)), injector_(injector), qps_(qps), number_(address().qp) {
  qps_.emplace(number_, this);
}

FaultQp::~FaultQp() {
  qps_.erase(number_);
}

std::size_t FaultQp::post_send(std::span<const SendWr> requests) noexcept {
  if (!requests.empty() && injector_.strikes(FaultKind::short_post)) {
    requests = requests.first(injector_.shorter(requests.size()));
  }
  const std::size_t count = inner().post_send(requests);
  bool failing = false;
  for (std::size_t i = 0; i < count; ++i) {
    failing = injector_.strikes(FaultKind::queue_pair_failure) || failing;
  }
  if (failing) inner().fail();
  return count;
}

}  // namespace bx::fabric
