// SPDX-License-Identifier: GPL-2.0-only
// rxe_hosts() and listed_hosts() of cluster_run.h: whose processes are started how.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "harness/cluster/cluster_run.h"
#include "harness/cluster/hosts_file.h"
#include "harness/report/result_file.h"
#include "harness/run/rxe_backend.h"

namespace bx::harness {
namespace {

std::vector<std::string> agent_words(const std::string& bx, const std::string& address, std::uint16_t port,
                                     std::uint32_t host) {
  return {
      bx, "agent", "--coordinator", address, "--port", std::to_string(port), "--host", std::to_string(host)};
}

std::string this_program() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).string();
}

std::string host_name(std::uint32_t host) {
  return fmt::format("host{}", host);
}

// No password is ever asked for, and no key of a host is taken on trust.
std::vector<std::string> over_ssh(const HostsFile& file, const ListedHost& to,
                                  std::vector<std::string> words) {
  std::vector<std::string> ssh{
      "ssh", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=20"};
  if (!file.ssh_config.empty()) ssh.insert(ssh.end(), {"-F", file.ssh_config});
  ssh.insert(ssh.end(), {"--", to.ssh});
  ssh.insert(ssh.end(), words.begin(),
             words.end());  // plain words: hosts_file.h refuses what a shell would take apart
  return ssh;
}

}  // namespace

Parsed<ClusterHosts> rxe_hosts(const Settings& settings) {
  ClusterHosts hosts;
  hosts.coordinator.commit = build_commit();
  for (std::uint32_t n = 0; n < settings.fabric.hosts; ++n) {
    hosts.entries.push_back({.name = host_name(n), .address = rxe_address(n)});
  }
  hosts.launch = [address = hosts.coordinator.address](std::uint32_t host, std::uint16_t port,
                                                       const std::string& token) {
    return Process::start(host_name(host), agent_words(this_program(), address, port, host), token + "\n");
  };
  return hosts;
}

Parsed<ClusterHosts> listed_hosts(const std::string& path, const Settings& settings) {
  Diagnostics diagnostics;
  const std::optional<HostsFile> file = load_hosts_file(path, diagnostics);
  if (!file) return tl::unexpected(diagnostics.text());
  if (file->hosts.size() < settings.fabric.hosts) {
    return tl::unexpected(
        fmt::format("{}: error: names {} hosts, but the scenario has {}; add a [[host]] for each, or "
                    "say --set fabric.hosts={}",
                    path, file->hosts.size(), settings.fabric.hosts, file->hosts.size()));
  }
  ClusterHosts hosts;
  hosts.coordinator.commit = build_commit();
  hosts.coordinator.address = file->coordinator;
  for (std::uint32_t n = 0; n < settings.fabric.hosts; ++n) {
    hosts.entries.push_back({.name = host_name(n), .address = file->hosts[n].address});
  }
  hosts.device = [list = file->hosts](std::uint32_t host) { return list[host].device; };
  hosts.launch = [list = *file](std::uint32_t host, std::uint16_t port, const std::string& token) {
    const ListedHost& to = list.hosts[host];
    std::vector<std::string> words =
        agent_words(to.ssh.empty() && to.bx == "bx" ? this_program() : to.bx, list.coordinator, port, host);
    if (!to.ssh.empty()) words = over_ssh(list, to, std::move(words));
    return Process::start(fmt::format("host{} ({})", host, to.name), std::move(words), token + "\n");
  };
  return hosts;
}

}  // namespace bx::harness
