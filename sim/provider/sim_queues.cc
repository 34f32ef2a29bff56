// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/sim_queues.h"

#include <algorithm>
#include <array>

#include "libbx/base/check.h"
#include "sim/provider/sim_device.h"
#include "sim/provider/translate.h"

namespace bx::sim {
namespace {

// Completions translated at a time; a poll for more takes several rounds.
constexpr std::size_t kPollBatch = 32;

}  // namespace

Result<std::unique_ptr<SimCq>> SimCq::create(SimDevice& device, const fabric::CqConfig& config) {
  std::unique_ptr<SimCq> cq(new SimCq(device, config.waker));
  const Result<sim::CompletionQueue*> model = device.nic().create_cq(config.depth, cq.get());
  if (!model) return tl::unexpected<Error>(model.error());
  cq->model_ = *model;
  device.add_object();
  device.add_cq((*model)->number());
  return cq;
}

SimCq::~SimCq() {
  if (model_ == nullptr) return;
  device_.remove_cq(model_->number());
  device_.nic().destroy(*model_);
  device_.remove_object();
}

std::size_t SimCq::poll(std::span<fabric::Completion> out) noexcept {
  std::array<WorkCompletion, kPollBatch> batch;
  std::size_t count = 0;
  while (count < out.size()) {
    const std::size_t wanted = std::min(kPollBatch, out.size() - count);
    const std::size_t polled = model_->poll(std::span(batch).first(wanted));
    for (std::size_t i = 0; i < polled; ++i) out[count + i] = translate(batch[i]);
    count += polled;
    if (polled < wanted) break;
  }
  return count;
}

fabric::ArmResult SimCq::arm() noexcept {
  return model_->arm(ArmFor::any) ? fabric::ArmResult::armed : fabric::ArmResult::pending;
}

void SimCq::on_wake(sim::CompletionQueue& /*cq*/) {
  if (waker_ != nullptr) waker_->wake();
}

SimSrq::SimSrq(SimDevice& device, sim::SharedReceiveQueue& model) noexcept : device_(device), model_(model) {
  device_.add_object();
}

SimSrq::~SimSrq() {
  device_.nic().destroy(model_);
  device_.remove_object();
}

std::size_t SimSrq::post_recv(std::span<const fabric::RecvWr> requests) noexcept {
  std::size_t count = 0;
  for (const fabric::RecvWr& request : requests) {
    const SegmentArray segments(request.sges);
    const ReceiveRequest translated{static_cast<std::uint64_t>(request.wr_id), segments.view()};
    if (model_.post({&translated, 1}) == 0) break;
    ++count;
  }
  if (count > 0) device_.reactor().ring(*this);
  return count;
}

SimMr::SimMr(SimDevice& device, std::span<std::byte> bytes, MemoryKeys keys) noexcept
    : device_(device), bytes_(bytes), keys_(keys) {
  device_.add_object();
}

SimMr::~SimMr() {
  device_.nic().memory().remove(keys_);
  device_.remove_object();
}

}  // namespace bx::sim
