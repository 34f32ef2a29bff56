// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch_profiles.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/sim/traffic.h"
#include "tests/sim/validation.h"

namespace bx::sim {
namespace {

using testing::gbps;
using testing::kForever;
using testing::kLossless;
using testing::Star;
using testing::star_config;
using testing::StarConfig;

TEST(Profiles, find_buffer_profile__by_name_and_each_names_its_source) {
  std::set<std::string_view> names;
  for (const BufferProfile& profile : buffer_profiles()) {
    EXPECT_EQ(find_buffer_profile(profile.name), &profile);
    EXPECT_TRUE(profile.source.starts_with("sonic-buildimage device/"));
    names.insert(profile.name);
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"td2", "th", "th2", "td3", "spectrum"}));
  EXPECT_EQ(find_buffer_profile("TD2"), nullptr);
}

TEST(Profiles, headroom_of__the_next_longer_cable_or_the_formula) {
  const BufferProfile& td2 = *find_buffer_profile("td2");
  EXPECT_EQ(headroom_of(td2, gbps(100), nanoseconds{25}, 4206), 47216U);
  EXPECT_EQ(headroom_of(td2, gbps(100), nanoseconds{26}, 4206), 52624U);
  EXPECT_EQ(headroom_of(td2, gbps(100), nanoseconds{1500}, 4206), 91728U);
  EXPECT_EQ(headroom_of(td2, gbps(100), nanoseconds{2000}, 4206), 2U * 4206 + 84 + 50'000);
  EXPECT_EQ(headroom_of(td2, gbps(25), nanoseconds{25}, 4206), 2U * 4206 + 84 + 157);
  EXPECT_EQ(headroom_of(*find_buffer_profile("spectrum"), gbps(100), nanoseconds{1500}, 4206),
            2U * 4206 + 84 + 37'500);
}

class ProfileTest : public ::testing::TestWithParam<const char*> {};

// Each profile on 33 ports with 40 m cables: 32:1 incast loses nothing, pauses begin at the predicted
// threshold, and everything arrives.
TEST_P(ProfileTest, incast__loses_nothing_and_pauses_where_predicted) {
  const BufferProfile& profile = *find_buffer_profile(GetParam());
  StarConfig config = star_config(33, 1);
  config.delay = nanoseconds{200};
  ClassBufferConfig& lossless = config.fabric.buffer.classes[kLossless];
  lossless.headroom_bytes = headroom_of(profile, gbps(100), config.delay, kFrameBytesMax);
  apply_profile(profile, config.fabric.buffer);
  ASSERT_TRUE(Topology::check(config.topology()).has_value());
  Star star(EngineKind::fast, config);
  for (std::uint16_t i = 0; i < 32; ++i) star.hosts[i].send({.dst = 32, .frames = 512});
  Picoseconds limit{};
  while (star.topology.totals().pause_frames == 0) star.engine.run(limit += nanoseconds{20});
  std::uint64_t total = 0;
  for (std::uint16_t i = 0; i < 32; ++i) total += star.fabric().buffer().used_bytes(i, kLossless);
  const double x = static_cast<double>(xoff_threshold_bytes(star.fabric().config().buffer, kLossless, 32));
  testing::validate(
      {.section = "XOFF onset",
       .what = fmt::format("32:1, profile {}: bytes of an ingress port when it is paused", GetParam()),
       .against = "a B' / (1 + a N)",
       .expected = x,
       .measured = static_cast<double>(total) / 32,
       .unit = "B",
       .tolerance = 0.1});
  EXPECT_TRUE(star.engine.run(kForever));
  EXPECT_EQ(star.hosts[32].arrivals().size(), 32U * 512);
  EXPECT_EQ(star.topology.totals().lossless_drops, 0U);
  EXPECT_EQ(star.fabric().buffer().used_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Names, ProfileTest, ::testing::Values("td2", "th", "th2", "td3", "spectrum"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace bx::sim
