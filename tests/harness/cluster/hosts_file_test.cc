// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/hosts_file.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

std::string error_of(const std::string& text) {
  Diagnostics diagnostics;
  return parse_hosts_file(text, "h.toml", diagnostics) ? "" : diagnostics.text();
}

TEST(hosts_file, parse_hosts_file__reads_hosts_in_their_order) {
  Diagnostics diagnostics;
  const auto file = parse_hosts_file(
      "coordinator = '10.0.0.1'\n[[host]]\nname = 'a'\nssh = 'me@a.example'\naddress = '10.0.0.11'\n"
      "device = 'mlx5_0'\nbx = '/opt/bx/bin/bx'\n[[host]]\nssh = 'local'\naddress = 'fd00::12'\n",
      "h.toml", diagnostics);
  ASSERT_TRUE(file) << diagnostics.text();
  EXPECT_EQ(file->coordinator, "10.0.0.1");
  ASSERT_EQ(file->hosts.size(), 2U);
  EXPECT_EQ(file->hosts[0].name, "a");
  EXPECT_EQ(file->hosts[0].ssh, "me@a.example");
  EXPECT_EQ(file->hosts[0].device, "mlx5_0");
  EXPECT_EQ(file->hosts[0].bx, "/opt/bx/bin/bx");
  EXPECT_EQ(file->hosts[1].name, "local");
  EXPECT_EQ(file->hosts[1].ssh, "");  // a process of this machine
  EXPECT_EQ(file->hosts[1].address, "fd00::12");
  EXPECT_EQ(file->hosts[1].bx, "bx");
}

struct Wrong {
  const char* text;
  const char* place;
  const char* said;
};

TEST(hosts_file, parse_hosts_file__says_where_what_is_wrong_and_what_to_write) {
  const std::vector<Wrong> cases{
      {"", "h.toml:", "write a [[host]]"},
      {"[[host]]\naddress = '10.0.0.1'\n", "h.toml:1:", "needs 'ssh'; write 'local'"},
      {"[[host]]\nssh = 'local'\n", "h.toml:1:", "needs 'address'"},
      {"[[host]]\nssh = 'local'\naddress = 'a.example'\n", "h.toml:3:", "no IPv4 or IPv6 address"},
      {"[[host]]\nssh = 'local'\nadress = '10.0.0.1'\n", "h.toml:3:", "did you mean 'address'"},
      {"[[host]]\nssh = 7\naddress = '10.0.0.1'\n", "h.toml:2:", "is no text"},
      {"[[host]]\nssh = '-oProxyCommand=x'\naddress = '10.0.0.1'\n", "h.toml:2:", "no '-' at its beginning"},
      {"[[host]]\nssh = 'a'\naddress = '10.0.0.1'\nbx = 'bx; rm -rf x'\n", "h.toml:4:", "only letters"},
      {"[[host]]\nssh = 'a b'\naddress = '10.0.0.1'\n", "h.toml:2:", "only letters"},
      {"[[host]]\nssh = 'a'\naddress = '10.0.0.1'\n", "h.toml:1:", "'coordinator' must be given"},
      {"ssh_config = 'none'\n[[host]]\nssh = 'local'\naddress = '10.0.0.1'\n",
       "h.toml:1:", "there is no file"},
      {"[[host]]\nssh = 'local'\naddress = '10.0.0.1'\n[[host]]\nssh = 'local'\naddress = '10.0.0.1'\n",
       "h.toml:4:", "line 1 already"},
      {"host = 'a'\n", "h.toml:1:", "[[host]]"},
  };
  for (const Wrong& wrong : cases) {
    const std::string error = error_of(wrong.text);
    EXPECT_NE(error.find(wrong.place), std::string::npos) << wrong.text << "\n" << error;
    EXPECT_NE(error.find(wrong.said), std::string::npos) << wrong.text << "\n" << error;
  }
}

}  // namespace
}  // namespace bx::harness
