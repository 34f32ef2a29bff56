// SPDX-License-Identifier: GPL-2.0-only
// The keys of [fabric.cpu]: what software costs on a host, which `bx perf verbs --calibrate` measures and
// writes as a file of them (host_file.h).
#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

void add_cost(std::vector<KeySpec>& keys, std::string name, std::string sentence, auto access) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  add<Settings>(keys,
                {.name = "fabric.cpu." + std::move(name),
                 .kind = KeyKind::duration,
                 .sentence = std::move(sentence),
                 .minimum = 0,
                 .maximum = kSecond},
                access);
}

}  // namespace

void add_host_keys(std::vector<KeySpec>& keys) {
  add<Settings>(
      keys,
      {.name = "fabric.host_file",
       .kind = KeyKind::text,
       .sentence = "A file of fabric.cpu.* and of the NIC's latencies, as 'bx perf verbs --calibrate' writes "
                   "it, as seen "
                   "from the scenario's folder; whatever else sets these keys wins."},
      [](auto& s) -> auto& { return s.host_file; });
  // Flows go without the library, and so without a processor.
  add_under(keys, not_with("workload.kind", {"flows"}), [&] {
    add_cost(
        keys, "turn", "CPU time of a turn of a worker, what it does aside.",
        [](auto& s) -> auto& { return s.fabric.cpu.turn; });
    add_cost(
        keys, "completion", "CPU time of a completion polled.",
        [](auto& s) -> auto& { return s.fabric.cpu.completion; });
    add_cost(
        keys, "empty_poll", "CPU time of a poll that finds nothing.",
        [](auto& s) -> auto& { return s.fabric.cpu.empty_poll; });
    add_cost(
        keys, "send", "CPU time of a work request put into the send queue.",
        [](auto& s) -> auto& { return s.fabric.cpu.send; });
    add_cost(
        keys, "doorbell", "CPU time of a post, its work requests aside.",
        [](auto& s) -> auto& { return s.fabric.cpu.doorbell; });
    add_cost(
        keys, "receive", "CPU time of a receive posted.",
        [](auto& s) -> auto& { return s.fabric.cpu.receive; });
    add_cost(
        keys, "handler", "CPU time of resuming the application once.",
        [](auto& s) -> auto& { return s.fabric.cpu.handler; });
    add_cost(
        keys, "wake", "From an event to the turn of a worker that polls.",
        [](auto& s) -> auto& { return s.fabric.cpu.wake_polled; });
    add<Settings>(
        keys,
        {.name = "fabric.cpu.copy_rate",
         .kind = KeyKind::rate,
         .sentence = "At which the CPU copies.",
         .minimum = 1'000'000,
         .maximum = 8'000'000'000'000},
        [](auto& s) -> auto& { return s.copy_rate_bps; });
  });
}

}  // namespace bx::harness
