// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/lane.h"

#include <algorithm>
#include <deque>

#include "libbx/engine/gather.h"
#include "libbx/engine/wr_id.h"
#include "tests/engine/world.h"

namespace bx::engine {
namespace {

using fabric::Opcode;
using fabric::SendFlags;

SendRecord of(SendRecord::Use use) {
  SendRecord record;
  record.use = use;
  return record;
}

// A queue pair that writes down what it is given and takes as much as it is told to.
struct FakeQueuePair final : fabric::QueuePair {
  struct Posted {
    fabric::SendWr wr;
    std::vector<fabric::Sge> sges;
    std::string bytes;  // what an inlined or gathered request would send now
  };
  [[nodiscard]] fabric::QpAddress address() const noexcept override { return {}; }
  Result<> connect(const fabric::QpAddress&, const fabric::PathConfig&) override { return {}; }
  std::size_t post_send(std::span<const fabric::SendWr> requests) noexcept override {
    ++doorbells;
    const std::size_t count = std::min(requests.size(), takes);
    for (const fabric::SendWr& wr : requests.first(count)) {
      Posted one{wr, {wr.sges.begin(), wr.sges.end()}, {}};
      if (wr.opcode == Opcode::send) {
        for (const fabric::Sge& sge : wr.sges) {
          one.bytes.append(reinterpret_cast<const char*>(sge.addr), sge.length);
        }
      }
      posted.push_back(std::move(one));
    }
    takes -= count;
    return count;
  }
  void fail() noexcept override { failed = true; }
  std::deque<Posted> posted;
  std::size_t takes = 1U << 30U;
  std::uint32_t doorbells = 0;
  bool failed = false;
};

// Makes FakeQueuePairs; everything else is the loopback device's.
struct FakeDevice final : fabric::Device {
  explicit FakeDevice(fabric::Device& real) : inner(real) {}
  [[nodiscard]] const fabric::DeviceCaps& caps() const noexcept override { return inner.caps(); }
  Result<std::unique_ptr<fabric::MemoryRegion>> register_memory(std::span<std::byte> bytes,
                                                                fabric::Access access) override {
    return inner.register_memory(bytes, access);
  }
  Result<std::unique_ptr<fabric::CompletionQueue>> create_cq(const fabric::CqConfig& config) override {
    return inner.create_cq(config);
  }
  Result<std::unique_ptr<fabric::SharedReceiveQueue>> create_srq(const fabric::SrqConfig& config) override {
    return inner.create_srq(config);
  }
  Result<std::unique_ptr<fabric::QueuePair>> create_qp(const fabric::QpConfig& config) override {
    if (refuse) return fail(ErrorCode::exhausted, ErrorScope::operation, "no queue pairs left");
    qp_config = config;
    auto made = std::make_unique<FakeQueuePair>();
    qp = made.get();
    return made;
  }
  std::size_t poll_events(std::span<fabric::DeviceEvent> out) noexcept override {
    return inner.poll_events(out);
  }
  void set_event_waker(fabric::Waker*) noexcept override {}

  fabric::Device& inner;
  fabric::QpConfig qp_config;
  FakeQueuePair* qp = nullptr;
  bool refuse = false;
};

class LaneTest : public ::testing::Test {
 protected:
  LaneTest() {
    arena_ = std::move(*memory::Arena::create(device_, system_, {.bytes = 16U << 20U}));
    cq_ = std::move(*device_.create_cq({.depth = 16}));
    srq_ = std::move(*device_.create_srq({.depth = 16}));
  }
  void make(const Lane::Limits& limits) {
    lane_ = std::move(*Lane::create(device_, *arena_, *cq_, *srq_, 5, limits));
  }
  void stage(std::string_view envelope, SendRecord record = {}) {
    std::memcpy(lane_->next_envelope(), envelope.data(), envelope.size());
    lane_->stage_message(envelope.size(), std::move(record));
  }
  Buffer buffer(std::string_view text) {
    Buffer out = arena_->allocate(text.size()).value();
    std::memcpy(out.data(), text.data(), text.size());
    return out;
  }
  // Completes number `number`; returns how many retired, or -1 if it is unknown.
  int complete(std::uint32_t number) {
    int count = 0;
    return lane_->on_completion(number,
                                [&](SendRecord record) {
                                  retired_.push_back(record.use);
                                  ++count;
                                })
               ? count
               : -1;
  }
  static std::uint32_t number_of(const FakeQueuePair::Posted& posted) {
    return decode(posted.wr.wr_id).number;
  }

