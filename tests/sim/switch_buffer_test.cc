// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <initializer_list>
#include <optional>

#include "libbx/base/prng.h"
#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::gbps;
using testing::kLossless;
using testing::kLossy;

constexpr std::uint32_t kFrame = 1000;

// Two ports, frames of 1000 bytes, one lossless and one lossy class, alpha 1; the shared pool is 100 frames.
BufferConfig small_config() {
  BufferConfig config{.ports = 2, .frame_bytes_max = kFrame};
  config.classes[kLossless] = {
      .lossless = true, .headroom_bytes = 5 * kFrame, .xon_offset_bytes = 2 * kFrame};
  config.total_bytes = (2 * 5 + 2 + 100) * kFrame;
  return config;
}

int admit_until_xoff(SharedBuffer& buffer, std::uint16_t port, std::uint8_t priority = kLossless) {
  for (int frames = 1; frames < 10000; ++frames) {
    if (buffer.admit(port, priority, kFrame, 0) != Admission::kept) return frames;
  }
  return 0;
}

TEST(Buffer, plan_buffer__divides_the_whole) {
  BufferConfig config = small_config();
  config.classes[kLossy].reserved_bytes = 700;
  const Result<BufferPlan> plan = plan_buffer(config);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reserved_bytes, 1400U);
  EXPECT_EQ(plan->headroom_bytes, 10U * kFrame);
  EXPECT_EQ(plan->crossing_bytes, 2U * kFrame);
  EXPECT_EQ(plan->shared_bytes, 100U * kFrame - 1400);
}

TEST(Buffer, plan_buffer__refuses_what_cannot_be) {
  const auto code_of = [](auto change) {
    BufferConfig config = small_config();
    change(config);
    const Result<BufferPlan> plan = plan_buffer(config);
    return plan ? std::optional<ErrorCode>() : std::optional(plan.error().code);
  };
  EXPECT_EQ(code_of([](BufferConfig&) {}), std::nullopt);
  EXPECT_EQ(code_of([](BufferConfig& c) { c.ports = 0; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](BufferConfig& c) { c.frame_bytes_max = 0; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](BufferConfig& c) { c.classes[0].alpha_log2 = 11; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](BufferConfig& c) { c.classes[kLossy].headroom_bytes = 1; }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](BufferConfig& c) { c.total_bytes = 13 * kFrame - 1; }), ErrorCode::exhausted);
  EXPECT_EQ(code_of([](BufferConfig& c) { c.total_bytes = 13 * kFrame; }), std::nullopt);
}

