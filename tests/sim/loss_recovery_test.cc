// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/loss_recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>

#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kMtu = 256;
constexpr RecoveryConfig kSelective{.kind = LossRecovery::selective_repeat, .window_packets = 64};

// --- The two maps.

TEST(reorder_buffer, keep__takes_a_packet_once_and_within_the_window) {
  FramePool pool;
  ReorderBuffer buffer;
  buffer.start(4);
  Frame frame;
  EXPECT_TRUE(buffer.keep(pool, 100, 104, frame));
  EXPECT_FALSE(buffer.keep(pool, 100, 104, frame)) << "it is there";
  EXPECT_FALSE(buffer.keep(pool, 100, 105, frame)) << "beyond the window";
  EXPECT_TRUE(buffer.keep(pool, 100, 102, frame));
  std::array<std::byte, kReceivedMapBytes> map;
  buffer.write_map(100, map.data());
  EXPECT_EQ(map[0], std::byte{0b1010});
  EXPECT_EQ(buffer.take(pool, 101), nullptr);
  pool.free(buffer.take(pool, 102));
  EXPECT_EQ(buffer.size(), 1U);
  buffer.clear(pool);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(loss_map, mark_lost__names_each_packet_once_until_all_is_sent_again) {
  LossMap map;
  map.start(8, 10);
  map.mark_received(12);
  for (std::uint64_t p = 10; p < 14; ++p) map.mark_lost(p);
  EXPECT_EQ(map.waiting(), 3U);
  EXPECT_EQ(map.take_lost(), 10U);
  map.mark_lost(10);
  EXPECT_EQ(map.take_lost(), 11U);
  map.mark_received(13);
  EXPECT_EQ(map.waiting(), 0U) << "it came after all";
  map.clear();
  map.mark_lost(10);
  EXPECT_EQ(map.waiting(), 1U);
  map.acknowledge_below(12);
  EXPECT_EQ(map.waiting(), 0U);
  map.mark_lost(11);
  map.mark_lost(40);
  EXPECT_EQ(map.waiting(), 0U) << "outside of what is outstanding";
}

// --- Selective repeat.

struct SelectiveWorld {
  explicit SelectiveWorld(const RecoveryConfig& recovery = kSelective)
      : world({.recovery = recovery}), ends(world.connect({.mtu = kMtu})) {
    world.b.filter.lose = [this](const Frame& f) {
      arrived.push_back(f.psn);
      return std::erase(losses, f.psn) > 0;
    };
  }
  void write(std::uint32_t packets) {
    const Segment from = world.a.segment(0, packets * kMtu);
    world.a.fill(0, packets * kMtu, packets);
    world.write(*ends.first, {.id = packets, .from = from});
  }
  World world;
  std::pair<RcQueuePair*, RcQueuePair*> ends;
  std::vector<std::uint32_t> losses;  // PSNs, each lost once
  std::vector<std::uint32_t> arrived;
};

TEST(selective_repeat, lost_packets__are_the_only_ones_sent_again) {
  SelectiveWorld s;
  s.losses = {3, 4, 9, 20};
  s.write(40);
  ASSERT_TRUE(s.world.run());
  EXPECT_EQ(s.world.a.sends().size(), 1U);
  EXPECT_EQ(s.world.a.nic.counters().packets_retransmitted, 4U);
  EXPECT_EQ(s.world.a.nic.counters().timeouts, 0U);
  EXPECT_EQ(s.world.b.nic.counters().sequence_naks_tx, 3U) << "one a hole";
  EXPECT_EQ(s.world.b.nic.counters().packets_duplicate, 0U);
  EXPECT_TRUE(std::ranges::equal(s.world.a.bytes(0, 40 * kMtu), s.world.b.bytes(0, 40 * kMtu)));
  EXPECT_TRUE(s.world.at_rest());
}

TEST(selective_repeat, repetition_that_is_lost__waits_for_the_timeout) {
  SelectiveWorld s;
  s.losses = {3, 3};
  int losses = 2;
  s.world.b.filter.lose = [&](const Frame& f) { return f.psn == 3 && losses-- > 0; };
  s.write(40);
  ASSERT_TRUE(s.world.run());
  EXPECT_EQ(s.world.a.sends().size(), 1U);
  EXPECT_EQ(s.world.a.nic.counters().timeouts, 1U);
  EXPECT_TRUE(std::ranges::equal(s.world.a.bytes(0, 40 * kMtu), s.world.b.bytes(0, 40 * kMtu)));
  EXPECT_TRUE(s.world.at_rest());
}

TEST(selective_repeat, window__bounds_what_is_outstanding) {
  SelectiveWorld s({.kind = LossRecovery::selective_repeat, .window_packets = 16});
  s.world.a.filter.lose = [](const Frame&) { return true; };
  s.write(100);
  s.world.run(microseconds{20});
  EXPECT_EQ(s.arrived.size(), 16U);
}

TEST(selective_repeat, read_requests_and_atomics__are_kept_and_run_in_order) {
  SelectiveWorld s;
  Side& a = s.world.a;
  Side& b = s.world.b;
  const std::uint64_t seven = 7;
  std::memcpy(b.bytes(8192, 8).data(), &seven, 8);
  const std::array<Segment, 3> local{a.segment(0, 8), a.segment(1024, 8), a.segment(4096, 4 * kMtu)};
  std::memcpy(a.bytes(0, 8).data(), &seven, 8);
  s.losses = {0};  // the WRITE of seven to where the atomic adds
  a.post(*s.ends.first, {.id = 1,
                         .segments = {&local[0], 1},
                         .remote_addr = b.at(16384),
                         .rkey = b.keys.rkey,
                         .opcode = RequestOpcode::write});
  a.post(*s.ends.first, {.id = 2,
                         .segments = {&local[1], 1},
                         .remote_addr = b.at(16384),
                         .rkey = b.keys.rkey,
                         .compare_add = 5,
                         .opcode = RequestOpcode::fetch_add});
  a.post(*s.ends.first, {.id = 3,
                         .segments = {&local[2], 1},
                         .remote_addr = b.at(16384),
                         .rkey = b.keys.rkey,
                         .opcode = RequestOpcode::read});
  ASSERT_TRUE(s.world.run());
  EXPECT_EQ(a.sends().size(), 3U);
  std::uint64_t original = 0;
  std::uint64_t after = 0;
  std::memcpy(&original, a.bytes(1024, 8).data(), 8);
  std::memcpy(&after, a.bytes(4096, 8).data(), 8);
  EXPECT_EQ(original, 7U);
  EXPECT_EQ(after, 12U);
  EXPECT_EQ(a.nic.counters().packets_retransmitted, 1U);
}

TEST(selective_repeat, error__gives_the_kept_packets_back) {
  SelectiveWorld s;
  s.losses = {0};
  s.write(10);
  s.world.run(microseconds{2});
  EXPECT_GT(s.world.frames.in_use(), 0U);
  s.ends.second->to_error();
  s.ends.first->to_error();
  ASSERT_TRUE(s.world.run());
  EXPECT_EQ(s.world.frames.in_use(), 0U);
}

TEST(selective_repeat, destroyed_queue_pair__gives_the_kept_packets_back) {
  SelectiveWorld s;
  s.world.b.filter.lose = [](const Frame& f) { return f.psn == 0; };
  s.write(10);
  s.world.run(microseconds{4});
  s.world.b.nic.destroy(*s.ends.second);
  s.ends.first->to_error();
  ASSERT_TRUE(s.world.run());
  EXPECT_EQ(s.world.frames.in_use(), 0U);
}

// --- ACKs that nobody asked for.

TEST(ack_coalescing, every_so_many_packets__get_an_ack) {
  for (const std::uint32_t every : {1U, 5U, 10U}) {
    World world({.ack_interval = 1000, .recovery = {.ack_every = every, .ack_delay = milliseconds{1}}});
    const auto [qa, qb] = world.connect({.mtu = kMtu});
    const Segment from = world.a.segment(0, 50 * kMtu);
    world.write(*qa, {.id = 1, .from = from});
    ASSERT_TRUE(world.run());
    // The last packet asks, and its ACK is also that of the last full group.
    EXPECT_EQ(world.b.nic.counters().acks_tx, 50U / every) << every;
  }
}

TEST(ack_coalescing, fewer__get_one_after_the_delay) {
  World world({.ack_interval = 1000, .recovery = {.ack_every = 100, .ack_delay = microseconds{3}}});
  const auto [qa, qb] = world.connect({.mtu = kMtu});
  std::vector<Picoseconds> acks;
  Picoseconds first{};
  world.a.filter.lose = [&](const Frame&) {
    acks.push_back(world.engine.now());
    return false;
  };
  world.b.filter.lose = [&](const Frame& f) {
    if (f.psn == 0) first = world.engine.now();
    return f.psn >= 4;  // the end of the message never comes
  };
  const Segment from = world.a.segment(0, 8 * kMtu);
  world.write(*qa, {.id = 1, .from = from});
  world.run(microseconds{50});
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0], first + microseconds{3} + Picoseconds{86 * 80} + microseconds{1});
  EXPECT_EQ(world.a.nic.audit().sends_outstanding, 1U);
}

