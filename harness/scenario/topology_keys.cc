// SPDX-License-Identifier: GPL-2.0-only
// The keys of the shape of the network, its hosts and its links.
#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// `shapes` are those that have it.
void add_size_key(std::vector<KeySpec>& keys, std::string name, std::vector<std::string> shapes,
                  std::string sentence, auto access) {
  add<Settings>(keys,
                {.name = std::move(name),
                 .kind = KeyKind::count,
                 .sentence = std::move(sentence),
                 .minimum = 1,
                 .maximum = 4096,
                 .needs = {only_with("fabric.topology", std::move(shapes))}},
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
      keys, "fabric.leaves", {"leaf-spine", "three-tier"},
      "Leaf switches; three-tier: edge switches of a pod.",
      [](auto& s) -> auto& { return s.fabric.topology.leaves; });
  add_size_key(
      keys, "fabric.spines", {"leaf-spine", "three-tier", "rail"},
      "Spine switches, each joined to every leaf or rail switch; three-tier: aggregation switches of a pod.",
      [](auto& s) -> auto& { return s.fabric.topology.spines; });
  add_size_key(
      keys, "fabric.pods", {"three-tier", "rail"}, "three-tier: pods; rail: groups of machines.",
      [](auto& s) -> auto& { return s.fabric.topology.pods; });
  add_size_key(
      keys, "fabric.cores", {"three-tier"}, "three-tier: core switches of each aggregation switch of a pod.",
      [](auto& s) -> auto& { return s.fabric.topology.cores; });
  add_size_key(
      keys, "fabric.rails", {"rail"},
      "rail: NICs of a machine, each on a switch of its own; host h is NIC h mod rails.",
      [](auto& s) -> auto& { return s.fabric.topology.rails; });
  add<Settings>(
      keys,
      {.name = "fabric.uplink_rate",
       .kind = rate,
       .sentence = "Speed of links between switches; auto is that of the hosts' links.",
       .minimum = 1'000'000,
       .maximum = 3'200'000'000'000,
       .zero_is_auto = true,
       .needs = {not_with("fabric.topology", {"single-switch", "file"})}},
      [](auto& s) -> auto& { return s.fabric.topology.uplink_rate_bps; });
  add<Settings>(
      keys,
      {.name = "fabric.uplink_delay",
       .kind = duration,
       .sentence = "Propagation delay of links between switches, one way; auto is that of the hosts' links.",
       .minimum = 1,
       .maximum = kSecond,
       .zero_is_auto = true,
       .needs = {not_with("fabric.topology", {"single-switch", "file"})}},
      [](auto& s) -> auto& { return s.fabric.topology.uplink_delay_ns; });
  add<Settings>(
      keys,
      {.name = "fabric.reroute_delay",
       .kind = duration,
       .sentence = "From a change of a link to routes that take it into account.",
       .minimum = 0,
       .maximum = 1000 * kSecond,
       .needs = {only_with("fault.kind", {"link-down", "link-flap", "nic-reset"})}},
      [](auto& s) -> auto& { return s.fabric.topology.reroute_delay_ns; });
}

}  // namespace

void add_topology_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
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
       .maximum = 3'200'000'000'000,
       .needs = {not_with("fabric.topology", {"file"})}},
      [](auto& s) -> auto& { return s.fabric.rate_bps; });
  add<Settings>(
      keys,
      {.name = "fabric.delay",
       .kind = duration,
       .sentence = "Propagation delay of every host's link, one way.",
       .minimum = 0,
       .maximum = kSecond,
       .needs = {not_with("fabric.topology", {"file"})}},
      [](auto& s) -> auto& { return s.fabric.delay_ns; });
}

}  // namespace bx::harness
