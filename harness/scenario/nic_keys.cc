// SPDX-License-Identifier: GPL-2.0-only
// The keys of [fabric.nic], and what of payloads is moved.
#include <utility>

#include "harness/scenario/key_builder.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// A number that takes the place of the profile's.
void add_cost(std::vector<KeySpec>& keys, std::string name, KeyKind kind, std::string sentence,
              std::uint64_t maximum, auto access) {
  add<Settings>(keys,
                {.name = "fabric.nic." + std::move(name),
                 .kind = kind,
                 .sentence = std::move(sentence),
                 .minimum = 1,
                 .maximum = maximum,
                 .zero_is_auto = true},
                access);
}

void add_bus_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add_cost(
      keys, "pcie_rate", rate, "Bits a second of the NIC's PCIe bus each way; auto is the profile's.",
      3'200'000'000'000, [](auto& s) -> auto& { return s.fabric.nic.pcie_rate_bps; });
  add_cost(
      keys, "pcie_read_latency", duration,
      "Round trip of a PCIe read, and so what a cache miss costs; auto is the profile's.", kSecond / 1000,
      [](auto& s) -> auto& { return s.fabric.nic.pcie_read_latency_ns; });
  add_cost(
      keys, "pcie_write_latency", duration, "From a PCIe write to what software sees; auto is the profile's.",
      kSecond / 1000, [](auto& s) -> auto& { return s.fabric.nic.pcie_write_latency_ns; });
  add_cost(
      keys, "pcie_payload", bytes, "Largest payload of a PCIe packet; auto is the profile's.", 4096,
      [](auto& s) -> auto& { return s.fabric.nic.pcie_payload_bytes; });
  add_cost(
      keys, "pcie_overhead", bytes, "Bytes around the payload of a PCIe packet; auto is the profile's.", 4096,
      [](auto& s) -> auto& { return s.fabric.nic.pcie_overhead_bytes; });
  add_cost(
      keys, "doorbell", duration, "From the processor's write to the NIC's knowing; auto is the profile's.",
      kSecond / 1000, [](auto& s) -> auto& { return s.fabric.nic.doorbell_ns; });
  add_cost(
      keys, "wqes_per_fetch", count, "Send-queue entries that one PCIe read brings; auto is the profile's.",
      65'536, [](auto& s) -> auto& { return s.fabric.nic.wqes_per_fetch; });
  add_cost(
      keys, "blueflame", bytes,
      "A doorbell for one inline request of at most so many bytes brings the request itself; auto is the "
      "profile's.",
      4096, [](auto& s) -> auto& { return s.fabric.nic.blueflame_bytes; });
}

void add_processing_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add_cost(
      keys, "units", count, "Packets that are processed side by side each way; auto is the profile's.", 16,
      [](auto& s) -> auto& { return s.fabric.nic.units; });
  add_cost(
      keys, "packet_rate", count, "Packets a second that a NIC processes each way; auto is the profile's.",
      4'000'000'000, [](auto& s) -> auto& { return s.fabric.nic.packet_rate; });
  add_cost(
      keys, "qp_cache", count, "Queue pair contexts that fit on the NIC; auto is the profile's.", 1U << 24U,
      [](auto& s) -> auto& { return s.fabric.nic.qp_cache; });
  add_cost(
      keys, "translation_cache", count,
      "Memory pages whose translations fit on the NIC; auto is the profile's.", 1U << 24U,
      [](auto& s) -> auto& { return s.fabric.nic.translation_cache; });
  add_cost(
      keys, "page", bytes,
      "Memory page of a translation: 4KiB, or 2MiB of huge pages; auto is the profile's.", 1U << 30U,
      [](auto& s) -> auto& { return s.fabric.nic.page_bytes; });
  add_cost(
      keys, "receive_buffer", bytes,
      "Packets that wait to be processed; from a quarter of it on the NIC pauses the switch; auto is the "
      "profile's.",
      1U << 30U, [](auto& s) -> auto& { return s.fabric.nic.receive_buffer_bytes; });
}

}  // namespace

void add_nic_keys(std::vector<KeySpec>& keys) {
  using enum KeyKind;
  add<Settings>(
      keys,
      {.name = "fabric.nic.ports",
       .kind = count,
       .sentence =
           "Ports of each NIC. With 2, host0 and host1 are those of the first NIC, and so on: each has "
           "its link, its address and its process; bus, caches, keys, CNP limits and a reset of the "
           "NIC they share.",
       .minimum = 1,
       .maximum = 4},
      [](auto& s) -> auto& { return s.fabric.nic.ports; });
  add<Settings>(
      keys,
      {.name = "fabric.nic.profile",
       .kind = choice,
       .sentence = "What a NIC's work costs beyond its two latencies: none is off, ideal is all free, to "
                   "change from.",
       .choices = {"none", "ideal", "connectx5"}},
      [](auto& s) -> auto& { return s.fabric.nic.profile; });
  add_bus_keys(keys);
  add_processing_keys(keys);
  add<Settings>(
      keys,
      {.name = "fabric.nic.late_dma",
       .kind = choice,
       .sentence = "Whether bytes reach memory when the bus has written them, and not with their packet; "
                   "auto is the profile's.",
       .choices = {"auto", "on", "off"}},
      [](auto& s) -> auto& { return s.fabric.nic.late_dma; });
  add<Settings>(
      keys,
      {.name = "fabric.payload",
       .kind = choice,
       .sentence = "lengths moves only the begin of each message and checks no bytes: for speed and scale.",
       .choices = {"moved", "lengths"}},
      [](auto& s) -> auto& { return s.fabric.payload; });
  add<Settings>(
      keys,
      {.name = "fabric.payload_kept",
       .kind = bytes,
       .sentence = "What of each message payload = lengths moves: it must hold the headers of the library.",
       .minimum = 1024,
       .maximum = 1U << 30U,
       .needs = {only_with("fabric.payload", {"lengths"})}},
      [](auto& s) -> auto& { return s.fabric.payload_kept_bytes; });
}

}  // namespace bx::harness
