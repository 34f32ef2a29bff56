// SPDX-License-Identifier: GPL-2.0-only
// Two partitions with a switch each, and what the windows of a run promise: order, limits, stop().
#include "sim/model/partitions.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "sim/model/topology_shapes.h"
#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::gbps;

PartitionPlan two() {
  const LinkSpeed speed{gbps(100), microseconds{1}};
  return plan_partitions(dumbbell({.left = 1, .right = 1, .host_link = speed, .bottleneck = speed}), 2)
      .value();
}

class PartitionsTest : public ::testing::Test {
 protected:
  // Its time is put down when it comes.
  void post(std::size_t partition, Picoseconds delay) {
    partitions_.engine(partition).post(delay, &note, this, &seen_[partition]);
  }
  static void note(void* test, void* seen) {
    auto& self = *static_cast<PartitionsTest*>(test);
    auto& list = *static_cast<std::vector<Picoseconds>*>(seen);
    list.push_back(self.partitions_.engine(&list == self.seen_.data() ? 0 : 1).now());
  }

  Engine engine_{EngineKind::fast};
  FramePool frames_;
  Partitions partitions_{engine_, frames_, two()};
  std::array<std::vector<Picoseconds>, 2> seen_;
};

TEST_F(PartitionsTest, run__ends_at_the_limit_and_goes_on_from_there) {
  for (const std::int64_t us : {1, 5, 9}) {
    post(0, microseconds{us});
    post(1, microseconds{us} + nanoseconds{500});
  }
  EXPECT_FALSE(partitions_.run(microseconds{5}, 2));
  EXPECT_EQ(seen_[0], (std::vector<Picoseconds>{microseconds{1}, microseconds{5}}));
  EXPECT_EQ(seen_[1], (std::vector<Picoseconds>{nanoseconds{1500}}));
  EXPECT_EQ(partitions_.engine(0).now(), microseconds{5});
  EXPECT_EQ(partitions_.engine(1).now(), microseconds{5});
  EXPECT_TRUE(partitions_.run(milliseconds{1000}, 2));
  EXPECT_EQ(seen_[1].size(), 3U);
  EXPECT_EQ(partitions_.engine(0).now(), nanoseconds{9500});  // of the last event, as of one engine
  EXPECT_EQ(partitions_.engine(1).now(), nanoseconds{9500});
  EXPECT_EQ(partitions_.events(), 6U);
}

TEST_F(PartitionsTest, run__stopped_in_one_partition_ends_with_the_window) {
  partitions_.engine(1).post(
      microseconds{3}, [](void* engine, void*) { static_cast<Engine*>(engine)->stop(); },
      &partitions_.engine(1));
  post(0, microseconds{3} + nanoseconds{999});
  post(0, microseconds{5});
  EXPECT_FALSE(partitions_.run(milliseconds{1000}, 1));
  EXPECT_EQ(seen_[0].size(), 1U);  // of this window
  EXPECT_TRUE(partitions_.run(milliseconds{1000}, 1));
  EXPECT_EQ(seen_[0].size(), 2U);
}

TEST_F(PartitionsTest, run__with_nothing_to_do_ends_at_once) {
  EXPECT_TRUE(partitions_.run(milliseconds{1000}, 2));
  EXPECT_EQ(partitions_.engine(0).now(), Picoseconds{});
}

TEST(Mailbox, send__copies_the_frame_and_its_payload) {
  FramePool sender;
  FramePool receiver;
  Mailbox box;
  std::array<std::byte, 64> port{};  // only its address counts
  Port& to = *reinterpret_cast<Port*>(port.data());
  std::uint64_t window = 1;
  box.give_back(window, sender);
  for (std::uint32_t psn = 0; psn < 2; ++psn) {
    Frame* frame = sender.make();
    frame->psn = psn;
    frame->payload_bytes = 3;
    frame->payload = sender.make_payload();
    std::memcpy(frame->payload, "abc", 3);
    box.send(100 - psn, to, frame, sender);
  }
  EXPECT_EQ(sender.in_use(), 0U);
  EXPECT_EQ(sender.payloads_in_use(), 2U);  // the receiver has yet to read them
  EXPECT_EQ(box.earliest(), 99);

  ++window;
  std::vector<std::uint32_t> taken;
  box.take(window, receiver, [&](std::int64_t time, Port& port_of, Frame* frame) {
    EXPECT_EQ(&port_of, &to);
    EXPECT_EQ(time, 100 - frame->psn);
    EXPECT_EQ(std::memcmp(frame->payload, "abc", 3), 0);
    taken.push_back(frame->psn);
    receiver.free(frame);
  });
  EXPECT_EQ(taken, (std::vector<std::uint32_t>{0, 1}));
  box.give_back(window, sender);
  EXPECT_EQ(sender.payloads_in_use(), 2U);  // the other list
  ++window;
  box.give_back(window, sender);
  EXPECT_EQ(sender.payloads_in_use(), 0U);
  EXPECT_EQ(receiver.payloads_in_use(), 0U);
  box.take(window + 1, receiver, [](std::int64_t, Port&, Frame*) { FAIL() << "nothing was sent"; });
}

}  // namespace
}  // namespace bx::sim
