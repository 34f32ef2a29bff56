// SPDX-License-Identifier: GPL-2.0-only
// The keys of the network: seed, transport and [fabric].
#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

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
       .sentence = "How hosts and switches are wired.",
       .choices = {"single-switch"}},
      [](auto& s) -> auto& { return s.topology; });
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
       .sentence = "Speed of every link, both directions.",
       .minimum = 1'000'000,
       .maximum = 3'200'000'000'000},
      [](auto& s) -> auto& { return s.fabric.rate_bps; });
  add<Settings>(
      keys,
      {.name = "fabric.delay",
       .kind = duration,
       .sentence = "Propagation delay of every link, one way.",
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
       .sentence = "Packet buffer of the switch, reserved parts and headroom included.",
       .minimum = 65'536,
       .maximum = 1ULL << 40U},
      [](auto& s) -> auto& { return s.fabric.buffer.bytes; });
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
  add<Settings>(
      keys,
      {.name = "fabric.congestion_control.algorithm",
       .kind = choice,
       .sentence = "What the NICs do about ECN marks.",
       .choices = {"none"}},
      [](auto& s) -> auto& { return s.congestion_control; });
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
}

}  // namespace bx::harness