  loopback::LoopbackFabric fabric_;
  std::unique_ptr<fabric::Host> host_ = fabric_.open_host("host").value();
  FakeDevice device_{host_->device()};
  memory::LinuxMemory system_;
  std::unique_ptr<memory::Arena> arena_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::unique_ptr<fabric::SharedReceiveQueue> srq_;
  std::unique_ptr<Lane> lane_;
  std::vector<SendRecord::Use> retired_;
};

constexpr Lane::Limits kLimits{.depth = 8, .inline_max = 64, .control_reserve = 2};

TEST_F(LaneTest, create__asks_for_a_queue_pair_of_its_limits) {
  make(kLimits);
  EXPECT_EQ(device_.qp_config.send_depth, 8U);
  EXPECT_EQ(device_.qp_config.sges_max, 2U);
  EXPECT_EQ(device_.qp_config.inline_max, 64U);
  EXPECT_EQ(lane_->free_slots(), 8U);
  EXPECT_EQ(lane_->data_slots(), 6U);
  EXPECT_TRUE(lane_->quiet());
}

TEST_F(LaneTest, create__gives_its_memory_back_when_the_device_refuses) {
  device_.refuse = true;
  EXPECT_EQ(Lane::create(device_, *arena_, *cq_, *srq_, 0, kLimits).error().code, ErrorCode::exhausted);
  EXPECT_EQ(arena_->bytes_in_use(), 0U);
}

TEST_F(LaneTest, stage_message__inlines_what_fits_and_frees_the_buffer_at_once) {
  make(kLimits);
  const std::uint64_t before = arena_->bytes_in_use();
  stage("head", {.buffer = buffer("payload")});
  EXPECT_EQ(arena_->bytes_in_use(), before);
  EXPECT_FALSE(lane_->quiet());  // staged
  const auto flushed = lane_->flush();
  EXPECT_EQ(flushed.sends, 1U);
  EXPECT_EQ(flushed.doorbells, 1U);
  EXPECT_FALSE(flushed.more);
  const auto& posted = device_.qp->posted.front();
  EXPECT_EQ(posted.bytes, "headpayload");
  EXPECT_EQ(posted.wr.flags, SendFlags::inlined);  // and not signalled
  EXPECT_EQ(decode(posted.wr.wr_id), (WrTag{WrKind::send, 5, 0}));
  EXPECT_TRUE(lane_->quiet());
  EXPECT_EQ(lane_->outstanding(), 1U);
}

TEST_F(LaneTest, stage_message__gathers_what_does_not_and_holds_the_buffer) {
  make(kLimits);
  const std::string text(61, 'x');  // one byte too many
  stage("head", {.window_bytes = 61, .buffer = buffer(text)});
  (void)lane_->flush();
  const auto& posted = device_.qp->posted.front();
  EXPECT_EQ(posted.bytes, "head" + text);
  EXPECT_EQ(posted.sges.size(), 2U);
  EXPECT_EQ(posted.wr.flags, SendFlags::signaled);
  EXPECT_FALSE(lane_->quiet());
  const std::uint64_t held = arena_->bytes_in_use();
  EXPECT_EQ(complete(0), 1);
  EXPECT_LT(arena_->bytes_in_use(), held);
  EXPECT_TRUE(lane_->quiet());
}

// A length of 0 is 2 GiB to some NICs.
TEST_F(LaneTest, stage_message__of_no_payload_has_no_element_for_it) {
  make({.depth = 8, .inline_max = 0, .control_reserve = 2});
  stage("head");
  stage("head", {.buffer = Buffer{}});
  (void)lane_->flush();
  for (const auto& posted : device_.qp->posted) {
    ASSERT_EQ(posted.sges.size(), 1U);
    EXPECT_EQ(posted.sges[0].length, 4U);
    EXPECT_FALSE(fabric::has(posted.wr.flags, SendFlags::inlined));
  }
}

TEST_F(LaneTest, stage_message__of_several_parts_has_an_element_for_each) {
  make({.depth = 8, .inline_max = 8, .control_reserve = 2, .parts_max = 3});
  EXPECT_EQ(device_.qp_config.sges_max, 4U);
  GatherPool pool(2);
  const std::uint64_t before = arena_->bytes_in_use();
  stage("head",
        {.window_bytes = 9, .buffer = pool.make(Gather(buffer("one"), buffer("two"), buffer("xyz")))});
  stage("HEAD", {.window_bytes = 6, .buffer = pool.make(Gather(buffer("abc"), buffer("def")))});
  EXPECT_TRUE(pool.full());
  (void)lane_->flush();
  EXPECT_EQ(device_.qp->posted[0].bytes, "headonetwoxyz");
  EXPECT_EQ(device_.qp->posted[0].sges.size(), 4U);
  EXPECT_EQ(device_.qp->posted[1].bytes, "HEADabcdef");
  EXPECT_GT(arena_->bytes_in_use(), before);
  EXPECT_EQ(complete(1), 2);
  EXPECT_EQ(arena_->bytes_in_use(), before);
  EXPECT_FALSE(pool.full());
}

TEST_F(LaneTest, stage_fence__is_signalled_and_keeps_the_lane_from_being_quiet) {
  make(kLimits);
  stage("head", {.buffer = buffer("payload")});  // inlined: no completion of its own
  lane_->stage_fence();
  (void)lane_->flush();
  EXPECT_EQ(device_.qp->posted[1].wr.opcode, Opcode::rdma_write);
  EXPECT_TRUE(fabric::has(device_.qp->posted[1].wr.flags, SendFlags::signaled));
  EXPECT_FALSE(lane_->quiet());
  EXPECT_EQ(complete(1), 2);
  EXPECT_TRUE(lane_->quiet());
}

TEST_F(LaneTest, follow__puts_a_message_behind_the_one_staged_last) {
  make({.depth = 8, .inline_max = 64, .batch_max = 128, .control_reserve = 2});
  EXPECT_FALSE(lane_->may_follow(0));  // nothing is staged
  stage(std::string(30, 'h'));
  ASSERT_TRUE(lane_->may_follow(4));
  lane_->follow({.kind = wire::MessageKind::response, .body_bytes = 4, .session = 1, .call = 2},
                reinterpret_cast<const std::byte*>("body"));
  EXPECT_EQ(lane_->outstanding(), 1U);
  lane_->flush();
  ASSERT_EQ(device_.qp->posted.size(), 1U);
  const auto& posted = device_.qp->posted.front();
  EXPECT_EQ(posted.bytes.size(), 32U + wire::kFollowerBytes + 4);
  EXPECT_EQ(posted.bytes.substr(28, 4), std::string("hh") + std::string(2, 0));
  // Added to the flags that the header has.
  EXPECT_EQ(posted.bytes[2], static_cast<char>('h' | static_cast<int>(wire::MessageFlags::followed)));
  EXPECT_EQ(posted.bytes.substr(48), "body");
  EXPECT_TRUE(fabric::has(posted.wr.flags, SendFlags::inlined));
  EXPECT_FALSE(lane_->may_follow(0));  // it is posted
}

TEST_F(LaneTest, follow__beyond_what_the_device_inlines_is_gathered) {
  make({.depth = 8, .inline_max = 64, .batch_max = 128, .control_reserve = 2});
  stage(std::string(30, 'h'));
  const std::vector<std::byte> body(40);
  lane_->follow({.body_bytes = 40}, body.data());
  lane_->flush();
  const auto& posted = device_.qp->posted.front();
  EXPECT_FALSE(fabric::has(posted.wr.flags, SendFlags::inlined));
  ASSERT_EQ(posted.sges.size(), 1U);
  EXPECT_EQ(posted.sges[0].length, 88U);
  EXPECT_NE(posted.sges[0].lkey, fabric::LKey{0});
}

TEST_F(LaneTest, may_follow__up_to_the_limit_and_only_what_was_staged_last) {
  make({.depth = 8, .inline_max = 64, .batch_max = 128, .control_reserve = 2});
  stage(std::string(32, 'h'));
  EXPECT_TRUE(lane_->may_follow(128 - 32 - wire::kFollowerBytesMax));
  EXPECT_FALSE(lane_->may_follow(128 - 32 - wire::kFollowerBytesMax + 1));
  lane_->stage_notify(1);
  EXPECT_FALSE(lane_->may_follow(0));
  stage(std::string(32, 'h'));
  lane_->end_batch();
  EXPECT_FALSE(lane_->may_follow(0));
  lane_->set_batch_max(0);
  stage(std::string(32, 'h'));
  EXPECT_FALSE(lane_->may_follow(0));
  stage(std::string(60, 'h'), {.buffer = buffer("not inlined")});
  EXPECT_FALSE(lane_->may_follow(0));
}

TEST_F(LaneTest, stage__signals_whatever_holds_something) {
  make({.depth = 64, .inline_max = 64, .control_reserve = 2});
  stage("free");
  lane_->stage_read({1, 2, fabric::LKey{3}}, {4, fabric::RKey{5}}, of(SendRecord::Use::read));
  lane_->stage_write({1, 2, fabric::LKey{3}}, {4, fabric::RKey{5}}, of(SendRecord::Use::write));
  lane_->stage_notify(77);
  (void)lane_->flush();
  ASSERT_EQ(device_.qp->posted.size(), 4U);
  EXPECT_FALSE(has(device_.qp->posted[0].wr.flags, SendFlags::signaled));
  for (std::size_t i = 1; i < 4; ++i) EXPECT_TRUE(has(device_.qp->posted[i].wr.flags, SendFlags::signaled));
  EXPECT_EQ(device_.qp->posted[1].wr.opcode, Opcode::rdma_read);
  EXPECT_EQ(device_.qp->posted[1].sges[0].addr, 1U);
  EXPECT_EQ(device_.qp->posted[1].wr.remote.addr, 4U);
  EXPECT_EQ(device_.qp->posted[2].wr.opcode, Opcode::rdma_write);
  EXPECT_EQ(device_.qp->posted[3].wr.opcode, Opcode::rdma_write_with_imm);
  EXPECT_EQ(device_.qp->posted[3].wr.imm, 77U);
  EXPECT_TRUE(device_.qp->posted[3].sges.empty());
}

// Slots of data must come back without other traffic, whatever is reserved: among those that data can fill
// there is a signalled one, and behind the last one retired two are free, as a WRITE and its notice need.
TEST_F(LaneTest, stage__signals_often_enough_for_any_reserve) {
  for (const auto& [depth, reserve] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {8, 1}, {8, 4}, {9, 3}, {68, 64}, {128, 4}, {100, 64}}) {
    SCOPED_TRACE(::testing::Message() << depth << " less " << reserve);
    make({.depth = depth, .inline_max = 64, .control_reserve = reserve});
    std::uint32_t number = 0;
    for (int round = 0; round < 50; ++round) {
      ASSERT_GE(lane_->data_slots(), 2U);
      while (lane_->data_slots() > 0) stage("x");
      (void)lane_->flush();
      for (const auto& posted : device_.qp->posted) {
        if (!has(posted.wr.flags, SendFlags::signaled)) continue;
        ASSERT_GT(complete(number_of(posted)), 0);
        ++number;
      }
      device_.qp->posted.clear();
    }
    EXPECT_GT(number, 49U);
    lane_.reset();
  }
}

TEST_F(LaneTest, on_completion__retires_everything_up_to_it_in_order) {
  make({.depth = 64, .inline_max = 64, .control_reserve = 2});
  stage("a");
  stage("b");
  lane_->stage_notify(1);
  lane_->stage_read({}, {}, of(SendRecord::Use::read));
  (void)lane_->flush();
  EXPECT_EQ(complete(2), 3);
  EXPECT_EQ(retired_,
            (std::vector{SendRecord::Use::nothing, SendRecord::Use::nothing, SendRecord::Use::notify}));
  EXPECT_EQ(lane_->outstanding(), 1U);
  EXPECT_EQ(complete(3), 1);
}

TEST_F(LaneTest, on_completion__refuses_numbers_that_are_not_outstanding) {
  make(kLimits);
  stage("a");
  stage("b");
  EXPECT_EQ(complete(0), -1);  // staged only
  (void)lane_->flush();
  EXPECT_EQ(complete(2), -1);
  EXPECT_EQ(complete(0xffffffff), -1);
  EXPECT_EQ(complete(1), 2);
  EXPECT_EQ(complete(1), -1);  // twice
  EXPECT_EQ(complete(0), -1);
}

TEST_F(LaneTest, flush__keeps_what_the_provider_did_not_take) {
  make(kLimits);
  for (const char* text : {"a", "b", "c"}) stage(text);
  device_.qp->takes = 2;
  EXPECT_TRUE(lane_->flush().more);
  EXPECT_TRUE(lane_->flush().more);  // nothing at all this time
  EXPECT_EQ(complete(2), -1);
  device_.qp->takes = 9;
  stage("d");
  EXPECT_FALSE(lane_->flush().more);
  std::string all;
  for (const auto& posted : device_.qp->posted) all += posted.bytes;
  EXPECT_EQ(all, "abcd");
  EXPECT_EQ(lane_->flush().doorbells, 0U);
}

// Where the sequence number wraps, every outstanding request still has a place of its own for its header.
TEST_F(LaneTest, stage_message__keeps_places_apart_when_the_number_wraps) {
  make({.depth = 100, .inline_max = 0, .control_reserve = 1, .first_number = 0xffffffff - 49});
  for (int i = 0; i < 100; ++i) stage(std::to_string(1000 + i));
  (void)lane_->flush();
  std::vector<std::uint64_t> places;
  for (std::size_t i = 0; i < 100; ++i) {
    const auto& posted = device_.qp->posted[i];
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(posted.sges[0].addr), 4), std::to_string(1000 + i));
    places.push_back(posted.sges[0].addr);
  }
  std::ranges::sort(places);
  EXPECT_EQ(std::ranges::adjacent_find(places), places.end());
  EXPECT_EQ(complete(49), 100);  // 2^32 - 50 .. 49
  EXPECT_EQ(lane_->outstanding(), 0U);
}

