// SPDX-License-Identifier: GPL-2.0-only
// The keys of [fabric.nic] that say how lost packets are recovered.
#include "harness/scenario/key_builder.h"

namespace bx::harness {

void add_recovery_keys(std::vector<KeySpec>& keys) {
  add<Settings>(
      keys,
      {.name = "fabric.nic.loss_recovery",
       .kind = KeyKind::choice,
       .sentence = "How lost packets are sent again: all from the first on, or the lost ones only.",
       .choices = {"go-back-n", "selective-repeat"}},
      [](auto& s) -> auto& { return s.fabric.loss_recovery; });
  add<Settings>(
      keys,
      {.name = "fabric.nic.recovery_window",
       .kind = KeyKind::count,
       .sentence = "Packets of a queue pair that may be unacknowledged with selective repeat.",
       .minimum = 1,
       .maximum = 65536,
       .needs = {only_with("fabric.nic.loss_recovery", {"selective-repeat"})}},
      [](auto& s) -> auto& { return s.fabric.recovery_window; });
  add<Settings>(
      keys,
      {.name = "fabric.nic.ack_every",
       .kind = KeyKind::count,
       .sentence = "Packets that did not ask after which the receiver acknowledges all the same; 0 is never.",
       .minimum = 0,
       .maximum = 65536},
      [](auto& s) -> auto& { return s.fabric.ack_every; });
  add<Settings>(
      keys,
      {.name = "fabric.nic.ack_delay",
       .kind = KeyKind::duration,
       .sentence = "With ack_every: how long fewer packets than that wait for their acknowledgement.",
       .minimum = 0,
       .maximum = 1'000'000'000,
       .needs = {not_with("fabric.nic.ack_every", {"0"})}},
      [](auto& s) -> auto& { return s.fabric.ack_delay_ns; });
}

}  // namespace bx::harness
