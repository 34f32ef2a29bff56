// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/loopback_fabric.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/conformance/rig.h"

namespace bx::loopback {
namespace {

using conformance::Rig;
using conformance::RigConfig;
using conformance::send_wr;

TEST(LoopbackFabric, open_host__takes_any_name_unless_there_is_a_list) {
  LoopbackFabric any;
  const auto host = any.open_host("whatever");
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ((*host)->name(), "whatever");
  EXPECT_EQ(any.name(), "loopback");
  LoopbackFabric listed({.hosts = {"one", "two"}});
  EXPECT_TRUE(listed.open_host("two").has_value());
  EXPECT_EQ(listed.open_host("three").error().code, ErrorCode::unreachable);
}

TEST(LoopbackFabric, open_host__is_refused_while_it_is_open_and_works_again_afterwards) {
  LoopbackFabric fabric;
  auto host = fabric.open_host("a");
  EXPECT_EQ(fabric.open_host("a").error().code, ErrorCode::exhausted);
  host->reset();
  EXPECT_TRUE(fabric.open_host("a").has_value());
}

TEST(LoopbackFabric, open_host__again_keeps_the_address_and_gives_new_keys_and_numbers) {
  LoopbackFabric fabric;
  std::vector<std::byte> memory(64);
  const auto open = [&] {
    auto host = std::move(*fabric.open_host("a"));
    auto mr = std::move(*host->device().register_memory(memory, fabric::Access::local));
    auto cq = std::move(*host->device().create_cq({.depth = 1}));
    auto srq = std::move(*host->device().create_srq({.depth = 1}));
    auto qp = std::move(*host->device().create_qp(
        {.send_cq = cq.get(), .recv_cq = cq.get(), .srq = srq.get(), .send_depth = 1}));
    return std::tuple{qp->address(), mr->lkey(), host->prng().next()};
  };
  const auto [first_address, first_key, first_draw] = open();
  const auto [second_address, second_key, second_draw] = open();
  EXPECT_EQ(first_address.gid, second_address.gid);
  EXPECT_NE(first_address.qp, second_address.qp);
  EXPECT_NE(first_key, second_key);
  EXPECT_NE(first_draw, second_draw);
}

TEST(LoopbackFabric, hosts__have_addresses_and_randomness_of_their_own) {
  LoopbackFabric fabric;
  std::set<std::uint64_t> draws;
  std::vector<std::unique_ptr<fabric::Host>> hosts;
  for (int i = 0; i < 300; ++i) {
    hosts.push_back(std::move(*fabric.open_host("host" + std::to_string(i))));
    EXPECT_TRUE(draws.insert(hosts.back()->prng().next()).second);
  }
}

TEST(LoopbackFabric, hosts__share_one_clock) {
  LoopbackFabric fabric;
  const auto a = std::move(*fabric.open_host("a"));
  const auto b = std::move(*fabric.open_host("b"));
  struct Nothing final : fabric::Timer {
    void on_timer(Instant) noexcept override {}
  } timer;
  b->reactor().arm(timer, Instant{Duration{700}});
  a->reactor().run(kNever);
  EXPECT_EQ(a->reactor().now(), Instant{Duration{700}});
  EXPECT_EQ(b->reactor().now(), Instant{Duration{700}});
}

std::uint64_t digest_of_a_run(std::uint64_t seed, std::size_t messages) {
  auto made = std::make_unique<LoopbackFabric>(LoopbackConfig{.seed = seed});
  const LoopbackFabric& loopback = *made;
  Rig rig(std::move(made), {"alpha", "beta"}, {});
  Prng prng(seed);
  for (std::size_t i = 0; i < messages; ++i) {
    const fabric::Sge element = rig.alpha->sge(0, prng.between(1, 5000));
    rig.beta->post_recv(i, 1, 0, 5000);
    rig.alpha->post(send_wr(i, {&element, 1}));
    EXPECT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  }
  return loopback.digest();
}

TEST(LoopbackFabric, digest__is_the_same_for_the_same_run_and_differs_for_another) {
  EXPECT_EQ(digest_of_a_run(1, 30), digest_of_a_run(1, 30));
  EXPECT_NE(digest_of_a_run(1, 30), digest_of_a_run(2, 30));
  EXPECT_NE(digest_of_a_run(1, 30), digest_of_a_run(1, 29));
}

TEST(LoopbackFabric, streams__connect_its_hosts) {
  LoopbackFabric fabric;
  const auto a = std::move(*fabric.open_host("a"));
  const auto b = std::move(*fabric.open_host("b"));
  struct Acceptor final : fabric::StreamAcceptor {
    void on_accept(std::unique_ptr<fabric::Stream> accepted) noexcept override {
      stream = std::move(accepted);
    }
    std::unique_ptr<fabric::Stream> stream;
  } acceptor;
  struct Events final : fabric::StreamEvents {
    void on_stream(fabric::Stream&) noexcept override {}
  } events;
  const auto listener = std::move(*b->streams().listen(1, acceptor));
  const auto stream = std::move(*a->streams().connect("b", 1, events));
  a->reactor().run(kNever);
  EXPECT_EQ(stream->state(), fabric::StreamState::open);
  ASSERT_NE(acceptor.stream, nullptr);
  EXPECT_EQ(a->streams().connect("c", 1, events).error().code, ErrorCode::unreachable);
}

}  // namespace
}  // namespace bx::loopback
