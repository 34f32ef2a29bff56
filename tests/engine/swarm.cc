// SPDX-License-Identifier: BSD-3-Clause
#include "tests/engine/swarm.h"

#include <algorithm>

namespace bx::testing {

using namespace std::chrono_literals;

namespace {

constexpr Duration kBusy = 3ms;                       // how long members start calls
constexpr std::int64_t kForEver = 1'000'000'000'000;  // a deadline that only a call which is stuck reaches
constexpr std::size_t kPortOfAll = 7000;

}  // namespace

struct Member::SwarmCall final : CallOp {
  void on_complete() noexcept override {
    ++completions;
    member->finish(*this);  // may destroy this
  }
  Member* member = nullptr;
  std::uint64_t number = 0;
  std::size_t size = 0;
  bool own_deadline = false;
  bool chains = false;  // starts the next call from inside its completion
  int completions = 0;
};

Member::Member(Swarm& swarm, std::string name, const Config& config, Prng prng)
    : swarm_(swarm), name_(std::move(name)), config_(config), prng_(prng) {}

Member::~Member() {
  stop();
}

void Member::start() {
  auto host = swarm_.fabric().open_host(name_);
  if (!host) return fault("the host does not open");
  node_.host = std::move(*host);
  for (int attempt = 0; node_.context == nullptr; ++attempt) {
    auto context = Context::create(*node_.host, config_);
    if (context) {
      node_.context = std::move(*context);
    } else if (swarm_.mode() == SwarmMode::honest || attempt == 20) {
      return fault(std::string("no context: ") + context.error().detail);
    }
  }
  if (!node_.worker().serve(kPortOfAll, *this)) fault("cannot serve");
  node_.host->reactor().arm(*this,
                            node_.worker().now() + Duration(static_cast<std::int64_t>(prng_.below(5000))));
}

void Member::stop() {
  if (node_.host == nullptr) return;
  if (armed()) node_.host->reactor().cancel(*this);
  held_.clear();
  sessions_.clear();
  opening_.clear();
  swarm_.report().abandoned += calls_.size();
  calls_.clear();
  node_.context.reset();
  node_.host.reset();
}

void Member::fault(const std::string& what) {
  swarm_.report().faults.push_back(name_ + ": " + what);
}

std::size_t Member::random_size() {
  const std::size_t magnitude = std::size_t{1} << prng_.below(18);
  return prng_.chance(0.1) ? 0 : prng_.below(magnitude) + magnitude / 2;
}

void Member::on_timer(Instant now) noexcept {
  if (winding_down_) return;
  act(now);
  node_.host->reactor().arm(*this, now + Duration(static_cast<std::int64_t>(prng_.between(500, 20'000))));
}

void Member::act(Instant now) {
  release(now);
  for (std::uint64_t count = prng_.below(4); count > 0; --count) start_call();
  if (!calls_.empty() && prng_.chance(0.1)) {  // gives one up
    auto victim = calls_.begin();
    std::advance(victim, static_cast<std::ptrdiff_t>(prng_.below(calls_.size())));
    calls_.erase(victim);
    ++swarm_.report().abandoned;
  }
  if (prng_.chance(0.05)) node_.worker().check_invariants();
}

void Member::start_call() {
  const std::string& to = swarm_.some_name(prng_);
  const auto session = sessions_.find(to);
  if (session == sessions_.end()) {
    if (!std::exchange(opening_[to], true)) node_.worker().spawn(open(to));
    return;
  }
  auto call = std::make_unique<SwarmCall>();
  call->member = this;
  call->number = next_call_++;
  call->size = random_size();
  call->chains = prng_.chance(0.2);
  auto request = node_.worker().allocate(call->size);
  if (!request) return;  // out of memory: the caller's own affair
  fill(request->bytes(), call->number);
  CallOptions options;
  if (prng_.chance(0.1)) {
    call->own_deadline = true;
    options.deadline = node_.worker().now() + Duration(static_cast<std::int64_t>(prng_.below(300'000)));
  }
  ++swarm_.report().calls;
  SwarmCall& started = *call;
  calls_.emplace(call->number, std::move(call));
  session->second.start_call(std::move(*request), started, options);
}

void Member::finish(SwarmCall& call) {
  SwarmReport& report = swarm_.report();
  if (call.completions != 1) fault("a call completed twice");
  if (call.result()) {
    const Buffer answer = std::move(*call.result());
    ++report.answered;
    if (answer.size() != call.size || !is_filled(answer.bytes(), call.number))
      fault("an answer with other bytes");
  } else {
    const Error error = call.result().error();
    const bool lost = error.scope >= ErrorScope::session;
    if (lost) {
      ++report.failed;
      if (swarm_.mode() == SwarmMode::honest) fault(std::string("a session failed: ") + error.detail);
      sessions_.clear();  // to be opened again
    } else if (error.code == ErrorCode::deadline_exceeded) {
      ++report.expired;
      if (!call.own_deadline) fault("a call was stuck until its deadline");
    } else if (error.code == ErrorCode::unsupported || error.code == ErrorCode::cancelled ||
               error.code == ErrorCode::exhausted) {
      ++report.refused;
    } else {
      fault(std::string("an error that nobody caused: ") + error.detail);
    }
  }
  const bool chains = call.chains && !winding_down_;
  calls_.erase(call.number);
  if (chains) start_call();
}

Task<> Member::open(std::string to) {
  auto session = co_await node_.worker().connect(to, kPortOfAll);
  opening_[to] = false;
  if (session) {
    sessions_[to] = *session;
  } else if (swarm_.mode() == SwarmMode::honest) {
    fault(std::string("cannot connect: ") + session.error().detail);
  }
}

void Member::handle(Request request) noexcept {
  const std::uint64_t choice = winding_down_ ? 0 : prng_.below(20);
  const Instant due = node_.worker().now() + Duration(static_cast<std::int64_t>(prng_.below(200'000)));
  Buffer payload = std::move(request.payload());
  if (choice == 19) return request.reject(ErrorCode::unsupported);
  if (choice == 18) return;  // dropped unanswered
  if (choice >= 14) {        // answered later; the payload stays where it is
    held_.push_back({std::move(request), std::move(payload), due});
    return;
  }
  if (choice == 13) {  // a copy is the answer, the original is kept for a while
    if (auto copy = request.allocate(payload.size())) {
      std::ranges::copy(payload.bytes(), copy->data());
      request.reply(std::move(*copy));
      held_.push_back({std::nullopt, std::move(payload), due});
      return;
    }
  }
  request.reply(std::move(payload));
}

void Member::release(Instant now) {
  std::vector<Held> due;
  for (std::size_t i = 0; i < held_.size();) {
    if (held_[i].due > now) {
      ++i;
      continue;
    }
    due.push_back(std::move(held_[i]));
    held_[i] = std::move(held_.back());
    held_.pop_back();
  }
  for (Held& one : due) {
    if (one.request) one.request->reply(std::move(one.payload));
  }
}

void Member::wind_down() {
  winding_down_ = true;
  if (running()) release(kNever);
}

void Member::check_end(SwarmReport& report) {
  if (!running()) return;
  const Worker worker = node_.worker();
  if (!calls_.empty()) fault("calls that never completed");
  if (!worker.idle()) fault("not idle at the end");
  worker.check_invariants();
  const WorkerGauges gauges = worker.gauges();
  if (gauges.bytes_in_flight_in + gauges.bytes_in_flight_out + gauges.messages_queued +
          gauges.calls_outstanding >
      0) {
    fault("something in flight at the end");
  }
  const double peers_failed = counter(node_, "peers.failed");
  report.peers_failed += static_cast<std::uint64_t>(peers_failed);
  if (swarm_.mode() == SwarmMode::honest && peers_failed > 0) fault("a peer failed");
}

Swarm::Swarm(std::uint64_t seed, SwarmMode mode) : prng_(seed), mode_(mode) {
  loopback::LoopbackConfig config;
  config.seed = seed;
  config.latency = Duration(static_cast<std::int64_t>(prng_.between(100, 5000)));
  config.bytes_per_second = prng_.between(1'000'000'000, 50'000'000'000);
  auto loopback = std::make_unique<loopback::LoopbackFabric>(config);
  loopback_ = loopback.get();
  fabric::FaultPlan plan{.seed = seed};
  plan = plan.with(fabric::FaultKind::completion_delay, prng_.uniform() * 0.1);
  plan = plan.with(fabric::FaultKind::short_post, prng_.uniform() * 0.1);
  if (mode == SwarmMode::faulty) {
    plan = plan.with(fabric::FaultKind::completion_error, prng_.uniform() * 0.001);
    plan = plan.with(fabric::FaultKind::queue_pair_failure, prng_.uniform() * 0.001);
    plan = plan.with(fabric::FaultKind::creation_refused, prng_.uniform() * 0.02);
  }
  fabric_ = std::make_unique<fabric::FaultFabric>(std::move(loopback), plan);
  const std::uint64_t hosts = prng_.between(2, 5);
  for (std::uint64_t i = 0; i < hosts; ++i) {
    const std::string name = "m" + std::to_string(i);
    members_.push_back(std::make_unique<Member>(*this, name, random_config(), prng_.fork(name)));
  }
}

Swarm::~Swarm() {
  members_.clear();
}

Config Swarm::random_config() {
  Config config;
  config.peers_max = 24;  // everybody both ways, itself, and those that fail and are not gone yet
  config.calls_max = prng_.between(1, 40);
  config.requests_max = prng_.between(1, 6);
  config.transfers_max = prng_.between(1, 4);
  config.call_deadline = kForEver;
  config.send_control_reserve = prng_.between(1, 4);
  config.send_depth = prng_.between(8, 24);
  config.eager_max = prng_.between(256, 4096);
  config.inline_max = prng_.chance(0.3) ? 0 : prng_.between(28, 220);
  config.rendezvous_policy = prng_.below(2);
  config.rendezvous_chunk = prng_.between(4096, 32'768);
  config.rendezvous_reads_max = prng_.between(1, 4);
  config.credits_per_peer = prng_.chance(0.4) ? 2 : prng_.between(2, 8);
  config.receive_spare = prng_.chance(0.3) ? 0 : prng_.below(10);
  config.window_enabled = prng_.below(2);
  config.window_per_peer = prng_.between(4096, 65'536);
  config.window_receiver = prng_.between(4096, 65'536);
  config.memory_arena = 256U << 20U;
  config.path_ack_timeout = 10;
  config.turn_completions_max = prng_.chance(0.3) ? 1 : prng_.between(1, 64);
  config.connect_deadline = 50'000'000;
  return config;
}

void Swarm::run_until(Instant limit) {
  for (const auto& member : members_) {
    if (!member->running()) continue;
    member->node().host->reactor().run(limit);
    return;
  }
}

SwarmReport Swarm::run() {
  for (const auto& member : members_) member->start();
  Instant now{};
  while (now < Instant(kBusy)) {
    now += Duration(static_cast<std::int64_t>(prng_.between(50'000, 1'500'000)));
    run_until(now);
    if (mode_ == SwarmMode::honest || !prng_.chance(0.5)) continue;
    Member& victim = *members_[prng_.below(members_.size() - 1) + 1];  // one stays, to run the world
    if (victim.running()) {
      victim.stop();
    } else {
      victim.start();
    }
  }
  for (const auto& member : members_) member->wind_down();
  run_until(kNever);
  for (const auto& member : members_) member->check_end(report_);
  Digest digest;
  digest.add(loopback_->digest());
  digest.add(loopback_->events());
  for (const std::uint64_t count : {report_.calls, report_.answered, report_.refused, report_.abandoned,
                                    report_.expired, report_.failed}) {
    digest.add(count);
  }
  report_.digest = digest.value();
  for (const auto& member : members_) member->stop();
  return report_;
}

}  // namespace bx::testing