TEST_F(LaneTest, fail__hands_back_what_was_only_staged) {
  make(kLimits);
  lane_->stage_read({}, {}, of(SendRecord::Use::read));
  (void)lane_->flush();
  lane_->stage_write({}, {}, of(SendRecord::Use::write));
  lane_->stage_notify(0);
  std::vector<SendRecord::Use> back;
  lane_->fail([&](SendRecord record) { back.push_back(record.use); });
  EXPECT_TRUE(device_.qp->failed);
  EXPECT_TRUE(lane_->failed());
  std::ranges::sort(back);
  EXPECT_EQ(back, (std::vector{SendRecord::Use::write, SendRecord::Use::notify}));
  EXPECT_EQ(lane_->outstanding(), 1U);
  EXPECT_EQ(device_.qp->posted.size(), 1U);  // the READ is signalled: it brings its own completion
  EXPECT_EQ(complete(0), 1);
}

// Requests that were carried out before the failure give no completion unless something follows them.
TEST_F(LaneTest, fail__follows_unsignalled_requests_by_one_that_is_signalled) {
  make({.depth = 64, .inline_max = 64, .control_reserve = 2});
  stage("a");
  stage("b");
  (void)lane_->flush();
  lane_->fail([](SendRecord) {});
  ASSERT_EQ(device_.qp->posted.size(), 3U);
  EXPECT_TRUE(has(device_.qp->posted[2].wr.flags, SendFlags::signaled));
  EXPECT_EQ(complete(2), 3);
  EXPECT_EQ(retired_.back(), SendRecord::Use::drain);
  EXPECT_EQ(lane_->outstanding(), 0U);
  EXPECT_EQ(device_.qp->posted.size(), 3U);
}

