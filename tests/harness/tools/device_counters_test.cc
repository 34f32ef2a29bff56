// SPDX-License-Identifier: GPL-2.0-only
// Trees as Linux shows them for devices that are not here.
#include "harness/run/device_counters.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace bx::harness {
namespace {

class DeviceCounters : public testing::Test {
 protected:
  void SetUp() override {
    root = std::filesystem::path(testing::TempDir()) /
           testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root);
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root / "class/infiniband" / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::vector<DeviceCounter> read(const std::string& device, unsigned port = 1) const {
    return read_device_counters(device, port, root.string());
  }
  std::filesystem::path root;
};

TEST_F(DeviceCounters, read__of_a_connectx) {
  put("mlx5_0/ports/1/hw_counters/out_of_sequence", "17\n");
  put("mlx5_0/ports/1/hw_counters/rnr_nak_retry_err", "0\n");
  put("mlx5_0/ports/1/hw_counters/np_cnp_sent", "4711\n");
  put("mlx5_0/ports/1/hw_counters/lifespan", "10\n");
  put("mlx5_0/ports/1/counters/port_xmit_wait", "18446744073709551615\n");
  put("mlx5_0/ports/2/hw_counters/out_of_sequence", "99\n");
  const auto counters = read("mlx5_0");
  ASSERT_EQ(counters.size(), 4U);  // "lifespan" is a setting
  EXPECT_EQ(counters[0].name, "np_cnp_sent");
  EXPECT_EQ(counters[0].value, 4711U);
  EXPECT_EQ(counters[1].name, "out_of_sequence");
  EXPECT_EQ(counters[1].value, 17U);
  EXPECT_EQ(counters[2].name, "port_xmit_wait");
  EXPECT_EQ(counters[2].value, UINT64_MAX);
  EXPECT_EQ(read("mlx5_0", 2)[0].value, 99U);
}

TEST_F(DeviceCounters, read__takes_the_hardware_s_word_where_there_are_two) {
  put("rxe1/ports/1/hw_counters/link_downed", "3\n");
  put("rxe1/ports/1/counters/link_downed", "1\n");
  ASSERT_EQ(read("rxe1").size(), 1U);
  EXPECT_EQ(read("rxe1")[0].value, 3U);
}

TEST_F(DeviceCounters, read__leaves_out_what_is_no_number) {
  put("mlx5_0/ports/1/counters/odd", "N/A (no PMA)\n");
  EXPECT_TRUE(read("mlx5_0").empty());
}

TEST_F(DeviceCounters, read__of_a_device_that_is_not_there) {
  EXPECT_TRUE(read("mlx5_7").empty());
}

TEST_F(DeviceCounters, find_device_port__by_the_gid_of_an_address) {
  put("mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  put("mlx5_1/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0002\n");
  put("mlx5_1/ports/2/gids/3", "0000:0000:0000:0000:0000:ffff:0a4d:0001\n");
  put("mlx5_2/ports/1/gids/1", "fd77:0000:0000:0000:0000:0000:0000:0009\n");
  const auto found = find_device_port("10.77.0.1", "", root.string());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->device, "mlx5_1");
  EXPECT_EQ(found->port, 2U);
  ASSERT_TRUE(find_device_port("fd77::9", "", root.string()));
  EXPECT_EQ(find_device_port("fd77::9", "", root.string())->device, "mlx5_2");
  EXPECT_FALSE(find_device_port("10.77.0.1", "mlx5_0", root.string()));  // another device's
  EXPECT_FALSE(find_device_port("10.77.0.2", "", root.string()));
  EXPECT_FALSE(find_device_port("a.example", "", root.string()));
}

}  // namespace
}  // namespace bx::harness
