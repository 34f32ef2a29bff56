// SPDX-License-Identifier: GPL-2.0-only
// Once objects are made and a first burst has sized what grows (the frame pool, the engine's buckets), a
// message costs no allocation: not in the calls and not in the events.
#include <gtest/gtest.h>

#include <array>

#include "sim/provider/sim_fabric.h"
#include "tests/support/allocation_guard.h"

namespace bx::sim {
namespace {

struct Peer {
  explicit Peer(SimFabric& fabric, const char* name)
      : host(std::move(*fabric.open_host(name))),
        memory(1U << 16U),
        mr(std::move(*host->device().register_memory(memory, fabric::Access::remote_all))),
        cq(std::move(*host->device().create_cq({.depth = 64}))),
        srq(std::move(*host->device().create_srq({.depth = 64}))),
        qp(std::move(*host->device().create_qp(
            {.send_cq = cq.get(), .recv_cq = cq.get(), .srq = srq.get(), .send_depth = 16}))) {}
  [[nodiscard]] fabric::Sge all() const {
    return {reinterpret_cast<std::uintptr_t>(memory.data()), static_cast<std::uint32_t>(memory.size()),
            mr->lkey()};
  }
  std::unique_ptr<fabric::Host> host;
  std::vector<std::byte> memory;
  std::unique_ptr<fabric::MemoryRegion> mr;
  std::unique_ptr<fabric::CompletionQueue> cq;
  std::unique_ptr<fabric::SharedReceiveQueue> srq;
  std::unique_ptr<fabric::QueuePair> qp;
};

// A SEND, a WRITE and a READ of 64 KiB each, the first of them without a receive at first: an RNR NAK, a
// timer and a retransmission are in every round.
void exchange(SimFabric& fabric, Peer& a, Peer& b) {
  const fabric::Sge from = a.all();
  const fabric::Sge into = b.all();
  const fabric::RemoteSpan there{into.addr, b.mr->rkey()};
  const std::array<fabric::SendWr, 3> requests{
      fabric::SendWr{.sges = {&from, 1}},
      fabric::SendWr{.sges = {&from, 1}, .remote = there, .opcode = fabric::Opcode::rdma_write},
      fabric::SendWr{.sges = {&from, 1}, .remote = there, .opcode = fabric::Opcode::rdma_read}};
  BX_CHECK(a.qp->post_send(requests) == 3, "three slots are free");
  a.host->reactor().run(fabric.now() + std::chrono::microseconds{20});
  const fabric::RecvWr receive{.sges = {&into, 1}};
  b.srq->post_recv({&receive, 1});
  a.host->reactor().run(fabric.now() + std::chrono::microseconds{200});
  std::array<fabric::Completion, 8> out;
  BX_CHECK(a.cq->poll(out) == 3 && b.cq->poll(out) == 1, "all are complete");
}

void expect_no_allocations(const SimConfig& config) {
  auto fabric = SimFabric::create(config);
  ASSERT_TRUE(fabric.has_value());
  Peer a(**fabric, "host0");
  Peer b(**fabric, "host1");
  const fabric::PathConfig path{.ack_timeout = 6, .min_rnr_timer = 1};
  ASSERT_TRUE(a.qp->connect(b.qp->address(), path) && b.qp->connect(a.qp->address(), path));
  for (int round = 0; round < 100; ++round) exchange(**fabric, a, b);
  const test::AllocationCount count;
  for (int round = 0; round < 100; ++round) exchange(**fabric, a, b);
  EXPECT_EQ(count.since(), 0U);
}

TEST(allocation, messages__cost_none_after_the_first) {
  expect_no_allocations({.hosts = 2});
}

TEST(allocation, messages__cost_none_on_a_nic_with_costs) {
  SimConfig config{.hosts = 2};
  config.nic.profile = "connectx5";
  expect_no_allocations(config);
}

TEST(allocation, messages__cost_none_with_lengths_only) {
  SimConfig config{.hosts = 2};
  config.payload = "lengths";
  expect_no_allocations(config);
}

}  // namespace
}  // namespace bx::sim