TEST(ack_coalescing, off__acknowledges_only_when_asked) {
  World world({.ack_interval = 1000});
  const auto [qa, qb] = world.connect({.mtu = kMtu});
  const Segment from = world.a.segment(0, 50 * kMtu);
  world.write(*qa, {.id = 1, .from = from});
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.b.nic.counters().acks_tx, 1U);
}

// --- The property: whatever the network does to a finite number of frames, every message arrives once and in
// order, with its bytes.

enum class Fate : std::uint8_t { pass, lose, twice, late };

// Does what the script says to one arriving frame after another; later ones pass.
class ScriptedFilter final : public FrameFilter {
 public:
  ScriptedFilter(Engine& engine, Nic& nic, std::vector<Fate> script)
      : engine_(engine), nic_(nic), script_(std::move(script)) {
    nic.set_filter(this);
  }
  void filter(Nic& nic, Frame* frame) override {
    const Fate fate = next_ < script_.size() ? script_[next_++] : Fate::pass;
    switch (fate) {
      case Fate::pass:
        return nic.accept(frame);
      case Fate::lose:
        return nic.frames().free(frame);
      case Fate::late:
        return later(frame);
      case Fate::twice:
        later(copy(*frame));
        return nic.accept(frame);
    }
  }

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
    engine_.post(
        nanoseconds{700},
        [](void* nic, void* held) { static_cast<Nic*>(nic)->accept(static_cast<Frame*>(held)); }, &nic_,
        frame);
  }
  Engine& engine_;
  Nic& nic_;
  std::vector<Fate> script_;
  std::size_t next_ = 0;
};

