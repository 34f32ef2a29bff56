// SPDX-License-Identifier: GPL-2.0-only
// The keys of the switches: buffers, pauses, marks and classes.
#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

void add_buffer_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add<Settings>(
      keys,
      {.name = "fabric.buffer",
       .kind = bytes,
       .sentence = "Packet buffer of a switch, reserved parts and headroom included.",
       .minimum = 65'536,
       .maximum = 1ULL << 40U,
       .needs = {only_with("fabric.profile", {"none"})}},
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
           "Share of the free shared buffer that one ingress queue may take before PFC pauses its sender.",
       .needs = {only_with("fabric.profile", {"none"})}},
      [](auto& s) -> auto& { return s.fabric.buffer.alpha_log2; });
  add<Settings>(
      keys,
      {.name = "fabric.lossless",
       .kind = members,
       .sentence = "Priorities whose senders are paused before the buffer is full; the others drop.",
       .maximum = sim::kPriorities - 1,
       .needs = {only_with("fabric.pfc.enabled", {"true"})}},
      [](auto& s) -> auto& { return s.fabric.buffer.lossless_priorities; });
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
                   .maximum = 1000 * kSecond,
                   .needs = {not_with("fabric.pfc.watchdog", {"off"})}},
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

// Of pauses that there are.
void add_pause_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
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
       .maximum = 1ULL << 40U,
       .needs = {only_with("fabric.profile", {"none"})}},
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
}

void add_pfc_keys(std::vector<KeySpec>& keys) {
  add<Settings>(
      keys,
      {.name = "fabric.pfc.enabled",
       .kind = KeyKind::flag,
       .sentence = "Priority flow control; off, a full switch drops."},
      [](auto& s) -> auto& { return s.fabric.pfc.enabled; });
  add_under(keys, only_with("fabric.pfc.enabled", {"true"}), [&] { add_pause_keys(keys); });
}

// Of marks that there are.
void add_mark_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
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
      {.name = "fabric.ecn.mark_at",
       .kind = choice,
       .sentence =
           "Whether a packet is marked by the queue that it joins or by the one that it leaves behind.",
       .choices = {"enqueue", "dequeue"}},
      [](auto& s) -> auto& { return s.fabric.ecn.mark_at; });
}

void add_ecn_keys(std::vector<KeySpec>& keys) {
  add<Settings>(
      keys,
      {.name = "fabric.ecn.enabled",
       .kind = KeyKind::flag,
       .sentence = "ECN marking on the switch's egress queues."},
      [](auto& s) -> auto& { return s.fabric.ecn.enabled; });
  add_under(keys, only_with("fabric.ecn.enabled", {"true"}), [&] { add_mark_keys(keys); });
}

void add_class_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  constexpr std::uint64_t kWeightMax = 1000;
  add<Settings>(
      keys,
      {.name = "fabric.weights",
       .kind = numbers,
       .sentence = "By priority: shares of an egress port by deficit round robin, in bytes. 0 is strict: it "
                   "goes before all that have a weight, the highest priority first.",
       .maximum = kWeightMax},
      [](auto& s) -> auto& { return s.fabric.scheduling.weights; });
  add<Settings>(
      keys,
      {.name = "fabric.trust",
       .kind = choice,
       .sentence = "What the priority of a frame in a switch follows from: the one that it carries, or its "
                   "DSCP by fabric.dscp_map.",
       .choices = {"pcp", "dscp"}},
      [](auto& s) -> auto& { return s.fabric.scheduling.priorities.trust; });
  add<Settings>(
      keys,
      {.name = "fabric.dscp_map",
       .kind = numbers,
       .sentence = "With fabric.trust = 'dscp': the priority of each DSCP, by default its top three bits. A "
                   "pause names the mapped priority, so a NIC heeds it only if it sends in that one.",
       .maximum = sim::kPriorities - 1,
       .needs = {only_with("fabric.trust", {"dscp"})}},
      [](auto& s) -> auto& { return s.fabric.scheduling.priorities.dscp; });
}

}  // namespace

void add_switch_keys(std::vector<KeySpec>& keys) {
  add_buffer_keys(keys);
  add_pfc_keys(keys);
  add_ecn_keys(keys);
  add_class_keys(keys);
}

}  // namespace bx::harness
