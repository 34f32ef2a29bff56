// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/client.h"

#include <fmt/format.h>

#include "harness/workload/pattern.h"
#include "libbx/base/check.h"

namespace bx::harness {

Round::Round(const ClientPlan& plan, Ledger& ledger)
    : plan_(plan), ledger_(ledger), ops_(std::make_unique<Op[]>(plan.fan_out)) {
  for (std::uint32_t i = 0; i < plan.fan_out; ++i) {
    ops_[i].round = this;
    ops_[i].index = i;
  }
}

void Round::start(Worker worker, std::uint64_t number, const Sessions& sessions) {
  BX_CHECK(pending_ == 0, "a round was started twice");
  number_ = number;
  reactor_ = &worker.reactor();
  // One more than the calls, so that the round cannot end while it is still being started.
  pending_ = plan_.fan_out + 1;
  for (std::uint32_t i = 0; i < plan_.fan_out; ++i) {
    const CallPlan& call = plan_.round(number)[i];
    const std::uint64_t id = plan_.first_call + number * plan_.fan_out + i;
    ledger_.on_start(id, plan_.host, call.server, worker.now());
    Result<Buffer> request = worker.allocate(call.request_bytes);
    const auto session = sessions.find(call.server);
    const bool connected = session != sessions.end() && session->second.size() == plan_.sessions;
    if (!request || !connected) {
      ledger_.on_failure(id, worker.now(),
                         request
                             ? Error{ErrorCode::closed, ErrorScope::session, 0, "no session to the server"}
                             : request.error());
      --pending_;
      continue;
    }
    fill_request({id, call.answer_bytes}, request->bytes());
    Session to = session->second[number % plan_.sessions];
    to.start_call(std::move(*request), ops_[i]);
  }
  --pending_;
}

void Round::on_complete(Op& op) noexcept {
  const std::uint64_t id = plan_.first_call + number_ * plan_.fan_out + op.index;
  if (op.result()) {
    ledger_.on_answer(id, reactor_->now(), op.result()->bytes(), plan_.round(number_)[op.index].answer_bytes);
  } else {
    ledger_.on_failure(id, reactor_->now(), op.result().error());
  }
  op.result() = Buffer{};  // gives the memory back to the library
  finish_one();
}

void Round::finish_one() noexcept {
  BX_CHECK(pending_ > 0, "a call completed after its round was over");
  if (--pending_ == 0 && awaiting_) std::exchange(awaiting_, {}).resume();
}

Client::Client(const ClientPlan& plan, Worker worker, Ledger& ledger, Oracle& oracle,
               ClientListener& listener)
    : plan_(plan), worker_(worker), oracle_(oracle), listener_(listener) {
  for (std::uint32_t i = 0; i < plan.concurrency; ++i)
    rounds_.push_back(std::make_unique<Round>(plan, ledger));
}

void Client::start_connecting() {
  worker_.spawn(connect_all(worker_));
}

void Client::start_rounds(std::uint64_t first, std::uint64_t count) {
  next_round_ = first;
  end_round_ = first + count;
  running_ = rounds_.size();
  for (const auto& round : rounds_) worker_.spawn(run_rounds(worker_, *round));
}

// One session after the other: the herd of handshakes is another scenario's subject.
Task<> Client::connect_all(Worker worker) {
  const auto port = static_cast<std::uint16_t>(kFirstPort + plan_.service);
  for (const CallPlan& call : plan_.calls) {
    std::vector<Session>& sessions = sessions_[call.server];
    while (sessions.size() < plan_.sessions) {
      const std::string server = fmt::format("host{}", call.server);
      Result<Session> session = co_await worker.connect(server, port);
      if (session) {
        sessions.push_back(*session);
        continue;
      }
      const Error& error = session.error();
      oracle_.breach(promise::kConnected,
                     fmt::format("host{} to {}: {} ({}): {}", plan_.host, server, to_string(error.code),
                                 to_string(error.scope), error.detail));
      break;
    }
  }
  listener_.on_client_done();
}

Task<> Client::run_rounds(Worker worker, Round& round) {
  while (next_round_ < end_round_) {
    round.start(worker, next_round_++, sessions_);
    co_await round;
    if (plan_.think_time_ns != 0 && next_round_ < end_round_) {
      co_await worker.sleep_until(worker.now() + Duration(plan_.think_time_ns));
    }
  }
  if (--running_ == 0) listener_.on_client_done();
}

}  // namespace bx::harness
