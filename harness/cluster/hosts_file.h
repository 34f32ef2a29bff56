// SPDX-License-Identifier: GPL-2.0-only
// The machines of `bx run --on verbs --hosts FILE`, in TOML. The n-th [[host]] is host n of the scenario:
//
//   coordinator = "10.0.0.1"    # an address of this machine that all hosts can reach
//   ssh_config = "ssh.conf"     # for ssh -F, beside this file; left out: the user's own
//   [[host]]
//   name = "a"                  # in messages; left out: its ssh target
//   ssh = "me@a.example"        # what ssh is given; "local" starts a process on this machine
//   address = "10.0.0.11"       # of its RDMA port: GID (RoCE v2) and TCP
//   device = "mlx5_0"           # left out: whichever has the address
//   bx = "/opt/bx/bin/bx"       # left out: "bx", found by the PATH of the login
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/base/diagnostics.h"

namespace bx::harness {

inline constexpr std::size_t kListedHostsMax = 1024;

struct ListedHost {
  std::string name;
  std::string ssh;  // empty: a process of this machine
  std::string address;
  std::string device{};
  std::string bx = "bx";
  Place place{};
};

struct HostsFile {
  std::string coordinator = "127.0.0.1";
  std::string ssh_config{};  // a path; empty: none
  std::vector<ListedHost> hosts;
};

// Nothing if anything is wrong, and then `diagnostics` says all of it.
std::optional<HostsFile> parse_hosts_file(std::string_view text, const std::string& file,
                                          Diagnostics& diagnostics);
std::optional<HostsFile> load_hosts_file(const std::string& file, Diagnostics& diagnostics);

}  // namespace bx::harness