rc::Gen<std::vector<Fate>> any_script() {
  return rc::gen::container<std::vector<Fate>>(
      rc::gen::weightedElement<Fate>({{6, Fate::pass}, {2, Fate::lose}, {1, Fate::twice}, {1, Fate::late}}));
}

// No more losses than retry_cnt, or one packet might meet them all.
void spare_retries(std::vector<Fate>& one, std::vector<Fate>& other) {
  int left = 7;
  for (auto* script : {&one, &other}) {
    for (Fate& fate : *script) {
      if (fate == Fate::lose && left-- <= 0) fate = Fate::late;
    }
  }
}

void check_property(const RecoveryConfig& recovery) {
  const auto lengths =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 3000));
  const auto sends = *rc::gen::container<std::vector<bool>>(lengths.size(), rc::gen::arbitrary<bool>());
  World world({.ack_interval = 4, .recovery = recovery});
  std::vector<Fate> fates_at_a = *any_script();
  std::vector<Fate> fates_at_b = *any_script();
  spare_retries(fates_at_a, fates_at_b);
  ScriptedFilter at_a(world.engine, world.a.nic, fates_at_a);
  ScriptedFilter at_b(world.engine, world.b.nic, fates_at_b);
  const auto [qa, qb] = world.connect({.mtu = kMtu, .ack_timeout = 4});
  constexpr std::size_t kRoom = 3000;
  RC_PRE(lengths.size() * kRoom <= world.a.memory.size());
  world.a.fill(0, world.a.memory.size(), 3);
  std::vector<std::uint32_t> expected;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Segment from = world.a.segment(i * kRoom, lengths[i]);
    if (sends[i]) {
      world.b.receive_into(i, {world.b.segment(i * kRoom, kRoom)});
      expected.push_back(static_cast<std::uint32_t>(i));
    }
    world.a.post(*qa, {.id = i,
                       .segments = {&from, 1},
                       .remote_addr = world.b.at(i * kRoom),
                       .rkey = world.b.keys.rkey,
                       .imm = static_cast<std::uint32_t>(i),
                       .opcode = sends[i] ? RequestOpcode::send_with_imm : RequestOpcode::write});
  }
  RC_ASSERT(world.run());
  const auto done = world.a.sends();
  RC_ASSERT(done.size() == lengths.size());
  for (std::size_t i = 0; i < done.size(); ++i) {
    RC_ASSERT(done[i].id == i && done[i].status == CompletionStatus::success);
    RC_ASSERT(std::ranges::equal(world.a.bytes(i * kRoom, lengths[i]), world.b.bytes(i * kRoom, lengths[i])));
  }
  std::vector<std::uint32_t> received;
  for (const WorkCompletion& c : world.b.receives()) received.push_back(c.imm);
  RC_ASSERT(received == expected);
  RC_ASSERT(world.at_rest());
  RC_ASSERT(world.bytes_conserved());
}

TEST(loss_recovery, go_back_n__delivers_every_message_once_and_in_order) {
  EXPECT_TRUE(rc::check([] { check_property({}); }));
}

TEST(loss_recovery, selective_repeat__delivers_every_message_once_and_in_order) {
  EXPECT_TRUE(rc::check([] {
    check_property({.kind = LossRecovery::selective_repeat,
                    .window_packets = *rc::gen::inRange<std::uint32_t>(1, 100),
                    .ack_every = *rc::gen::inRange<std::uint32_t>(0, 5)});
  }));
}

}  // namespace
}  // namespace bx::sim
