// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>

#include "tests/engine/world.h"

namespace bx::testing {
namespace {

TEST(Knobs, table__has_sane_entries_and_unique_names) {
  std::set<std::string_view> names;
  for (const KnobSpec& knob : knobs()) {
    SCOPED_TRACE(knob.name);
    EXPECT_TRUE(names.insert(knob.name).second);
    EXPECT_LE(knob.minimum, knob.default_value);
    EXPECT_LE(knob.default_value, knob.maximum);
    EXPECT_NE(knob.name.find('.'), std::string_view::npos);
    EXPECT_FALSE(knob.sentence.empty());
    EXPECT_TRUE(knob.sentence.ends_with('.'));
    EXPECT_EQ(knob.unit == Unit::choice, !knob.choices.empty());
    if (knob.unit == Unit::choice) {
      EXPECT_EQ(knob.maximum + 1, knob.choices.size());
    }
    if (knob.unit == Unit::flag) {
      EXPECT_EQ(knob.maximum, 1U);
    }
  }
}

TEST(Knobs, table__covers_every_member_of_config_once) {
  // Config is nothing but its knobs, so its size says how many there are.
  EXPECT_EQ(knobs().size() * sizeof(std::uint64_t), sizeof(Config));
  Config config;
  for (const KnobSpec& knob : knobs()) EXPECT_EQ(config.*knob.member, knob.default_value) << knob.name;
  for (const KnobSpec& knob : knobs()) config.*knob.member = 12'345;
  for (const KnobSpec& knob : knobs()) EXPECT_EQ(config.*knob.member, 12'345U);
}

TEST(Knobs, find_knob__finds_each_by_its_name_and_nothing_else) {
  for (const KnobSpec& knob : knobs()) EXPECT_EQ(find_knob(knob.name), &knob);
  EXPECT_EQ(find_knob(""), nullptr);
  EXPECT_EQ(find_knob("window"), nullptr);
  EXPECT_EQ(find_knob("send.depth "), nullptr);
}

class Refusal : public ::testing::Test {
 protected:
  Error refusal(const Config& config, const loopback::LoopbackConfig& fabric = {}) {
    World world(fabric);
    auto host = world.fabric.open_host("host").value();
    auto context = Context::create(*host, config);
    EXPECT_FALSE(context.has_value());
    return context ? Error{} : context.error();
  }
};

TEST_F(Refusal, create__names_the_knob_that_is_out_of_its_range) {
  for (const KnobSpec& knob : knobs()) {
    SCOPED_TRACE(knob.name);
    Config config;
    config.*knob.member = knob.maximum + 1;
    const Error above = refusal(config);
    EXPECT_EQ(above.code, ErrorCode::invalid_argument);
    EXPECT_TRUE(std::string_view(above.detail).starts_with(knob.name)) << above.detail;
    if (knob.minimum == 0) continue;
    config.*knob.member = knob.minimum - 1;
    EXPECT_TRUE(std::string_view(refusal(config).detail).starts_with(knob.name));
  }
}

TEST_F(Refusal, create__names_knobs_that_contradict_each_other) {
  Config config;
  config.path_mtu = 1500;
  EXPECT_NE(std::string_view(refusal(config).detail).find("path.mtu"), std::string_view::npos);
  config = {};
  config.send_depth = 8;
  config.send_control_reserve = 5;
  EXPECT_NE(std::string_view(refusal(config).detail).find("send.control_reserve"), std::string_view::npos);
  config = {};
  config.window_nic_low = 8192;
  config.window_nic_high = 4096;
  EXPECT_NE(std::string_view(refusal(config).detail).find("window.nic_low"), std::string_view::npos);
  config = {};
  config.window_mode = static_cast<std::uint64_t>(WindowMode::adaptive);
  config.window_adaptive_max = config.window_adaptive_min - 1;
  EXPECT_NE(std::string_view(refusal(config).detail).find("window.adaptive_min"), std::string_view::npos);
}

TEST_F(Refusal, create__names_what_the_device_cannot_hold_and_says_how_much_it_can) {
  loopback::LoopbackConfig fabric;
  fabric.caps.srq_depth_max = 500;
  Error error = refusal({}, fabric);
  EXPECT_EQ(error.code, ErrorCode::exhausted);
  EXPECT_EQ(error.sys, 500);
  EXPECT_NE(std::string_view(error.detail).find("credits.per_peer"), std::string_view::npos);
  fabric = {};
  fabric.caps.cq_depth_max = 1000;
  error = refusal({}, fabric);
  EXPECT_EQ(error.sys, 1000);
  EXPECT_NE(std::string_view(error.detail).find("send.depth"), std::string_view::npos);
  fabric = {};
  fabric.caps.send_depth_max = 64;
  error = refusal({}, fabric);
  EXPECT_EQ(error.sys, 64);
  fabric = {};
  fabric.caps.sges_max = 1;
  EXPECT_EQ(refusal({}, fabric).code, ErrorCode::unsupported);
}

TEST_F(Refusal, create__works_at_both_ends_of_most_ranges) {
  World world;
  for (const KnobSpec& knob : knobs()) {
    SCOPED_TRACE(knob.name);
    Config config;
    config.*knob.member = knob.minimum;
    if (config.send_depth < 8) config.send_control_reserve = 1;
    auto host = world.fabric.open_host(std::string(knob.name)).value();
    auto context = Context::create(*host, config);
    EXPECT_TRUE(context.has_value()) << context.error().detail;
  }
}

}  // namespace
}  // namespace bx::testing
