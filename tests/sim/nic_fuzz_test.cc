// SPDX-License-Identifier: GPL-2.0-only
// Random programs over a network that loses, duplicates and reorders, then a phase in which it does not: in
// the end every request has completed exactly once and in order, memory is as if nothing had happened, and
// the same seed gives the same run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "libbx/base/digest.h"
#include "libbx/base/prng.h"
#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

constexpr std::uint32_t kMtu = 256;
constexpr std::uint32_t kLengthMax = 3000;
constexpr std::size_t kSlots = 100;   // requests of one direction, each with kLengthMax bytes of its own
constexpr std::size_t kReceives = 0;  // buffers of receives
constexpr std::size_t kLocal = kSlots * 2 * kLengthMax;  // the requester's side of each request
constexpr std::size_t kRemote = 2 * kLocal;              // the responder's side
constexpr std::size_t kCounter = 3 * kLocal;             // what FETCH_ADD counts
constexpr std::size_t kMemory = kCounter + 64;
constexpr std::size_t kQps = 3;

// Loses, duplicates and delays (so reorders) frames by seed while `active`.
class Chaos final : public FrameFilter {
 public:
  Chaos(Engine& engine, Nic& nic, Prng random) : engine_(engine), nic_(nic), random_(random) {
    nic.set_filter(this);
  }
  void filter(Nic& nic, Frame* frame) override {
    if (!active) return nic.accept(frame);
    if (random_.chance(0.03)) return nic.frames().free(frame);
    if (random_.chance(0.03)) later(copy(*frame));
    if (random_.chance(0.05)) return later(frame);
    nic.accept(frame);
  }
  bool active = true;

 private:
  Frame* copy(const Frame& frame) {
    Frame* twin = nic_.frames().make();
    *twin = frame;
    if (frame.payload != nullptr) {
      twin->payload = nic_.frames().make_payload();
      std::memcpy(twin->payload, frame.payload, frame.payload_bytes);
    }
    return twin;
  }
  void later(Frame* frame) {
    const auto delay = Picoseconds{static_cast<std::int64_t>(random_.below(20'000'000))};
    engine_.post(
        delay, [](void* nic, void* held) { static_cast<Nic*>(nic)->accept(static_cast<Frame*>(held)); },
        &nic_, frame);
  }
  Engine& engine_;
  Nic& nic_;
  Prng random_;
};

struct Request {
  std::size_t qp = 0;
  RequestOpcode opcode = RequestOpcode::send;
  std::uint32_t length = 0;
  bool signaled = true;
  std::size_t slot = 0;
};

// One direction: `from` makes requests, `to` answers.
class Direction {
 public:
  Direction(Side& from, Side& to, std::array<RcQueuePair*, kQps> qps, Prng random)
      : from_(from), to_(to), qps_(qps), random_(random) {}

