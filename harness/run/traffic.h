// SPDX-License-Identifier: GPL-2.0-only
// All that the workloads of a run send, and the world in which they send it: servers, clients and flows. It
// knows how far they are; what that means for the run is VariantRun's to say.
//
// Each phase begins with one of the begin_ functions and is over when done(); whoever is last stops the
// world.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "harness/measure/oracle.h"
#include "harness/run/world.h"
#include "harness/workload/client.h"
#include "harness/workload/flows.h"
#include "harness/workload/ledger.h"
#include "harness/workload/plan.h"
#include "harness/workload/server.h"

namespace bx::harness {

class Traffic final : private ClientListener, private sim::HostFaultListener {
 public:
  // Both outlive it. With `scope` part the world is one of several: only what its own hosts do is played, and
  // flows, which need both ends, are not.
  Traffic(const Settings& settings, Oracle& oracle, LedgerScope scope = LedgerScope::whole);
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Makes servers, clients and flows in `world`, once. What went wrong, or nothing.
  [[nodiscard]] std::string open(std::unique_ptr<World> world);
  [[nodiscard]] World& world() noexcept { return *world_; }
  [[nodiscard]] const World& world() const noexcept { return *world_; }

  void begin_connecting();
  void begin_warm_up();
  // The clock of the scenario's faults begins with it.
  void begin_measured();
  [[nodiscard]] bool done() const noexcept { return pending_ == 0; }

  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
  [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }
  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Flow>>& flows() const noexcept { return flows_; }
  [[nodiscard]] std::uint64_t calls_under_way() const { return ledger_.started() - ledger_.completed(); }
  [[nodiscard]] std::int64_t flows_unfinished() const;
  // Payload that clients have received and flows have seen acknowledged.
  [[nodiscard]] std::uint64_t bytes() const;

  // Calls and flows that are not complete, or left wrong bytes, are breaches.
  void judge();
  // Calls still under way complete with `closed` before the memory they use goes.
  void end();

 private:
  struct Serving {
    std::uint32_t host = 0;
    std::uint16_t port = 0;
    Server server;
  };
  [[nodiscard]] std::string serve(Serving& serving);
  [[nodiscard]] std::string open_flows();
  void on_client_done() noexcept override;
  // In an event of no host: the process of a server dies, or starts again.
  void on_host_fault(std::uint16_t host, sim::FaultKind kind, bool begins) override;

  const Settings& settings_;
  Oracle& oracle_;
  LedgerScope scope_;
  Plan plan_;
  Ledger ledger_;
  std::deque<Serving> servers_;  // deques, because workers and coroutines point at the elements
  std::deque<Client> clients_;
  std::unique_ptr<World> world_;              // destroyed next: its workers hold coroutines of the clients
  std::vector<std::unique_ptr<Flow>> flows_;  // destroyed first: they are made of objects of the hosts
  std::size_t pending_ = 0;                   // clients and flows that have not done what they were asked
  bool closing_ = false;
};

}  // namespace bx::harness
