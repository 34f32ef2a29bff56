// SPDX-License-Identifier: BSD-3-Clause
// Contract point 9: zero-length, one-byte, MTU-1, MTU, MTU+1 and largest messages; every opcode; every SGE
// count up to caps().
#include <algorithm>
#include <cstring>

#include "tests/conformance/rig.h"

namespace bx::conformance {
namespace {

// More than this is not moved by a test, whatever the device could do.
constexpr std::size_t kLargestTested = std::size_t{1} << 25U;

class Point9Sizes : public ContractTest {
 protected:
  // Moves `length` bytes by `opcode` and checks them, their surroundings and the completions.
  static void move(Rig& rig, Opcode opcode, std::size_t length) {
    constexpr std::size_t kAt = 64;  // room for canaries
    const bool read = opcode == Opcode::rdma_read;
    const bool send = opcode == Opcode::send || opcode == Opcode::send_with_imm;
    const bool receives = send || opcode == Opcode::rdma_write_with_imm;
    Endpoint& source = read ? *rig.beta : *rig.alpha;
    Endpoint& sink = read ? *rig.alpha : *rig.beta;
    sink.fill(0, length + 2 * kAt, 200);
    const std::vector<std::byte> canary_before(sink.memory.begin(), sink.memory.begin() + kAt);
    const auto end = sink.memory.begin() + static_cast<std::ptrdiff_t>(kAt + length);
    const std::vector<std::byte> canary_after(end, end + kAt);
    source.fill(kAt, length, 17);
    const Sge element = rig.alpha->sge(kAt, length);
    if (receives) rig.beta->post_recv(5, 1, kAt, send ? length : 0);
    SendWr request = remote_wr(opcode, 1, {&element, length > 0 ? 1U : 0U}, rig.beta->remote(kAt));
    request.imm = static_cast<std::uint32_t>(length) + 1;
    ASSERT_EQ(rig.alpha->post(request), 1U);
    const auto done = rig.wait_sends(*rig.alpha, 1);
    ASSERT_EQ(statuses(done), std::vector{WcStatus::success}) << length;
    if (read) {
      EXPECT_EQ(done[0].byte_len, length);
    }
    if (receives) {
      const auto received = rig.wait_recvs(*rig.beta, 1);
      ASSERT_EQ(statuses(received), std::vector{WcStatus::success}) << length;
      EXPECT_EQ(received[0].byte_len, length);
      EXPECT_EQ(received[0].has_imm, opcode != Opcode::send);
      EXPECT_EQ(received[0].imm, received[0].has_imm ? length + 1 : 0);
    }
    EXPECT_TRUE(sink.holds(kAt, length, 17)) << length;
    EXPECT_TRUE(std::equal(canary_before.begin(), canary_before.end(), sink.memory.begin())) << length;
    EXPECT_TRUE(std::equal(canary_after.begin(), canary_after.end(), end)) << length;
  }
  static void move_all_lengths(const Provider& provider, Opcode opcode) {
    for (const std::uint32_t mtu : {256U, 1024U, 4096U}) {
      RigConfig config;
      config.path.mtu_bytes = mtu;
      Rig rig(provider, config);
      if (mtu > rig.alpha->host->device().caps().mtu_max) continue;
      for (const std::size_t length :
           {std::size_t{0}, std::size_t{1}, std::size_t{mtu - 1}, std::size_t{mtu}, std::size_t{mtu + 1},
            std::size_t{2 * mtu}, std::size_t{2 * mtu + 1}, std::size_t{7 * mtu + 3}}) {
        move(rig, opcode, length);
      }
    }
  }
  static void move_largest(const Provider& provider, Opcode opcode) {
    const std::uint64_t most = Rig(provider).alpha->host->device().caps().message_bytes_max;
    const std::size_t length = std::min<std::uint64_t>(most, kLargestTested);
    RigConfig config;
    config.memory_bytes = length + 256;
    config.path.ack_timeout = 16;
    Rig rig(provider, config);
    move(rig, opcode, length);
  }
};
BX_CONFORMANCE_GROUP(Point9Sizes);

TEST_P(Point9Sizes, send__of_every_length) {
  move_all_lengths(GetParam(), Opcode::send);
}
TEST_P(Point9Sizes, send_with_imm__of_every_length) {
  move_all_lengths(GetParam(), Opcode::send_with_imm);
}
TEST_P(Point9Sizes, write__of_every_length) {
  move_all_lengths(GetParam(), Opcode::rdma_write);
}
TEST_P(Point9Sizes, write_with_imm__of_every_length) {
  move_all_lengths(GetParam(), Opcode::rdma_write_with_imm);
}
TEST_P(Point9Sizes, read__of_every_length) {
  move_all_lengths(GetParam(), Opcode::rdma_read);
}
TEST_P(Point9Sizes, send__of_the_largest_message) {
  move_largest(GetParam(), Opcode::send);
}
TEST_P(Point9Sizes, write_with_imm__of_the_largest_message) {
  move_largest(GetParam(), Opcode::rdma_write_with_imm);
}
TEST_P(Point9Sizes, read__of_the_largest_message) {
  move_largest(GetParam(), Opcode::rdma_read);
}

TEST_P(Point9Sizes, empty_write_and_read__look_at_no_key) {
  Rig rig(GetParam());
  rig.beta->post_recv(1);
  for (const Opcode opcode : {Opcode::rdma_write, Opcode::rdma_write_with_imm, Opcode::rdma_read}) {
    rig.alpha->post(remote_wr(opcode, 1, {}, {.addr = 12345, .rkey = fabric::RKey{99}}));
    EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
  }
}

TEST_P(Point9Sizes, fetch_add__adds_and_returns_the_original) {
  Rig rig(GetParam());
  if (!rig.alpha->host->device().caps().atomics) GTEST_SKIP() << "the provider has no atomics";
  const Sge word = rig.alpha->sge(0, 8);
  std::uint64_t value = UINT64_MAX - 1;
  std::memcpy(rig.beta->memory.data() + 16, &value, 8);
  for (const std::uint64_t expected : {UINT64_MAX - 1, std::uint64_t{1}, std::uint64_t{4}}) {
    SendWr request = remote_wr(Opcode::fetch_add, 1, {&word, 1}, rig.beta->remote(16));
    request.compare_add = 3;
    rig.alpha->post(request);
    const auto done = rig.wait_sends(*rig.alpha, 1);
    ASSERT_EQ(statuses(done), std::vector{WcStatus::success});
    EXPECT_EQ(done[0].opcode, WcOpcode::fetch_add);
    std::memcpy(&value, rig.alpha->memory.data(), 8);
    EXPECT_EQ(value, expected);
    std::memcpy(&value, rig.beta->memory.data() + 16, 8);
    EXPECT_EQ(value, expected + 3);
  }
}

TEST_P(Point9Sizes, cmp_swap__swaps_if_equal_and_returns_the_original) {
  Rig rig(GetParam());
  if (!rig.alpha->host->device().caps().atomics) GTEST_SKIP() << "the provider has no atomics";
  const Sge word = rig.alpha->sge(0, 8);
  const auto run = [&](std::uint64_t compare, std::uint64_t swap) {
    SendWr request = remote_wr(Opcode::cmp_swap, 1, {&word, 1}, rig.beta->remote(8));
    request.compare_add = compare;
    request.swap = swap;
    rig.alpha->post(request);
    const auto done = rig.wait_sends(*rig.alpha, 1);
    EXPECT_EQ(statuses(done), std::vector{WcStatus::success});
    EXPECT_EQ(done.empty() ? WcOpcode::send : done[0].opcode, WcOpcode::cmp_swap);
    std::pair<std::uint64_t, std::uint64_t> result;  // returned, and left behind
    std::memcpy(&result.first, rig.alpha->memory.data(), 8);
    std::memcpy(&result.second, rig.beta->memory.data() + 8, 8);
    return result;
  };
  EXPECT_EQ(run(0, 77), (std::pair<std::uint64_t, std::uint64_t>{0, 77}));
  EXPECT_EQ(run(0, 88), (std::pair<std::uint64_t, std::uint64_t>{77, 77}));
  EXPECT_EQ(run(77, UINT64_MAX), (std::pair<std::uint64_t, std::uint64_t>{77, UINT64_MAX}));
}

// `count` elements of odd lengths, some empty, apart from each other.
std::vector<Sge> odd_elements(const Endpoint& at, std::size_t base, std::uint32_t count) {
  std::vector<Sge> sges;
  for (std::uint32_t i = 0; i < count; ++i) {
    sges.push_back(at.sge(base + std::size_t{i} * 512, i % 5 == 3 ? 0 : 1 + (i * 97U) % 500));
  }
  return sges;
}

std::vector<std::byte> gathered(const std::vector<Sge>& sges) {
  std::vector<std::byte> bytes;
  for (const Sge& sge : sges) {
    const auto* begin = reinterpret_cast<const std::byte*>(sge.addr);
    bytes.insert(bytes.end(), begin, begin + sge.length);
  }
  return bytes;
}

TEST_P(Point9Sizes, elements__of_every_count_are_gathered_and_scattered) {
  const fabric::DeviceCaps caps = Rig(GetParam()).alpha->host->device().caps();
  RigConfig config;
  config.sges_max = caps.sges_max;
  config.recv_sges_max = caps.recv_sges_max;
  Rig rig(GetParam(), config);
  rig.alpha->fill(0, 65'536, 1);
  for (std::uint32_t count = 1; count <= caps.sges_max; ++count) {
    const auto from = odd_elements(*rig.alpha, 0, count);
    const auto sent = gathered(from);
    const std::uint32_t targets = std::max(1U, std::min(caps.recv_sges_max, caps.sges_max + 1 - count));
    auto into = odd_elements(*rig.beta, 100, targets);
    into.back() = rig.beta->sge(32'768, 10'000);  // room for the rest
    rig.beta->post_recv({.wr_id = WrId{count}, .sges = into});
    rig.alpha->post(send_wr(count, from));
    const auto received = rig.wait_recvs(*rig.beta, 1);
    ASSERT_EQ(statuses(received), std::vector{WcStatus::success}) << count;
    ASSERT_EQ(received[0].byte_len, sent.size());
    auto arrived = gathered(into);
    arrived.resize(sent.size());
    EXPECT_EQ(arrived, sent) << count;
    ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  }
}

TEST_P(Point9Sizes, elements__of_every_count_work_for_write_and_read) {
  const fabric::DeviceCaps caps = Rig(GetParam()).alpha->host->device().caps();
  RigConfig config;
  config.sges_max = caps.sges_max;
  Rig rig(GetParam(), config);
  for (std::uint32_t count = 1; count <= caps.sges_max; ++count) {
    rig.alpha->fill(0, 65'536, static_cast<std::uint8_t>(count));
    const auto local = odd_elements(*rig.alpha, 0, count);
    const auto sent = gathered(local);
    rig.alpha->post(remote_wr(Opcode::rdma_write, 1, local, rig.beta->remote(7)));
    ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
    EXPECT_TRUE(std::ranges::equal(rig.beta->bytes(7, sent.size()), sent)) << count;
    rig.alpha->fill(0, 65'536, 250);
    rig.alpha->post(remote_wr(Opcode::rdma_read, 2, local, rig.beta->remote(7)));
    ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
    EXPECT_EQ(gathered(local), sent) << count;
  }
}

TEST_P(Point9Sizes, inlined__of_every_length_up_to_the_caps) {
  RigConfig config;
  config.inline_max = Rig(GetParam()).alpha->host->device().caps().inline_max;
  Rig rig(GetParam(), config);
  for (std::uint32_t length = 0; length <= config.inline_max; ++length) {
    rig.alpha->fill(0, length, static_cast<std::uint8_t>(length));
    rig.beta->post_recv(1, 1, 0, config.inline_max);
    const std::array<Sge, 2> halves{rig.alpha->sge(0, length / 2),
                                    rig.alpha->sge(length / 2, length - length / 2)};
    rig.alpha->post(send_wr(1, halves, SendFlags::signaled | SendFlags::inlined));
    const auto received = rig.wait_recvs(*rig.beta, 1);
    ASSERT_EQ(statuses(received), std::vector{WcStatus::success}) << length;
    EXPECT_EQ(received[0].byte_len, length);
    EXPECT_TRUE(rig.beta->holds(0, length, static_cast<std::uint8_t>(length)));
    ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  }
}

TEST_P(Point9Sizes, reads__beyond_the_limit_of_outstanding_ones_wait_their_turn) {
  for (const std::uint8_t limit : {std::uint8_t{1}, std::uint8_t{4}}) {
    RigConfig config;
    config.path.rd_atomic_max = limit;
    config.path.rd_atomic_dest_max = limit;
    Rig rig(GetParam(), config);
    rig.beta->fill(0, 65'536, 3);
    std::vector<Sge> into;
    for (std::size_t i = 0; i < 16; ++i) into.push_back(rig.alpha->sge(i * 4096, 4096));
    for (std::size_t i = 0; i < 16; ++i) {
      ASSERT_EQ(rig.alpha->post(remote_wr(Opcode::rdma_read, i, {&into[i], 1}, rig.beta->remote(i * 4096))),
                1U);
    }
    const auto done = rig.wait_sends(*rig.alpha, 16);
    EXPECT_EQ(ids(done), numbers(0, 16));
    EXPECT_EQ(statuses(done), std::vector(16, WcStatus::success));
    EXPECT_TRUE(rig.alpha->holds(0, 65'536, 3));
  }
}

}  // namespace
}  // namespace bx::conformance