  [[nodiscard]] bool done() const { return posted_.size() == kSlots; }
  void post_one() {
    Request request{.qp = random_.below(kQps),
                    .opcode = static_cast<RequestOpcode>(random_.below(7)),
                    .length = static_cast<std::uint32_t>(random_.below(kLengthMax)),
                    .signaled = random_.chance(0.7),
                    .slot = posted_.size()};
    if (request.slot + kQps >= kSlots) {
      // The last one of each queue pair is signalled, so that all of it is known to be complete.
      request.qp = kSlots - 1 - request.slot;
      request.signaled = true;
    }
    if (random_.chance(0.1)) request.length = 0;
    const bool atomic = is_atomic(request.opcode);
    if (atomic) request.opcode = RequestOpcode::fetch_add;
    if (atomic) request.length = 8;
    const std::size_t local = kLocal + request.slot * kLengthMax;
    const std::uint32_t half = request.length / 2;
    const std::array<Segment, 2> segments{from_.segment(local, half),
                                          from_.segment(local + half, request.length - half)};
    const std::size_t accepted = from_.post(
        *qps_[request.qp], {.id = request.slot,
                            .segments = segments,
                            .remote_addr = to_.at(atomic ? kCounter : kRemote + request.slot * kLengthMax),
                            .rkey = to_.keys.rkey,
                            .imm = static_cast<std::uint32_t>(request.slot),
                            .compare_add = 1,
                            .opcode = request.opcode,
                            .signaled = request.signaled,
                            .fenced = random_.chance(0.1)});
    if (accepted == 1) posted_.push_back(request);
  }
  void post_receive() {
    if (receives_ == kSlots) return;
    to_.receive_into(receives_, {to_.segment(kReceives + receives_ * kLengthMax, kLengthMax)});
    ++receives_;
  }
  void poll(Digest& digest) {
    for (const WorkCompletion& c : from_.sends()) {
      digest.add(c.id ^ (std::uint64_t{c.byte_len} << 32U));
      EXPECT_EQ(c.status, CompletionStatus::success) << "request " << c.id;
      completed_.push_back(c.id);
    }
    for (const WorkCompletion& c : to_.receives()) {
      digest.add(~c.id);
      EXPECT_EQ(c.status, CompletionStatus::success);
      received_.push_back(c);
    }
  }
  void check(std::span<const std::byte> remote_before) {
    check_completions();
    check_receives();
    std::uint64_t expected_original[kQps] = {};
    std::vector<std::uint64_t> originals;
    for (const Request& r : posted_) {
      const auto local = from_.bytes(kLocal + r.slot * kLengthMax, r.length);
      const auto remote = to_.bytes(kRemote + r.slot * kLengthMax, r.length);
      if (r.opcode == RequestOpcode::write || r.opcode == RequestOpcode::write_with_imm) {
        EXPECT_TRUE(std::ranges::equal(local, remote)) << "write " << r.slot;
      } else if (r.opcode == RequestOpcode::read) {
        EXPECT_TRUE(std::ranges::equal(local, remote_before.subspan(kRemote + r.slot * kLengthMax, r.length)))
            << "read " << r.slot;
      } else if (r.opcode == RequestOpcode::fetch_add) {
        std::uint64_t original = 0;
        std::memcpy(&original, local.data(), 8);
        EXPECT_GE(original, expected_original[r.qp]) << "atomics of a queue pair run in order";
        expected_original[r.qp] = original + 1;
        originals.push_back(original);
      }
    }
    std::ranges::sort(originals);
    for (std::size_t i = 0; i < originals.size(); ++i) EXPECT_EQ(originals[i], i) << "each ran once";
  }

 private:
  void check_completions() {
    for (std::size_t qp = 0; qp < kQps; ++qp) {
      std::vector<std::uint64_t> expected;
      for (const Request& r : posted_) {
        if (r.qp == qp && r.signaled) expected.push_back(r.slot);
      }
      std::vector<std::uint64_t> got;
      for (const std::uint64_t id : completed_) {
        if (posted_[id].qp == qp) got.push_back(id);
      }
      EXPECT_EQ(got, expected) << "signalled requests of queue pair " << qp << ", once each, in order";
    }
  }
  // The receives of one queue pair are its messages in order.
  void check_receives() {
    std::array<std::deque<Request>, kQps> messages;
    for (const Request& r : posted_) {
      if (r.opcode == RequestOpcode::send || r.opcode == RequestOpcode::send_with_imm ||
          r.opcode == RequestOpcode::write_with_imm) {
        messages[r.qp].push_back(r);
      }
    }
    for (const WorkCompletion& c : received_) {
      std::size_t qp = 0;
      while (qps_[qp]->path().peer_qp != c.qp) ++qp;
      ASSERT_FALSE(messages[qp].empty());
      const Request r = messages[qp].front();
      messages[qp].pop_front();
      EXPECT_EQ(c.byte_len, r.length);
      EXPECT_EQ(c.has_imm, r.opcode != RequestOpcode::send);
      EXPECT_EQ(c.imm, c.has_imm ? r.slot : 0);
      if (r.opcode == RequestOpcode::write_with_imm) continue;
      EXPECT_TRUE(std::ranges::equal(from_.bytes(kLocal + r.slot * kLengthMax, r.length),
                                     to_.bytes(kReceives + c.id * kLengthMax, r.length)));
    }
    for (const auto& left : messages) EXPECT_TRUE(left.empty()) << "a message was lost";
  }

  Side& from_;
  Side& to_;
  std::array<RcQueuePair*, kQps> qps_;
  Prng random_;
  std::vector<Request> posted_;
  std::vector<std::uint64_t> completed_;
  std::vector<WorkCompletion> received_;
  std::uint64_t receives_ = 0;
};

struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t rnr_naks = 0;
};

