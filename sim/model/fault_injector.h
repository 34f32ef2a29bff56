// SPDX-License-Identifier: GPL-2.0-only
// Brings the faults of a plan about, at their times, on a network that has all its NICs. What a host's
// software does when its process or the whole host dies is its owner's business: it is told.
//
//   plan --> one Entry a fault: begins and ends by engine events --> ports, NICs, links, HostFaultListener
//
// Nothing is attached to a port or NIC that no fault names. All randomness comes from streams forked by the
// number of the fault, so that one more fault does not change what the others hit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libbx/base/prng.h"
#include "sim/model/engine.h"
#include "sim/model/fault_plan.h"
#include "sim/model/frame.h"
#include "sim/model/nic.h"
#include "sim/model/pause_faults.h"
#include "sim/model/port_faults.h"
#include "sim/model/topology.h"

namespace bx::sim {

class HostFaultListener {
 public:
  // process_kill or host_crash; `begins` is false when the host is to start again.
  virtual void on_host_fault(std::uint16_t host, FaultKind kind, bool begins) = 0;

 protected:
  ~HostFaultListener() = default;
};

// What became of a fault.
struct FaultRecord {
  FaultSpec spec{};
  bool began = false;
  bool ended = false;  // never, of one that lasts for ever
  // Packets hit; of a pause storm or slow receiver, PFC frames sent; of link faults, links cut, of others,
  // queue pairs failed or hosts.
  std::uint64_t hits = 0;
};

class FaultInjector {
 public:
  // Every fault must pass find_fault_error for the topology's plan. `nics` by host; a NIC of several ports
  // stands there once for each. Its queue pairs are numbered over all of them, and a fault of one packet is
  // one of those that cross the port of the host that it names.
  FaultInjector(Engine& engine, FramePool& pool, Topology& topology, std::vector<Nic*> nics,
                std::span<const FaultSpec> plan, const Prng& random);
  FaultInjector(const FaultInjector&) = delete;
  FaultInjector& operator=(const FaultInjector&) = delete;
  ~FaultInjector();

  // The clock of the faults begins: `at` counts from here. Once. Faults of one packet that name no time are
  // there from the beginning, so that the first packets of a connection can be hit.
  void start();
  void set_listener(HostFaultListener* listener) noexcept { listener_ = listener; }
  [[nodiscard]] std::vector<FaultRecord> records() const;
  // Faults that are still to begin or to end.
  [[nodiscard]] std::size_t pending() const noexcept;

 private:
  struct Attachment;  // faults of one port
  struct Entry;
  static void on_begin(void* entry, void* unused);
  static void on_end(void* entry, void* unused);
  void begin(Entry& entry);
  void end(Entry& entry);
  void switch_on(Entry& entry, bool on);
  void cut(Entry& entry, LinkState state);
  void attach(Entry& entry, std::uint64_t number, const Prng& random);
  void attach(Entry& entry, const FaultTarget::End& at, const PortFault& fault);
  [[nodiscard]] Attachment& attachment(Port& port);
  [[nodiscard]] PauseSender& pauses_of(std::uint16_t host);

  Engine& engine_;
  FramePool& pool_;
  Topology& topology_;
  std::vector<Nic*> nics_;
  HostFaultListener* listener_ = nullptr;
  std::vector<std::unique_ptr<Attachment>> attachments_;
  std::vector<std::unique_ptr<PauseSender>> pauses_;  // by host; null: none
  std::vector<std::unique_ptr<Entry>> entries_;
  bool started_ = false;
};

}  // namespace bx::sim
