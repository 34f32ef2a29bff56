// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/sim_cases.h"

#include <algorithm>
#include <thread>

#include "libbx/base/prng.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

std::vector<sim::RawFlow> incast(std::uint16_t senders, std::uint64_t bytes) {
  std::vector<sim::RawFlow> flows;
  for (std::uint16_t from = 1; from <= senders; ++from) flows.push_back({from, 0, bytes});
  return flows;
}

// Every host sends to one other and receives from one other: a random cycle through all of them.
std::vector<sim::RawFlow> permutation(std::uint16_t hosts, std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::uint16_t> order(hosts);
  for (std::uint16_t h = 0; h < hosts; ++h) order[h] = h;
  Prng random(seed);
  for (std::size_t i = hosts; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<sim::RawFlow> flows;
  for (std::size_t i = 0; i < hosts; ++i) flows.push_back({order[i], order[(i + 1) % hosts], bytes});
  return flows;
}

SimCase incast_16(std::string_view name, std::string_view sentence) {
  SimCase made{.name = name, .sentence = sentence, .flows = incast(16, kMiB)};
  made.config.hosts = 17;
  made.config.mtu = 1024;
  made.config.buffer.bytes =
      1024 * kMiB;  // for 1024 ports; nothing is paused, so that idle ports change nothing
  return made;
}

SimCase fat_tree_1024(std::string_view name, std::string_view sentence, std::uint32_t mtu) {
  SimCase made{.name = name, .sentence = sentence, .flows = permutation(1024, 2 * kMiB, 1)};
  made.config.hosts = 1024;
  made.config.mtu = mtu;
  made.config.topology.shape = "fat-tree";
  made.config.payload = "lengths";
  return made;
}

// Each pod by itself, with its share of the cores.
SimCase in_pods(std::string_view name, std::string_view sentence, std::size_t threads) {
  SimCase made = fat_tree_1024(name, sentence, 4096);
  made.config.partitions = 16;
  made.config.threads = threads;
  return made;
}

SimCase sessions_1m() {
  SimCase made{.name = "sessions-1m",
               .sentence =
                   "a million sessions over 100000 queue pairs of one NIC to 255 hosts of a leaf-spine "
                   "fabric, 2 requests and answers of up to 1536 B each, lengths only, every one checked"};
  made.config.hosts = 256;
  made.config.mtu = 1024;
  made.config.topology.shape = "leaf-spine";
  made.config.topology.leaves = 16;
  made.config.topology.spines = 8;
  made.config.payload = "lengths";
  made.config.payload_kept_bytes = 16;
  made.sessions = sim::SessionTrafficConfig{
      .network = made.config, .queue_pairs = 100'000, .sessions = 1'000'000, .messages = 2};
  return made;
}

}  // namespace

std::vector<SimCase> sim_cases() {
  std::vector<SimCase> cases;
  cases.push_back(incast_16("incast-16", "16 hosts send 1 MiB each to a seventeenth, 1024 B packets"));
  cases.push_back(incast_16("stock-engine", "the same on ns-3's own event queue"));
  cases.back().config.engine = sim::EngineKind::stock;
  cases.push_back(incast_16("idle-hosts", "the same with 1007 more hosts on the switch"));
  cases.back().config.hosts = 1024;
  cases.push_back(incast_16("idle-qps", "the same with 50000 more connections between two of the hosts"));
  cases.back().idle_pairs = 100'000;
  cases.push_back(incast_16("idle-time", "the same after 1000 s in which nothing happens"));
  cases.back().idle_before = std::chrono::seconds{1000};
  cases.push_back(fat_tree_1024(
      "permutation-1024", "1024 hosts of a fat tree send 2 MiB each, lengths only, 4096 B packets", 4096));
  cases.push_back(in_pods("permutation-1024-pods", "the same in 16 partitions, on one thread", 1));
  cases.push_back(in_pods("permutation-1024-threads", "the same on as many threads as this machine has",
                          std::max(1U, std::thread::hardware_concurrency())));
  cases.push_back(fat_tree_1024("permutation-1024-small", "the same in 1024 B packets", 1024));
  cases.push_back(sessions_1m());
  return cases;
}

}  // namespace bx::harness
