// SPDX-License-Identifier: GPL-2.0-only
// The keys of the network as a whole: seed, transport, MTU and the NICs' latencies.
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
  add_topology_keys(keys);
  add<Settings>(
      keys,
      {.name = "fabric.mtu",
       .kind = bytes,
       .sentence = "RoCE path MTU: payload bytes of a packet, a power of two.",
       .minimum = 256,
       .maximum = 4096},
      [](auto& s) -> auto& { return s.fabric.mtu; });
  add_switch_keys(keys);
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
  add_host_keys(keys);
}

}  // namespace bx::harness
