// SPDX-License-Identifier: GPL-2.0-only
#include "harness/swarm/member.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "harness/swarm/network.h"
#include "harness/swarm/swarm_bytes.h"
#include "libbx/base/check.h"

namespace bx::harness {

namespace {

constexpr std::uint16_t kPort = 7000;
constexpr int kStartsMax = 20;  // attempts, where creation may be refused
constexpr std::byte kGuard{0xa5};

}  // namespace

struct Member::SwarmCall final : CallOp {
  void on_complete() noexcept override {
    ++completions;
    member->finish(*this);  // may destroy this
  }
  Member* member = nullptr;
  Kind kind = Kind::call;
  std::uint64_t number = 0;
  std::uint64_t salt = 0;
  std::size_t size = 0;
  std::size_t to = 0;
  Session session;
  RemoteRegion remote;  // of a put or a get
  bool own_deadline = false;
  bool chains = false;  // starts the next call from inside its completion
  bool cancelled = false;
  int completions = 0;
};

Member::Member(Swarm& swarm, std::size_t number, Prng prng)
    : swarm_(swarm), number_(number), name_("host" + std::to_string(number)), prng_(prng) {}

Member::~Member() {
  stop();
}

void Member::start() {
  auto host = swarm_.network().fabric().open_host(name_);
  if (!host) return fault("start", "the host does not open");
  host_ = std::move(*host);
  for (int attempt = 0; context_ == nullptr; ++attempt) {
    auto context = Context::create(*host_, swarm_.plan().hosts[number_]);
    if (context) {
      context_ = std::move(*context);
    } else if (swarm_.plan().honest() || attempt == kStartsMax) {
      return fault("start", std::string("no context: ") + context.error().detail);
    }
  }
  worker().set_log(this);
  at_start_ = metrics();
  if (!worker().serve(kPort, *this)) fault("start", "cannot serve");
  expose_table();
  user_.resize(kUserSlots);
  for (UserSlot& slot : user_) slot.bytes.resize(kUserBytes);
  host_->reactor().arm(*this, worker().now() + Duration(static_cast<std::int64_t>(prng_.below(5000))));
}

void Member::stop() {
  if (host_ == nullptr) return;
  if (armed()) host_->reactor().cancel(*this);
  held_.clear();
  silenced_ = {};
  kept_ = {};
  sessions_.clear();
  opening_.clear();
  part_busy_.clear();
  streams_reading_ = 0;
  swarm_.report().abandoned += calls_.size();
  calls_.clear();
  done_.clear();
  table_.reset();
  for (UserSlot& slot : user_) slot.memory.reset();
  context_.reset();
  user_.clear();  // no NIC touches it any more
  host_.reset();
}

void Member::expose_table() {
  auto memory = worker().allocate(swarm_.size() * kPartBytes);
  if (!memory) return fault("start", "no memory for the table");
  std::ranges::fill(memory->bytes(), kGuard);
  auto exposed = worker().expose(std::move(*memory));
  if (exposed) {
    table_.emplace(std::move(*exposed));
  } else if (swarm_.plan().honest()) {
    fault("start", std::string("cannot expose: ") + exposed.error().detail);
  }
}

void Member::fault(const std::string& checker, const std::string& what) {
  swarm_.fault(checker, name_ + ": " + what);
}

void Member::line(LogLevel /*level*/, std::string_view text) noexcept {
  if (text.find("rnr_retry") != std::string_view::npos) fault("no-rnr", std::string(text));
}

MetricSet Member::metrics() const {
  MetricSet set;
  worker().report(set);
  return set;
}

std::size_t Member::random_size() {
  const std::size_t magnitude = std::size_t{1} << prng_.below(18);
  return prng_.chance(0.1) ? 0 : prng_.below(magnitude) + magnitude / 2;
}

std::optional<Buffer> Member::user_buffer(std::size_t size) {
  if (size == 0 || size > kUserBytes) return std::nullopt;
  UserSlot& slot = user_[prng_.below(user_.size())];
  if (slot.memory && slot.memory->in_use()) return std::nullopt;
  if (slot.memory && prng_.chance(0.2)) {  // as if it had been mapped anew
    slot.memory.reset();
    worker().forget_memory(slot.bytes);
    ++slot.generation;
  }
  if (!slot.memory) {
    auto memory = worker().register_memory(slot.bytes, slot.generation);
    if (!memory) {
      if (swarm_.plan().honest()) fault("errors", std::string("register_memory: ") + memory.error().detail);
      return std::nullopt;
    }
    slot.memory.emplace(std::move(*memory));
  }
  ++swarm_.report().user_memory;
  return slot.memory->buffer(prng_.below(kUserBytes - size + 1), size);
}

std::optional<Buffer> Member::some_buffer(std::size_t size) {
  if (prng_.chance(0.3)) {
    if (auto own = user_buffer(size)) return own;
  }
  auto buffer = worker().allocate(size);
  if (!buffer) return std::nullopt;  // out of memory: the caller's own affair
  return std::move(*buffer);
}

void Member::on_timer(Instant now) noexcept {
  if (winding_down_) return;
  act(now);
  host_->reactor().arm(*this, now + Duration(static_cast<std::int64_t>(prng_.between(500, 20'000))));
}

void Member::act(Instant now) {
  release(now);
  for (std::uint64_t count = prng_.below(4); count > 0; --count) start_call();
  if (!calls_.empty() && prng_.chance(0.2)) disturb();
  if (prng_.chance(0.05)) worker().check_invariants();
}

void Member::disturb() {
  auto victim = calls_.begin();
  std::advance(victim, static_cast<std::ptrdiff_t>(prng_.below(calls_.size())));
  if (prng_.chance(0.5)) {
    victim->second->cancelled = true;
    victim->second->cancel();
  } else if (victim->second->kind == Kind::call) {  // a put that nobody hears of could change what is read
    calls_.erase(victim);
    ++swarm_.report().abandoned;
  }
}

void Member::start_call() {
  // Mostly within its own limit, or most calls of a host with a small one would end refused.
  if (calls_.size() >= swarm_.plan().hosts[number_].calls_max && !prng_.chance(0.05)) return;
  const std::size_t to = prng_.below(swarm_.size());
  const auto session = sessions_.find(to);
  if (session == sessions_.end()) {
    if (!std::exchange(opening_[to], true)) worker().spawn(connect(to));
    return;
  }
  if (prng_.chance(0.2)) return start_put(to, session->second);
  if (prng_.chance(0.1)) return start_stream(to, session->second);
  auto call = std::make_unique<SwarmCall>();
  call->to = to;
  call->session = session->second;
  call->size = random_size();
  call->salt = prng_.next();
  call->chains = prng_.chance(0.2);
  auto request = some_buffer(call->size);
  if (!request) return;
  fill(request->bytes(), call->salt);
  launch(std::move(call), std::move(*request));
}

void Member::start_put(std::size_t to, Session session) {
  const Member& owner = swarm_.member(to);
  if (!owner.running() || !owner.table_ || std::exchange(part_busy_[to], true)) return;
  constexpr std::size_t kRoom = kPartBytes - 2 * kGuardBytes;
  auto call = std::make_unique<SwarmCall>();
  call->kind = Kind::put;
  call->to = to;
  call->session = session;
  call->size = std::min(random_size(), kRoom);
  call->salt = prng_.next();
  const std::size_t offset = kGuardBytes + prng_.below(kRoom - call->size + 1);
  call->remote = owner.table_->remote().at(number_ * kPartBytes + offset);
  auto buffer = some_buffer(call->size);
  if (!buffer) {
    part_busy_[to] = false;
    return;
  }
  fill(buffer->bytes(), call->salt);
  launch(std::move(call), std::move(*buffer));
}

// Reads back what was put.
void Member::start_get(const SwarmCall& put) {
  auto call = std::make_unique<SwarmCall>();
  call->kind = Kind::get;
  call->to = put.to;
  call->session = put.session;
  call->size = put.size;
  call->salt = put.salt;
  call->remote = put.remote;
  auto buffer = some_buffer(call->size);
  if (!buffer) {
    part_busy_[put.to] = false;
    return;
  }
  std::ranges::fill(buffer->bytes(), kGuard);
  launch(std::move(call), std::move(*buffer));
}

void Member::launch(std::unique_ptr<SwarmCall> call, Buffer buffer) {
  call->member = this;
  call->number = next_call_++;
  CallOptions options;
  if (prng_.chance(0.1)) {
    call->own_deadline = true;
    options.deadline = worker().now() + Duration(static_cast<std::int64_t>(prng_.below(300'000)));
  }
  if (prng_.chance(0.2)) options.priority = Priority::high;
  std::optional<Gather> parts;
  if (call->kind == Kind::call && prng_.chance(0.2)) parts = in_parts(buffer);
  ++swarm_.report().calls;
  SwarmCall& started = *call;
  calls_.emplace(call->number, std::move(call));
  switch (started.kind) {
    case Kind::call:
      if (parts) return started.session.start_call(std::move(*parts), started, options);
      return started.session.start_call(std::move(buffer), started, options);
    case Kind::put:
      return started.session.start_put(std::move(buffer), started.remote, started, options);
    case Kind::get:
      return started.session.start_get(std::move(buffer), started.remote, started, options);
  }
}

void Member::finish(SwarmCall& call) {
  const auto found = calls_.find(call.number);
  if (call.completions != 1 || found == calls_.end()) {
    return fault("exactly-once", "call " + std::to_string(call.number) + " completed twice");
  }
  std::unique_ptr<SwarmCall> own = std::move(found->second);
  calls_.erase(found);
  if (call.result()) {
    finish_well(call);
  } else {
    finish_badly(call, call.result().error());
    if (call.kind != Kind::call) part_busy_[call.to] = false;
  }
  if (call.chains && !winding_down_) start_call();
  if (prng_.chance(0.5)) done_.push_back(std::move(own));
}

void Member::finish_well(SwarmCall& call) {
  const Buffer answer = std::move(*call.result());
  ++swarm_.report().answered;
  if (answer.size() != call.size || !is_filled(answer.bytes(), call.salt)) {
    constexpr std::array<const char*, 3> kWhat{"an answer", "a put's buffer", "what was put and read back"};
    fault("bytes", std::string(kWhat[static_cast<std::size_t>(call.kind)]) + " has other bytes (" +
                       std::to_string(answer.size()) + " of " + std::to_string(call.size) + ")");
  }
  if (call.kind == Kind::put) start_get(call);
  if (call.kind != Kind::get) return;
  ++swarm_.report().one_sided;
  part_busy_[call.to] = false;
}

void Member::finish_badly(const SwarmCall& call, const Error& error) {
  SwarmReport& report = swarm_.report();
  const bool honest = swarm_.plan().honest();
  if (error.scope >= ErrorScope::session) {
    ++report.failed;
    if (honest) fault("errors", std::string("a session failed: ") + error.detail);
    sessions_.clear();  // to be opened again
    return;
  }
  const bool one_sided = call.kind != Kind::call;
  switch (error.code) {
    case ErrorCode::deadline_exceeded:
      ++report.expired;
      if (!call.own_deadline) fault("liveness", "a call was stuck until its deadline");
      return;
    case ErrorCode::cancelled:  // by this side, or by a service that dropped it
      ++(call.cancelled ? report.cancelled : report.refused);
      if (one_sided && !call.cancelled) fault("errors", "a put or get was cancelled by nobody");
      return;
    case ErrorCode::exhausted:
      ++report.refused;
      return;
    case ErrorCode::unsupported:
      ++report.refused;
      if (one_sided) fault("errors", std::string("a put or get: ") + error.detail);
      return;
    case ErrorCode::invalid_argument:  // the owner was started again
      ++report.refused;
      if (!one_sided || honest) fault("errors", std::string("an argument was refused: ") + error.detail);
      return;
    default:
      fault("errors", std::string("an error that nobody caused: ") + error.detail);
  }
}

Task<> Member::connect(std::size_t to) {
  auto session = co_await worker().connect("host" + std::to_string(to), kPort);
  opening_[to] = false;
  if (session) {
    sessions_[to] = *session;
  } else if (swarm_.plan().honest()) {
    fault("errors", std::string("cannot connect: ") + session.error().detail);
  }
}

void Member::handle(Request request) noexcept {
  const SwarmSabotage sabotage = swarm_.plan().options.sabotage;
  if (sabotage == SwarmSabotage::silence && ++served_ == 20) {
    silenced_ = std::move(request);
    return;
  }
  const std::uint64_t choice = winding_down_ ? 0 : prng_.below(20);
  const Instant due = worker().now() + Duration(static_cast<std::int64_t>(prng_.below(200'000)));
  Buffer payload = std::move(request.payload());
  if (sabotage == SwarmSabotage::bytes && !payload.empty()) payload.bytes().back() ^= std::byte{1};
  if (choice == 19) return request.reject(ErrorCode::unsupported);
  if (choice == 18) return;  // dropped unanswered
  if (choice >= 14) {        // answered later; the payload stays where it is
    held_.push_back({std::move(request), std::move(payload), due});
    return;
  }
  if (choice >= 12) {  // a copy is the answer, the original is kept for a while
    if (auto copy = some_buffer(payload.size())) {
      std::ranges::copy(std::as_const(payload).bytes(), copy->data());
      request.reply(std::move(*copy));
      held_.push_back({std::nullopt, std::move(payload), due});
      return;
    }
  }
  if (choice == 11) {
    if (auto parts = in_parts(payload)) return request.reply(std::move(*parts));
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
    if (i + 1 < held_.size()) held_[i] = std::move(held_.back());
    held_.pop_back();
  }
  for (Held& one : due) {
    if (one.request) one.request->reply(std::move(one.payload));
  }
}

void Member::wind_down() {
  winding_down_ = true;
  BX_CHECK(swarm_.plan().options.sabotage != SwarmSabotage::check, "the sabotage that was asked for");
  if (running()) release(kNever);
}

void Member::check_guards() {
  if (!table_) return;
  const std::span<std::byte> bytes = table_->bytes();
  const auto is_guard = [](std::byte one) { return one == kGuard; };
  for (std::size_t part = 0; part < swarm_.size(); ++part) {
    const std::span<std::byte> own = bytes.subspan(part * kPartBytes, kPartBytes);
    if (!std::ranges::all_of(own.first(kGuardBytes), is_guard) ||
        !std::ranges::all_of(own.last(kGuardBytes), is_guard)) {
      fault("bytes", "a put wrote outside its place");
    }
  }
}

void Member::check_end() {
  if (!running()) return;
  if (!calls_.empty()) fault("exactly-once", std::to_string(calls_.size()) + " calls never completed");
  if (streams_reading_ > 0) fault("liveness", std::to_string(streams_reading_) + " streams never ended");
  if (!worker().idle()) fault("idle", "not idle at the end");
  worker().check_invariants();
  const WorkerGauges gauges = worker().gauges();
  if (gauges.bytes_in_flight_in + gauges.bytes_in_flight_out + gauges.messages_queued +
          gauges.calls_outstanding >
      0) {
    fault("idle", "something is in flight at the end");
  }
  for (const UserSlot& slot : user_) {
    if (slot.memory && slot.memory->in_use()) fault("memory", "the application's memory is still in use");
  }
  check_guards();
  const double peers_failed = metrics().value_or("peers.failed", 0);
  swarm_.report().peers_failed += static_cast<std::uint64_t>(peers_failed);
  if (swarm_.plan().honest() && peers_failed > 0) fault("errors", "a peer failed");
}

void Member::close() {
  if (!running()) return;
  if (swarm_.plan().options.sabotage == SwarmSabotage::memory) {
    if (auto buffer = worker().allocate(100)) kept_ = std::move(*buffer);
  }
  table_.reset();
  for (UserSlot& slot : user_) {
    slot.memory.reset();
    worker().forget_memory(slot.bytes);
  }
  worker().close();
}

void Member::check_memory() {
  if (!running()) return;
  const MetricSet now = metrics();
  // Not memory.receive_in_use: the receive slots that were once made stay for the peers to come.
  for (const char* level : {"memory.send_in_use", "memory.send_buffers", "memory.receive_buffers",
                            "memory.leases", "memory.user_in_use", "memory.user_regions"}) {
    const Metric* before = at_start_.find(level);
    const Metric* after = now.find(level);
    if (before == nullptr || after == nullptr) {
      fault("memory", std::string("there is no ") + level);
    } else if (after->value != before->value) {
      fault("memory", std::string(level) + " was " +
                          std::to_string(static_cast<std::uint64_t>(before->value)) +
                          " at the start and is " + std::to_string(static_cast<std::uint64_t>(after->value)));
    }
  }
}

}  // namespace bx::harness
