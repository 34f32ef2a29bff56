// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/raw_traffic.h"

#include <algorithm>
#include <array>

#include "libbx/base/check.h"
#include "sim/provider/network_plan.h"

namespace bx::sim {
namespace {

constexpr std::uint32_t kCqDepth = 64;
constexpr Picoseconds kForever = std::chrono::seconds{1000};
constexpr std::uint8_t kLosslessClass = 3U << 5U;  // traffic class of priority 3

}  // namespace

Result<std::unique_ptr<RawTraffic>> RawTraffic::create(const SimConfig& config) {
  const Result<NetworkPlan> plan = plan_network(config);
  if (!plan) return tl::unexpected<Error>(plan.error());
  return std::unique_ptr<RawTraffic>(new RawTraffic(std::make_unique<SimNetwork>(config, *plan)));
}

RawTraffic::HostObjects& RawTraffic::objects(std::uint16_t host) {
  if (objects_.empty()) objects_.resize(network_->hosts());
  HostObjects& made = objects_[host];
  if (made.cq != nullptr) return made;
  Nic& nic = *network_->slot(host).nic;
  made.cq = nic.create_cq(kCqDepth, nullptr).value();
  made.srq = nic.create_srq(1, 1).value();
  return made;
}

RcQueuePair& RawTraffic::connect(std::uint16_t a, std::uint16_t b) {
  const std::array<std::uint16_t, 2> hosts{a, b};
  std::array<RcQueuePair*, 2> pair{};
  for (std::size_t end = 0; end < 2; ++end) {
    const HostObjects& made = objects(hosts[end]);
    pair[end] = network_->slot(hosts[end])
                    .nic
                    ->create_qp({.send_cq = made.cq,
                                 .receive_cq = made.cq,
                                 .srq = made.srq,
                                 .send = {.depth = 4, .segments_max = 1, .inline_max = 0}})
                    .value();
  }
  for (std::size_t end = 0; end < 2; ++end) {
    const RcPath path{.peer_host = hosts[1 - end],
                      .peer_qp = pair[1 - end]->number(),
                      .mtu = network_->config().mtu,
                      .traffic_class = kLosslessClass};
    BX_CHECK(pair[end]->to_init() && pair[end]->to_ready_to_receive(path) && pair[end]->to_ready_to_send(),
             "the path is legal");
  }
  return *pair[0];
}

void RawTraffic::open_idle(std::uint16_t a, std::uint16_t b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) connect(a, b);
}

void RawTraffic::post(const std::vector<RawFlow>& flows) {
  std::uint64_t longest = 1;
  for (const RawFlow& flow : flows) longest = std::max(longest, flow.bytes);
  const Partitions& partitions = network_->topology().partitions();
  if (memory_.empty()) memory_.resize(partitions.count(), std::vector<std::byte>(longest));
  BX_CHECK(memory_[0].size() >= longest, "memory that is registered cannot grow");
  const auto memory_of = [&](std::uint16_t host) -> std::vector<std::byte>& {
    return memory_[partitions.of_host(host)];
  };
  const auto address_of = [&](std::uint16_t host) {
    return reinterpret_cast<std::uintptr_t>(memory_of(host).data());
  };
  const auto keys_of = [&](std::uint16_t host) {
    HostObjects& made = objects(host);
    if (made.keys.lkey == 0) {
      made.keys = network_->slot(host)
                      .nic->memory()
                      .add(memory_of(host), MemoryAccess::local_write | MemoryAccess::remote_write)
                      .value();
    }
    return made.keys;
  };
  for (const RawFlow& flow : flows) {
    RcQueuePair& qp = connect(flow.from, flow.to);
    const Segment segment{address_of(flow.from), static_cast<std::uint32_t>(flow.bytes),
                          keys_of(flow.from).lkey};
    const SendRequest request{.id = posted_,
                              .segments = {&segment, 1},
                              .remote_addr = address_of(flow.to),
                              .rkey = keys_of(flow.to).rkey,
                              .opcode = RequestOpcode::write};
    BX_CHECK(qp.post_send({&request, 1}) == 1, "a new send queue has room");
    network_->slot(flow.from).nic->ring(qp);
    ++posted_;
  }
}

void RawTraffic::idle(Picoseconds time) {
  Engine& engine = network_->engine();
  // run() stands at the last event when nothing is left: this one makes it the end of the interval.
  engine.post(
      time, [](void*, void*) {}, nullptr);
  network_->run(engine.now() + time);
}

bool RawTraffic::run() {
  if (!network_->run(network_->engine().now() + kForever)) return false;
  std::size_t completed = 0;
  bool good = true;
  std::array<WorkCompletion, 64> batch{};
  for (const HostObjects& made : objects_) {
    if (made.cq == nullptr) continue;
    while (const std::size_t count = made.cq->poll(batch)) {
      completed += count;
      for (std::size_t i = 0; i < count; ++i) good = good && batch[i].status == CompletionStatus::success;
    }
  }
  good = good && completed == posted_;
  posted_ = 0;
  return good;
}

}  // namespace bx::sim