TEST_F(LaneTest, fail__counts_on_from_what_was_posted) {
  make({.depth = 64, .inline_max = 64, .control_reserve = 2});
  stage("a");
  (void)lane_->flush();
  for (const char* text : {"b", "c", "d"}) stage(text);
  lane_->fail([](SendRecord) {});
  EXPECT_EQ(number_of(device_.qp->posted.back()), 1U);
  EXPECT_EQ(complete(1), 2);
  EXPECT_EQ(lane_->outstanding(), 0U);
}

TEST_F(LaneTest, fail__drains_later_if_every_slot_is_taken_or_the_provider_is_short) {
  make({.depth = 8, .inline_max = 64, .control_reserve = 1});  // every second one is signalled
  for (int i = 0; i < 8; ++i) stage("x");
  (void)lane_->flush();
  device_.qp->posted.clear();
  EXPECT_EQ(complete(1), 2);
  stage("x");
  (void)lane_->flush();
  device_.qp->takes = 0;
  lane_->fail([](SendRecord) {});
  EXPECT_TRUE(lane_->drain());
  device_.qp->takes = 1;
  EXPECT_FALSE(lane_->drain());
  EXPECT_EQ(number_of(device_.qp->posted.back()), 9U);
  EXPECT_EQ(complete(9), 8);
  EXPECT_EQ(lane_->outstanding(), 0U);
}

using LaneDeathTest = LaneTest;

TEST_F(LaneDeathTest, stage__beyond_the_depth_dies) {
  make(kLimits);
  for (int i = 0; i < 8; ++i) stage("x");
  EXPECT_EQ(lane_->free_slots(), 0U);
  EXPECT_DEATH(stage("x"), "without a free slot");
}

}  // namespace
}  // namespace bx::engine