TEST(Buffer, xoff_threshold_bytes__is_the_fixed_point_of_the_dynamic_threshold) {
  BufferConfig config = small_config();
  EXPECT_EQ(xoff_threshold_bytes(config, kLossless, 1), 50'000U);
  EXPECT_EQ(xoff_threshold_bytes(config, kLossless, 3), 25'000U);
  config.classes[kLossless].alpha_log2 = 1;  // 2 B' / (1 + 2 * 2)
  EXPECT_EQ(xoff_threshold_bytes(config, kLossless, 2), 40'000U);
  config.classes[kLossless].alpha_log2 = -1;  // B' / 2 / (1 + 3 / 2)
  EXPECT_EQ(xoff_threshold_bytes(config, kLossless, 3), 20'000U);
  config.classes[kLossless].reserved_bytes = 500;
  EXPECT_EQ(xoff_threshold_bytes(config, kLossless, 3), 500U + 99'000U / 5);
}

// The figure published for 100 Gb/s, 1 us and frames of 1106 bytes is 27.3 KB.
TEST(Buffer, headroom_needed_bytes__sums_the_terms) {
  HeadroomInputs inputs{
      .rate = gbps(100), .delay = microseconds{1}, .own_frame_bytes = 1106, .peer_frame_bytes = 1106};
  EXPECT_EQ(headroom_needed_bytes(inputs), 1106U + 84 + 25'000 + 1106);
  inputs.response = Picoseconds{80};  // one byte
  EXPECT_EQ(headroom_needed_bytes(inputs), 1106U + 84 + 25'001 + 1106);
  inputs.response = Picoseconds{81};
  EXPECT_EQ(headroom_needed_bytes(inputs), 1106U + 84 + 25'002 + 1106);
}

TEST(SharedBuffer, admit__asks_for_xoff_at_the_predicted_threshold) {
  for (const std::int8_t alpha_log2 : std::initializer_list<std::int8_t>{-2, 0, 3}) {
    BufferConfig config = small_config();
    config.classes[kLossless].alpha_log2 = alpha_log2;
    SharedBuffer buffer(config);
    admit_until_xoff(buffer, 0);
    EXPECT_TRUE(buffer.xoff(0, kLossless));
    EXPECT_FALSE(buffer.xoff(1, kLossless));
    const std::uint64_t x = xoff_threshold_bytes(config, kLossless, 1);
    EXPECT_GE(buffer.used_bytes(0, kLossless), x);
    EXPECT_LT(buffer.used_bytes(0, kLossless), x + kFrame);
  }
}

TEST(SharedBuffer, admit__reserved_bytes_are_granted_whatever_the_others_hold) {
  BufferConfig config = small_config();
  config.classes[kLossless].alpha_log2 = 10;
  config.classes[kLossless].reserved_bytes = 3 * kFrame;
  SharedBuffer buffer(config);
  admit_until_xoff(buffer, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buffer.admit(1, kLossless, kFrame, 0), Admission::kept);
  EXPECT_EQ(buffer.admit(1, kLossless, kFrame, 0), Admission::kept_send_xoff);
}

TEST(SharedBuffer, admit__headroom_is_used_after_xoff_only_and_drops_when_full) {
  SharedBuffer buffer(small_config());
  admit_until_xoff(buffer, 0);
  EXPECT_EQ(buffer.headroom_bytes(0, kLossless), 0U);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(buffer.admit(0, kLossless, kFrame, 0), Admission::kept);
    EXPECT_EQ(buffer.headroom_bytes(0, kLossless), i * kFrame);
  }
  EXPECT_EQ(buffer.admit(0, kLossless, kFrame, 0), Admission::dropped);
  EXPECT_EQ(buffer.admit(1, kLossless, kFrame, 0), Admission::kept);  // the neighbour has room
}

TEST(SharedBuffer, admit__the_crossing_frame_is_kept_also_where_the_threshold_has_fallen_below) {
  BufferConfig config = small_config();
  config.classes[kLossless].headroom_bytes = 0;
  SharedBuffer buffer(config);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(buffer.admit(0, kLossless, kFrame, 0), Admission::kept);
  admit_until_xoff(buffer,
                   1);  // takes so much that port 0 stands over its threshold without a frame of its own
  while (buffer.admit(1, kLossless, kFrame, 0) != Admission::dropped) {
  }
  EXPECT_FALSE(buffer.xoff(0, kLossless));
  int kept = 0;
  while (buffer.admit(0, kLossless, kFrame, 0) == Admission::kept) ++kept;
  EXPECT_TRUE(buffer.xoff(0, kLossless));
  EXPECT_EQ(buffer.admit(0, kLossless, kFrame, 0), Admission::dropped);  // no headroom here
  EXPECT_LE(buffer.used_bytes(), config.total_bytes);
}

TEST(SharedBuffer, admit__lossy_drops_at_the_threshold_of_the_egress_queue) {
  SharedBuffer buffer(small_config());
  std::uint64_t queue = 0;
  while (buffer.admit(0, kLossy, kFrame, queue) == Admission::kept) queue += kFrame;
  EXPECT_EQ(queue, 50U * kFrame);
  EXPECT_EQ(buffer.admit(0, kLossy, kFrame, 0), Admission::kept);  // to another, empty queue
}

TEST(SharedBuffer, admit__a_frame_larger_than_the_largest_is_dropped) {
  SharedBuffer buffer(small_config());
  EXPECT_EQ(buffer.admit(0, kLossless, kFrame + 1, 0), Admission::dropped);
  EXPECT_EQ(buffer.used_bytes(), 0U);
}

TEST(SharedBuffer, release__xon_when_headroom_is_empty_and_the_offset_is_reached) {
  SharedBuffer buffer(small_config());
  const int at_xoff = admit_until_xoff(buffer, 0);
  EXPECT_EQ(at_xoff, 50);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buffer.admit(0, kLossless, kFrame, 0), Admission::kept);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(buffer.release(0, kLossless, kFrame));
  EXPECT_EQ(buffer.headroom_bytes(0, kLossless), 0U);
  // 49 frames: threshold 51, less the offset of 2: that is it.
  EXPECT_TRUE(buffer.release(0, kLossless, kFrame));
  EXPECT_FALSE(buffer.xoff(0, kLossless));
  EXPECT_FALSE(buffer.release(0, kLossless, kFrame));  // said once
}

TEST(SharedBuffer, release__xon_at_the_latest_when_nothing_shared_is_left) {
  BufferConfig config = small_config();
  config.classes[kLossless].xon_offset_bytes = 200 * kFrame;  // out of reach
  SharedBuffer buffer(config);
  const int frames = admit_until_xoff(buffer, 0);
  for (int i = 1; i < frames; ++i) EXPECT_FALSE(buffer.release(0, kLossless, kFrame));
  EXPECT_TRUE(buffer.release(0, kLossless, kFrame));
  EXPECT_EQ(buffer.used_bytes(), 0U);
}

// Sources that stop k frames after XOFF with headroom for k, and lossy ones beside them, in any interleaving:
// the buffer never overflows (a check inside), no lossless frame is dropped, all is given back at the end.
TEST(SharedBuffer, random_walk__never_overflows_and_never_drops_lossless) {
  constexpr std::uint16_t kPorts = 6;
  constexpr std::uint64_t kHeadroomFrames = 4;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng random(seed);
    BufferConfig config{.ports = kPorts, .frame_bytes_max = kFrame};
    const auto alpha_log2 = static_cast<std::int8_t>(static_cast<int>(random.below(8)) - 3);
    config.classes[kLossless] = {.lossless = true,
                                 .alpha_log2 = alpha_log2,
                                 .reserved_bytes = static_cast<std::uint32_t>(random.below(3) * 700),
                                 .headroom_bytes = kHeadroomFrames * kFrame,
                                 .xon_offset_bytes = static_cast<std::uint32_t>(random.below(3) * kFrame)};
    config.classes[kLossy].alpha_log2 = alpha_log2;
    config.total_bytes = kPorts * (kHeadroomFrames + 1) * kFrame + kPorts * 1400 + 30 * kFrame;
    SharedBuffer buffer(config);
    struct Kept {
      std::uint16_t port;
      std::uint8_t priority;
      std::uint32_t bytes;
    };
    std::deque<Kept> queue;
    std::array<std::uint64_t, kPorts> after_xoff{};
    std::uint64_t lossy_bytes = 0;
    std::uint64_t xoffs = 0;
    std::uint64_t xons = 0;
    for (int step = 0; step < 20000; ++step) {
      const auto port = static_cast<std::uint16_t>(random.below(kPorts));
      const std::uint8_t priority = random.below(3) == 0 ? kLossy : kLossless;
      const auto bytes = static_cast<std::uint32_t>(random.between(1, kFrame));
      const bool stopped =
          priority == kLossless && buffer.xoff(port, kLossless) && after_xoff[port] == kHeadroomFrames;
      if (random.below((step / 500) % 2 == 0 ? 4 : 2) != 0 && !stopped) {
        const Admission admission = buffer.admit(port, priority, bytes, lossy_bytes);
        if (priority == kLossless) {
          ASSERT_NE(admission, Admission::dropped);
          after_xoff[port] =
              buffer.xoff(port, kLossless) && admission == Admission::kept ? after_xoff[port] + 1 : 0;
          xoffs += admission == Admission::kept_send_xoff ? 1 : 0;
        } else if (admission == Admission::kept) {
          lossy_bytes += bytes;
        }
        if (admission != Admission::dropped) queue.push_back({port, priority, bytes});
      } else if (!queue.empty()) {
        const Kept kept = queue.front();
        queue.pop_front();
        xons += buffer.release(kept.port, kept.priority, kept.bytes) ? 1 : 0;
        if (kept.priority == kLossy) lossy_bytes -= kept.bytes;
      }
    }
    for (const Kept& kept : queue) xons += buffer.release(kept.port, kept.priority, kept.bytes) ? 1 : 0;
    EXPECT_EQ(buffer.used_bytes(), 0U);
    EXPECT_GT(xoffs, 0U) << seed;
    EXPECT_EQ(xons, xoffs);
    EXPECT_LE(buffer.used_bytes_max(), config.total_bytes);
  }
}

// One buffer gets its frames back at once, the other only when it asks to look again: every outcome, every
// pause and every maximum is the same.
TEST(SharedBuffer, admit__a_view_that_is_not_exact_never_changes_the_outcome) {
  struct Held {
    std::uint16_t port;
    std::uint8_t priority;
    std::uint32_t bytes;
  };
  BufferConfig config = small_config();
  config.classes[kLossless].reserved_bytes = config.classes[kLossy].reserved_bytes = 1500;
  config.total_bytes += 2 * 2 * 1500;
  std::uint64_t asked = 0;
  std::uint64_t xoffs = 0;
  std::uint64_t drops = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Prng random(seed);
    SharedBuffer exact(config);
    SharedBuffer late(config);
    std::deque<Held> held;
    std::deque<Held> owed;  // left, and not given back to `late`
    const auto settle = [&] {
      for (const Held& frame : owed) EXPECT_FALSE(late.release(frame.port, frame.priority, frame.bytes));
      owed.clear();
    };
    for (int step = 0; step < 2000; ++step) {
      if (random.chance(step % 500 < 300 ? 0.7 : 0.3) || held.empty()) {
        const Held frame{static_cast<std::uint16_t>(random.below(2)), random.chance(0.7) ? kLossless : kLossy,
                         static_cast<std::uint32_t>(1 + random.below(kFrame))};
        const std::uint64_t egress = random.below(120) * kFrame;
        const Admission wanted = exact.admit(frame.port, frame.priority, frame.bytes, egress);
        Admission got = late.admit(frame.port, frame.priority, frame.bytes, egress, BufferView::not_emptier);
        if (got == Admission::look_again) {
          ++asked;
          settle();
          got = late.admit(frame.port, frame.priority, frame.bytes, egress);
        }
        ASSERT_EQ(got, wanted) << "seed " << seed << " step " << step;
        xoffs += wanted == Admission::kept_send_xoff ? 1 : 0;
        drops += wanted == Admission::dropped ? 1 : 0;
        if (wanted != Admission::dropped) held.push_back(frame);
      } else {
        const Held frame = held.front();
        held.pop_front();
        // As the switch does: what may end a pause is given back in its turn, after all that is owed.
        const bool may_end = exact.xoff(frame.port, frame.priority);
        const bool ended = exact.release(frame.port, frame.priority, frame.bytes);
        if (may_end) {
          settle();
          ASSERT_EQ(late.release(frame.port, frame.priority, frame.bytes), ended);
        } else {
          ASSERT_FALSE(ended);
          owed.push_back(frame);
        }
      }
      ASSERT_EQ(late.used_bytes_max(), exact.used_bytes_max());
    }
    settle();
    ASSERT_EQ(late.used_bytes(), exact.used_bytes());
  }
  EXPECT_GT(asked, 0U);
  EXPECT_GT(xoffs, 0U);
  EXPECT_GT(drops, 0U);
}

TEST(Buffer, plan_buffer__takes_the_headroom_of_the_ports_or_of_a_pool) {
  BufferConfig config = small_config();
  config.port_headroom_bytes = {3 * kFrame, 7 * kFrame};
  EXPECT_EQ(plan_buffer(config)->headroom_bytes, 10U * kFrame);
  config.headroom_pool_bytes = 8 * kFrame;
  EXPECT_EQ(plan_buffer(config)->headroom_bytes, 8U * kFrame);
  EXPECT_EQ(plan_buffer(config)->shared_bytes, 102U * kFrame);
  config.headroom_pool_bytes = 80 * kFrame;  // more than can be used
  EXPECT_EQ(plan_buffer(config)->headroom_bytes, 10U * kFrame);
  config.port_headroom_bytes.pop_back();
  EXPECT_FALSE(plan_buffer(config).has_value());
}

TEST(SharedBuffer, admit__each_port_has_its_own_headroom) {
  BufferConfig config = small_config();
  config.port_headroom_bytes = {1 * kFrame, 3 * kFrame};
  SharedBuffer buffer(config);
  for (std::uint16_t port = 0; port < 2; ++port) {
    admit_until_xoff(buffer, port);
    const int frames = port == 0 ? 1 : 3;
    for (int i = 0; i < frames; ++i) EXPECT_EQ(buffer.admit(port, kLossless, kFrame, 0), Admission::kept);
    EXPECT_EQ(buffer.admit(port, kLossless, kFrame, 0), Admission::dropped);
  }
}

TEST(SharedBuffer, admit__a_headroom_pool_is_shared_and_comes_back) {
  BufferConfig config = small_config();
  config.headroom_pool_bytes = 6 * kFrame;  // of two times five
  SharedBuffer buffer(config);
  admit_until_xoff(buffer, 0);
  admit_until_xoff(buffer, 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(buffer.admit(0, kLossless, kFrame, 0), Admission::kept);
  EXPECT_EQ(buffer.admit(1, kLossless, kFrame, 0), Admission::kept);
  EXPECT_EQ(buffer.admit(1, kLossless, kFrame, 0), Admission::dropped);
  EXPECT_FALSE(buffer.release(0, kLossless, kFrame));
  EXPECT_EQ(buffer.admit(1, kLossless, kFrame, 0), Admission::kept);
}

TEST(SharedBuffer, admit__a_static_egress_limit_drops_what_ingress_would_keep) {
  BufferConfig config = small_config();
  config.classes[kLossless].egress_bytes_max = 10 * kFrame;
  SharedBuffer buffer(config);
  EXPECT_EQ(buffer.admit(0, kLossless, kFrame, 10 * kFrame - 1), Admission::kept);
  EXPECT_EQ(buffer.admit(0, kLossless, kFrame, 10 * kFrame), Admission::dropped);
  EXPECT_EQ(buffer.used_bytes(), kFrame);
}

TEST(SharedBuffer, release__xon_comes_at_the_floor_also_where_the_threshold_is_lower) {
  BufferConfig config = small_config();
  config.classes[kLossless].alpha_log2 = -4;  // thresholds of a few frames
  config.classes[kLossless].xon_offset_bytes = 50 * kFrame;
  config.classes[kLossless].xon_floor_bytes = 4 * kFrame;
  SharedBuffer buffer(config);
  const int frames = admit_until_xoff(buffer, 0);
  ASSERT_GT(frames, 5);
  for (int left = frames - 1; left > 4; --left) EXPECT_FALSE(buffer.release(0, kLossless, kFrame));
  EXPECT_TRUE(buffer.release(0, kLossless, kFrame));
}

}  // namespace
}  // namespace bx::sim
