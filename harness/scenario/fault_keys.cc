// SPDX-License-Identifier: GPL-2.0-only
// The keys of [[fault]].
#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPsnMax = (1U << 24U) - 1;

void add_time(std::vector<KeySpec>& keys, std::string name, std::string sentence, auto access) {
  add<FaultEntry>(keys,
                  {.name = std::move(name),
                   .kind = KeyKind::duration,
                   .sentence = std::move(sentence),
                   .minimum = 0,
                   .maximum = 100'000 * kSecond},
                  access);
}

void add_count(std::vector<KeySpec>& keys, KeySpec key, auto access) {
  key.kind = KeyKind::count;
  add<FaultEntry>(keys, std::move(key), access);
}

void add_packet_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add<FaultEntry>(
      keys,
      {.name = "fault.probability", .kind = real, .sentence = "Of each packet to be hit.", .real_maximum = 1},
      [](auto& f) -> auto& { return f.probability; });
  add_count(
      keys,
      {.name = "fault.psn",
       .sentence = "Which packet of the queue pair: its PSN counted from the connection's first.",
       .maximum = kPsnMax},
      [](auto& f) -> auto& { return f.psn; });
  add_count(
      keys,
      {.name = "fault.iteration",
       .sentence = "Which transmission of that packet; 2 is the first retransmission.",
       .minimum = 1,
       .maximum = 1'000'000},
      [](auto& f) -> auto& { return f.iteration; });
  add<FaultEntry>(
      keys,
      {.name = "fault.packets",
       .kind = choice,
       .sentence =
           "Of the queue pair: its own requests, or its answers (READ responses, ACKs) to the peer's.",
       .choices = {"requests", "answers"}},
      [](auto& f) -> auto& { return f.packets; });
}

}  // namespace

void add_fault_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add<FaultEntry>(
      keys,
      {.name = "fault.kind",
       .kind = choice,
       .sentence = "What goes wrong; see the table of kinds.",
       .choices = fault_kind_names(),
       .required = true},
      [](auto& f) -> auto& { return f.kind; });
  add<FaultEntry>(
      keys,
      {.name = "fault.target",
       .kind = text,
       .sentence = "What it is done to: 'host3' (its link), 'leaf0:2', 'leaf0-spine1', 'host3:qp2'.",
       .required = true},
      [](auto& f) -> auto& { return f.target; });
  add<FaultEntry>(
      keys,
      {.name = "fault.enabled", .kind = flag, .sentence = "False leaves it out, for a variant without it."},
      [](auto& f) -> auto& { return f.enabled; });
  add_time(
      keys, "fault.at",
      "When it begins, counted from the beginning of the measured part; of a fault of one packet 0 is the "
      "beginning of the run.",
      [](auto& f) -> auto& { return f.at_ns; });
  add_time(
      keys, "fault.duration", "How long it lasts; 0 is for ever.",
      [](auto& f) -> auto& { return f.duration_ns; });
  add<FaultEntry>(
      keys,
      {.name = "fault.direction",
       .kind = choice,
       .sentence = "What the end that the target names first sends, what it receives, or both.",
       .choices = {"both", "sent", "received"}},
      [](auto& f) -> auto& { return f.direction; });
  add_packet_keys(keys);
  add_time(
      keys, "fault.delay", "By how much packets come late.", [](auto& f) -> auto& { return f.delay_ns; });
  add_time(
      keys, "fault.period", "From the beginning of one flap to the next.",
      [](auto& f) -> auto& { return f.period_ns; });
  add_count(
      keys, {.name = "fault.count", .sentence = "How many flaps.", .minimum = 1, .maximum = 1'000'000},
      [](auto& f) -> auto& { return f.count; });
  add<FaultEntry>(
      keys,
      {.name = "fault.rate",
       .kind = rate,
       .sentence = "At which a slow receiver writes to memory; 0bps where there is none.",
       .minimum = 0,
       .maximum = 3'200'000'000'000},
      [](auto& f) -> auto& { return f.rate_bps; });
  add_count(
      keys, {.name = "fault.priority", .sentence = "Of a wrong class or a pause storm.", .maximum = 7},
      [](auto& f) -> auto& { return f.priority; });
}

}  // namespace bx::harness
