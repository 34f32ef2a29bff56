// SPDX-License-Identifier: GPL-2.0-only
// The keys of the network: seed, transport and [fabric].
#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

void add_size_key(std::vector<KeySpec>& keys, std::string name, std::string sentence, auto access) {
  add<Settings>(keys,
                {.name = std::move(name),
                 .kind = KeyKind::count,
                 .sentence = std::move(sentence),
                 .minimum = 1,
                 .maximum = 4096},
                access);
}

// What shapes of more than one switch are made of.
void add_shape_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add<Settings>(
      keys,
      {.name = "fabric.topology_file",
       .kind = text,
       .sentence =
           "With fabric.topology = 'file': a TOML file of hosts, switches and links, as seen from the "
           "scenario's folder; fabric.hosts follows from it, and its links have speeds of their own."},
      [](auto& s) -> auto& { return s.topology_file; });
  add_size_key(
      keys, "fabric.leaves", "Leaf switches; three-tier: edge switches of a pod.",
      [](auto& s) -> auto& { return s.fabric.topology.leaves; });
  add_size_key(
      keys, "fabric.spines",
      "Spine switches, each joined to every leaf or rail switch; three-tier: aggregation switches of a pod.",
      [](auto& s) -> auto& { return s.fabric.topology.spines; });
  add_size_key(
      keys, "fabric.pods", "three-tier: pods; rail: groups of machines.",
      [](auto& s) -> auto& { return s.fabric.topology.pods; });
  add_size_key(
      keys, "fabric.cores", "three-tier: core switches of each aggregation switch of a pod.",
      [](auto& s) -> auto& { return s.fabric.topology.cores; });
  add_size_key(
      keys, "fabric.rails",
      "rail: NICs of a machine, each on a switch of its own; host h is NIC h mod rails.",
      [](auto& s) -> auto& { return s.fabric.topology.rails; });
  add<Settings>(
      keys,
      {.name = "fabric.uplink_rate",
       .kind = rate,
       .sentence = "Speed of links between switches; auto is that of the hosts' links.",
       .minimum = 1'000'000,
       .maximum = 3'200'000'000'000,
       .zero_is_auto = true},
      [](auto& s) -> auto& { return s.fabric.topology.uplink_rate_bps; });
  add<Settings>(
      keys,
      {.name = "fabric.uplink_delay",
       .kind = duration,
       .sentence = "Propagation delay of links between switches, one way; auto is that of the hosts' links.",
       .minimum = 1,
       .maximum = kSecond,
       .zero_is_auto = true},
      [](auto& s) -> auto& { return s.fabric.topology.uplink_delay_ns; });
  add<Settings>(
      keys,
      {.name = "fabric.reroute_delay",
       .kind = duration,
       .sentence = "From a change of a link to routes that take it into account.",
       .minimum = 0,
       .maximum = 1000 * kSecond},
      [](auto& s) -> auto& { return s.fabric.topology.reroute_delay_ns; });
}

void add_watchdog_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add<Settings>(
      keys,
      {.name = "fabric.pfc.watchdog",
       .kind = choice,
       .sentence = "What a switch does with an egress queue that a peer pauses without end.",
       .choices = {"off", "drop", "forward"}},
      [](auto& s) -> auto& { return s.fabric.pfc.watchdog; });
  const auto add_time = [&](std::string name, std::string sentence, auto access) {
    add<Settings>(keys,
                  {.name = std::move(name),
                   .kind = duration,
                   .sentence = std::move(sentence),
                   .minimum = 1,
                   .maximum = 1000 * kSecond},
                  access);
  };
  add_time(
      "fabric.pfc.watchdog_detect", "Paused for so long without sending is a storm.",
      [](auto& s) -> auto& { return s.fabric.pfc.watchdog_detect_ns; });
  add_time(
      "fabric.pfc.watchdog_restore", "So long without a pause ends a storm.",
      [](auto& s) -> auto& { return s.fabric.pfc.watchdog_restore_ns; });
  add_time(
      "fabric.pfc.watchdog_poll", "Time between two looks of the watchdog.",
      [](auto& s) -> auto& { return s.fabric.pfc.watchdog_poll_ns; });
}

}  // namespace