Outcome run_program(std::uint64_t seed, EngineKind engine, const RecoveryConfig& recovery = {}) {
  const Prng root(seed);
  World world(
      {.engine = engine, .ack_interval = 4, .recovery = recovery, .send_depth = 16, .memory_bytes = kMemory});
  Chaos chaos_a(world.engine, world.a.nic, root.fork("a"));
  Chaos chaos_b(world.engine, world.b.nic, root.fork("b"));
  Prng random = root.fork("program");
  std::array<RcQueuePair*, kQps> as{};
  std::array<RcQueuePair*, kQps> bs{};
  for (std::size_t i = 0; i < kQps; ++i) {
    std::tie(as[i], bs[i]) =
        world.connect({.send_psn = static_cast<std::uint32_t>(random.below(1U << 24U)),
                       .receive_psn = 0xffffffU - static_cast<std::uint32_t>(random.below(50)),
                       .mtu = kMtu,
                       .ack_timeout = 5,
                       .min_rnr_timer = 1,
                       .rd_atomic_max = 2,
                       .rd_atomic_dest_max = 2});
  }
  world.a.fill(0, kCounter, 11);
  world.b.fill(0, kCounter, 12);
  const std::vector<std::byte> before_a = world.a.memory;
  const std::vector<std::byte> before_b = world.b.memory;
  Direction forth(world.a, world.b, as, root.fork("forth"));
  Direction back(world.b, world.a, bs, root.fork("back"));
  Digest digest;
  const auto run_for = [&](Picoseconds time) {
    // run() stands at the last event when nothing is left: this event makes it the end of the interval.
    world.engine.post(
        time, [](void*, void*) {}, nullptr);
    world.engine.run(world.engine.now() + time);
    forth.poll(digest);
    back.poll(digest);
    digest.add(static_cast<std::uint64_t>(world.engine.now().count()));
  };
  while (!forth.done() || !back.done()) {
    if (!forth.done() && random.chance(0.7)) forth.post_one();
    if (!back.done() && random.chance(0.7)) back.post_one();
    if (random.chance(0.25)) forth.post_receive();
    if (random.chance(0.25)) back.post_receive();
    if (random.chance(0.5)) run_for(Picoseconds{static_cast<std::int64_t>(random.below(5'000'000))});
  }
  run_for(milliseconds{1});
  // Liveness: the network heals and receives are plentiful; all must come to rest.
  chaos_a.active = chaos_b.active = false;
  for (std::size_t i = 0; i < kSlots; ++i) {
    forth.post_receive();
    back.post_receive();
  }
  EXPECT_TRUE(world.run()) << "something never ends";
  run_for(microseconds{1});
  forth.check(before_b);
  back.check(before_a);
  EXPECT_TRUE(world.at_rest());
  EXPECT_TRUE(world.bytes_conserved());
  digest.add(world.a.nic.counters().packets_tx);
  digest.add(world.b.nic.counters().packets_tx);
  return {digest.value(), world.a.nic.counters().packets_retransmitted, world.a.nic.counters().rnr_naks_rx};
}

class NicFuzz : public testing::TestWithParam<std::uint64_t> {};

TEST_P(NicFuzz, random_program__completes_once_in_order_with_right_bytes_and_repeats) {
  Outcome last;
  std::uint64_t rnr_naks = 0;
  for (std::uint64_t seed = GetParam() * 50; seed < (GetParam() + 1) * 50; ++seed) {
    SCOPED_TRACE(seed);
    last = run_program(seed, EngineKind::fast);
    EXPECT_GT(last.retransmitted, 0U) << "the network was to be bad";
    rnr_naks += last.rnr_naks;
    if (HasFailure()) return;
  }
  EXPECT_GT(rnr_naks, 0U) << "receives were to be short";
  const std::uint64_t seed = GetParam() * 50 + 49;
  EXPECT_EQ(run_program(seed, EngineKind::fast).digest, last.digest);
  EXPECT_EQ(run_program(seed, EngineKind::stock).digest, last.digest);
}
INSTANTIATE_TEST_SUITE_P(seeds, NicFuzz, testing::Range(std::uint64_t{0}, std::uint64_t{6}));

// The same programs with selective repeat, a window that is often full, and ACKs that nobody asked for.
TEST_P(NicFuzz, random_program__selective_repeat_completes_it_alike) {
  const RecoveryConfig recovery{.kind = LossRecovery::selective_repeat,
                                .window_packets = 8U << (GetParam() % 3),
                                .ack_every = static_cast<std::uint32_t>(GetParam() % 4)};
  for (std::uint64_t seed = GetParam() * 50; seed < (GetParam() + 1) * 50; ++seed) {
    SCOPED_TRACE(seed);
    const Outcome outcome = run_program(seed, EngineKind::fast, recovery);
    EXPECT_GT(outcome.retransmitted, 0U) << "the network was to be bad";
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace bx::sim
