// SPDX-License-Identifier: GPL-2.0-only
// One client of a workload: opens a session to each server it will call, then makes its planned calls in
// rounds. It is an ordinary application of the library, written as coroutines.
#pragma once

#include <bx/bx.h>

#include <coroutine>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "harness/measure/oracle.h"
#include "harness/workload/ledger.h"
#include "harness/workload/plan.h"

namespace bx::harness {

// Told when a client has done what it was last asked to do.
class ClientListener {
 public:
  virtual void on_client_done() noexcept = 0;

 protected:
  ~ClientListener() = default;
};

// By server; of each as many as the plan says, or less than that if connecting failed.
using Sessions = std::map<std::uint32_t, std::vector<Session>>;

// A group of calls under way at the same time; one coroutine waits until all of them are complete.
class Round {
 public:
  Round(const ClientPlan& plan, Ledger& ledger);

  // Starts the calls of round `number`, each to its session. The round must not be running.
  void start(Worker worker, std::uint64_t number, const Sessions& sessions);

  bool await_ready() const noexcept { return pending_ == 0; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept { awaiting_ = awaiting; }
  void await_resume() const noexcept {}

 private:
  struct Op final : CallOp {
    Round* round = nullptr;
    std::uint32_t index = 0;
    void on_complete() noexcept override { round->on_complete(*this); }
  };
  void on_complete(Op& op) noexcept;
  void finish_one() noexcept;

  const ClientPlan& plan_;
  Ledger& ledger_;
  std::unique_ptr<Op[]> ops_;
  fabric::Reactor* reactor_ = nullptr;
  std::uint64_t number_ = 0;
  std::uint32_t pending_ = 0;
  std::coroutine_handle<> awaiting_;
};

class Client {
 public:
  Client(const ClientPlan& plan, Worker worker, Ledger& ledger, Oracle& oracle, ClientListener& listener);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Each starts the work in the worker's next turn and returns at once; the listener is told at its end.
  void start_connecting();
  void start_rounds(std::uint64_t first, std::uint64_t count);
  // Rounds not yet begun are left out; on_client_done() comes when those under way are complete.
  void give_up() noexcept { end_round_ = 0; }

  [[nodiscard]] const ClientPlan& plan() const noexcept { return plan_; }

 private:
  Task<> connect_all(Worker worker);
  Task<> run_rounds(Worker worker, Round& round);

  const ClientPlan& plan_;
  Worker worker_;
  Oracle& oracle_;
  ClientListener& listener_;
  Sessions sessions_;
  std::vector<std::unique_ptr<Round>> rounds_;  // one for each that may be under way at once
  std::uint64_t next_round_ = 0;
  std::uint64_t end_round_ = 0;
  std::size_t running_ = 0;
};

}  // namespace bx::harness