void add_fabric_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add<Settings>(
      keys,
      {.name = "seed",
       .kind = count,
       .sentence = "Root of all randomness; the same seed gives the same run."},
      [](auto& s) -> auto& { return s.fabric.seed; });
  add<Settings>(
      keys, {.name = "transport", .kind = choice, .sentence = "What carries the calls.", .choices = {"rdma"}},
      [](auto& s) -> auto& { return s.transport; });
  add<Settings>(
      keys,
      {.name = "fabric.topology",
       .kind = choice,
       .sentence = "How hosts and switches are wired; fat-tree needs k^3/4 hosts for an even k.",
       .choices = {"single-switch", "dumbbell", "leaf-spine", "fat-tree", "three-tier", "rail", "file"}},
      [](auto& s) -> auto& { return s.fabric.topology.shape; });
  add_shape_keys(keys);
  add<Settings>(
      keys,
      {.name = "fabric.hosts",
       .kind = count,
       .sentence = "Hosts, named host0, host1 and so on.",
       .minimum = 2,
       .maximum = 4096},
      [](auto& s) -> auto& { return s.fabric.hosts; });
  add<Settings>(
      keys,
      {.name = "fabric.rate",
       .kind = rate,
       .sentence = "Speed of every host's link, both directions.",
       .minimum = 1'000'000,
       .maximum = 3'200'000'000'000},
      [](auto& s) -> auto& { return s.fabric.rate_bps; });
  add<Settings>(
      keys,
      {.name = "fabric.delay",
       .kind = duration,
       .sentence = "Propagation delay of every host's link, one way.",
       .minimum = 0,
       .maximum = kSecond},
      [](auto& s) -> auto& { return s.fabric.delay_ns; });
  add<Settings>(
      keys,
      {.name = "fabric.mtu",
       .kind = bytes,
       .sentence = "RoCE path MTU: payload bytes of a packet, a power of two.",
       .minimum = 256,
       .maximum = 4096},
      [](auto& s) -> auto& { return s.fabric.mtu; });
  add<Settings>(
      keys,
      {.name = "fabric.buffer",
       .kind = bytes,
       .sentence = "Packet buffer of a switch, reserved parts and headroom included.",
       .minimum = 65'536,
       .maximum = 1ULL << 40U},
      [](auto& s) -> auto& { return s.fabric.buffer.bytes; });
  add<Settings>(
      keys,
      {.name = "fabric.profile",
       .kind = choice,
       .sentence =
           "Buffer sizes and thresholds of a known switch in the place of fabric.buffer, fabric.alpha "
           "and the automatic headroom.",
       .choices = {"none", "td2", "th", "th2", "td3", "spectrum"}},
      [](auto& s) -> auto& { return s.fabric.buffer.profile; });
  add<Settings>(
      keys,
      {.name = "fabric.reserved",
       .kind = bytes,
       .sentence = "Buffer guaranteed to each ingress port and priority.",
       .minimum = 0,
       .maximum = 1ULL << 30U},
      [](auto& s) -> auto& { return s.fabric.buffer.reserved_bytes; });
  add<Settings>(
      keys,
      {.name = "fabric.alpha",
       .kind = power_of_two,
       .sentence =
           "Share of the free shared buffer that one ingress queue may take before PFC pauses its sender."},
      [](auto& s) -> auto& { return s.fabric.buffer.alpha_log2; });
  add<Settings>(
      keys,
      {.name = "fabric.pfc.enabled",
       .kind = flag,
       .sentence = "Priority flow control; off, a full switch drops."},
      [](auto& s) -> auto& { return s.fabric.pfc.enabled; });
  add<Settings>(
      keys,
      {.name = "fabric.pfc.headroom",
       .kind = bytes,
       .sentence = "Buffer kept per ingress port and lossless priority for what still arrives after a pause "
                   "was sent; auto is "
                   "what rate, delay and MTU need.",
       .minimum = 1,
       .maximum = 1ULL << 40U,
       .zero_is_auto = true},
      [](auto& s) -> auto& { return s.fabric.pfc.headroom_bytes; });
  add<Settings>(
      keys,
      {.name = "fabric.pfc.xon_offset",
       .kind = bytes,
       .sentence = "A paused queue resumes this far under its pause threshold.",
       .minimum = 0,
       .maximum = 1ULL << 40U},
      [](auto& s) -> auto& { return s.fabric.pfc.xon_offset_bytes; });
  add<Settings>(
      keys,
      {.name = "fabric.pfc.quanta",
       .kind = count,
       .sentence = "Length of each pause, in 512 bit times; refreshed while needed.",
       .minimum = 1,
       .maximum = 65'535},
      [](auto& s) -> auto& { return s.fabric.pfc.quanta; });
  add_watchdog_keys(keys);
  add<Settings>(
      keys,
      {.name = "fabric.ecn.enabled", .kind = flag, .sentence = "ECN marking on the switch's egress queues."},
      [](auto& s) -> auto& { return s.fabric.ecn.enabled; });
  add<Settings>(
      keys,
      {.name = "fabric.ecn.kmin",
       .kind = bytes,
       .sentence = "Egress queue up to which nothing is marked.",
       .minimum = 0,
       .maximum = 1ULL << 40U},
      [](auto& s) -> auto& { return s.fabric.ecn.kmin_bytes; });
  add<Settings>(
      keys,
      {.name = "fabric.ecn.kmax",
       .kind = bytes,
       .sentence = "Egress queue from which everything is marked.",
       .minimum = 0,
       .maximum = 1ULL << 40U},
      [](auto& s) -> auto& { return s.fabric.ecn.kmax_bytes; });
  add<Settings>(
      keys, {.name = "fabric.ecn.pmax", .kind = real, .sentence = "Marking probability at kmax."},
      [](auto& s) -> auto& { return s.fabric.ecn.pmax; });
  add_congestion_keys(keys);
  add<Settings>(
      keys,
      {.name = "fabric.nic.tx_latency",
       .kind = duration,
       .sentence = "From the doorbell to the first bit on the link.",
       .minimum = 0,
       .maximum = kSecond},
      [](auto& s) -> auto& { return s.fabric.nic_tx_latency_ns; });
  add<Settings>(
      keys,
      {.name = "fabric.nic.rx_latency",
       .kind = duration,
       .sentence = "From the last bit to the visible completion.",
       .minimum = 0,
       .maximum = kSecond},
      [](auto& s) -> auto& { return s.fabric.nic_rx_latency_ns; });
  add_recovery_keys(keys);
}

}  // namespace bx::harness
