// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/world.h"

#include <algorithm>

#include "libbx/base/check.h"

namespace bx::differential {
namespace {

using fabric::SendFlags;
using fabric::WrId;

constexpr std::uint32_t kCqDepth = 1024;
constexpr std::uint32_t kOwnCqDepth = 256;

template <class T>
T must(Result<T> made) {
  BX_CHECK(made.has_value(), "a fabric refused to make an object within its caps");
  return std::move(*made);
}

constexpr std::array kSides{Side::a, Side::b};
// A key of the same place in the device's table, of a use that never was.
constexpr std::uint32_t kOtherTag = 0xff;

// A device may look at the local memory of an atomic when the answer comes, or before.
bool finds_memory_late(const Request& request) {
  return is_atomic(request.opcode) && (request.fault == Fault::local_key || request.fault == Fault::local_bounds);
}

// Its last packet asks for the receive; those before have been written by then, or not.
bool finds_no_receive_late(const Request& request) {
  return request.opcode == fabric::Opcode::rdma_write_with_imm;
}

}  // namespace

World::World(const Program& program, std::unique_ptr<fabric::Fabric> made,
             const std::array<std::string, 2>& hosts, Clock clock)
    : program_(program), fabric_(std::move(made)), clock_(clock) {
  for (const Side side : kSides) {
    sides_[index(side)] = std::make_unique<WorldSide>(side);
    at(side).host = must(fabric_->open_host(hosts[index(side)]));
  }
  set_up();
}

// Queue pairs before what they refer to; members would go in another order.
World::~World() {
  for (const Side side : kSides) {
    for (End& end : at(side).ends) {
      end.qp.reset();
      end.own_cq.reset();
    }
    for (auto& srq : at(side).srqs) srq.reset();
    at(side).send_cq.reset();
    at(side).recv_cq.reset();
    for (auto& region : at(side).regions) region.reset();
  }
  for (auto& side : sides_) side.reset();
}

void World::set_up() {
  for (const Side side : kSides) {
    WorldSide& here = at(side);
    const SideSetup& setup = program_.setup[index(side)];
    fabric::Device& device = here.host->device();
    for (std::size_t i = 0; i < kRegions; ++i) {
      here.regions[i] = must(device.register_memory(here.memory.region(i), setup.access[i]));
      here.keys[i] = {here.regions[i]->lkey(), here.regions[i]->rkey()};
      here.stale[i] = {fabric::LKey{static_cast<std::uint32_t>(here.keys[i].lkey) ^ kOtherTag},
                       fabric::RKey{static_cast<std::uint32_t>(here.keys[i].rkey) ^ kOtherTag}};
    }
    here.send_cq = must(device.create_cq({.depth = kCqDepth}));
    here.recv_cq = must(device.create_cq({.depth = kCqDepth}));
    for (std::size_t i = 0; i < kSrqs; ++i) {
      here.srqs[i] = must(device.create_srq({.depth = setup.srq_depth[i], .sges_max = kPiecesMax}));
    }
  }
}

Outcome World::run(const Outcome* expected) {
  Outcome outcome;
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    run_step(program_.steps[i], expected != nullptr && i < expected->size() ? &(*expected)[i] : nullptr);
    outcome.push_back(std::move(now_));
  }
  return outcome;
}

void World::run_step(const Step& step, const StepOutcome* expected) {
  now_ = {};
  action_ = 0;
  for (const Action& action : step.actions) {
    std::visit([&](const auto& what) { act(what); }, action);
    ++action_;
  }
  drain(step, expected);
  for (const auto& [side, place] : undefined_) at(side).memory.fill(place.region, place.slot);
  undefined_.clear();
  if (step.racy) {
    for (const Side side : kSides) at(side).memory.fill_all();
  }
  for (const Side side : kSides) now_.memory[index(side)] = at(side).memory.digests();
  for (const Side side : kSides) {
    for (const End& end : at(side).ends) {
      for (const Request* request : end.outstanding) {
        if (finds_no_receive_late(*request)) now_.memory[index(other(side))][digest_of(request->target)] = 0;
      }
    }
  }
}

void World::returned(std::string text) {
  now_.calls.push_back({action_, std::move(text)});
}

// --- Actions.

void World::act(const Connect& connect) {
  for (const Side side : kSides) make_end(connect, side);
  for (const Side side : kSides) connect_end(connect, side);
}

void World::make_end(const Connect& connect, Side side) {
  act(Destroy{connect.connection, side});
  WorldSide& here = at(side);
  End& end = here.ends[connect.connection];
  fabric::Device& device = here.host->device();
  if (connect.one_cq) end.own_cq = must(device.create_cq({.depth = kOwnCqDepth}));
  end.send_depth = connect.send_depth;
  end.waits_for_ever = connect.path.rnr_retry == 7;
  end.qp = must(
      device.create_qp({.send_cq = connect.one_cq ? end.own_cq.get() : here.send_cq.get(),
                        .recv_cq = connect.one_cq ? end.own_cq.get() : here.recv_cq.get(),
                        .srq = here.srqs[connect.srq[index(side)]].get(),
                        .send_depth = connect.send_depth,
                        .sges_max = kPiecesMax,
                        .inline_max = std::min(kInlineMax, device.caps().inline_max)}));
  here.connection_of[end.qp->address().qp] = connect.connection;
}

void World::connect_end(const Connect& connect, Side side) {
  fabric::QueuePair& qp = *at(side).ends[connect.connection].qp;
  const fabric::QpAddress peer = at(other(side)).ends[connect.connection].qp->address();
  const auto attempt = [&](const fabric::PathConfig& path) {
    const Result<> connected = qp.connect(peer, path);
    returned(connected ? "connected" : std::string(to_string(connected.error().code)));
  };
  fabric::PathConfig bad = connect.path;
  switch (connect.bad) {
    case BadConnect::none:
      break;
    case BadConnect::mtu:
      bad.mtu_bytes = 300;
      break;
    case BadConnect::ack_timeout:
      bad.ack_timeout = 32;
      break;
    case BadConnect::retry_cnt:
      bad.retry_cnt = 8;
      break;
    case BadConnect::rnr_retry:
      bad.rnr_retry = 8;
      break;
    case BadConnect::rnr_timer:
      bad.min_rnr_timer = 32;
      break;
  }
  if (connect.bad != BadConnect::none) attempt(bad);
  attempt(connect.path);
  if (connect.bad != BadConnect::none) attempt(connect.path);  // it is connected already
}

fabric::Sge World::sge(Side side, const Place& piece) {
  WorldSide& here = at(side);
  auto lkey = piece.key == Key::stale ? here.stale[piece.region].lkey : here.keys[piece.region].lkey;
  if (piece.key == Key::unknown) lkey = fabric::LKey{static_cast<std::uint32_t>(lkey) ^ kOtherTag};
  return {here.memory.address(piece, piece.length), piece.length, lkey};
}

void World::act(const Post& post) {
  End& end = at(post.side).ends[post.connection];
  if (end.qp == nullptr) return;
  std::size_t accepted = 0;
  for (const Request& request : post.requests) {
    const bool last = &request == &post.requests.back() || end.outstanding.size() + 1 == end.send_depth;
    if (post_one(post, request, last) == 0) break;
    end.outstanding.push_back(&request);
    ++accepted;
  }
  returned("took " + std::to_string(accepted));
}

std::size_t World::post_one(const Post& post, const Request& request, bool last) {
  const std::uint32_t bytes = length_of(request.pieces);
  std::vector<fabric::Sge> sges;
  for (const Place& piece : request.pieces) sges.push_back(sge(post.side, piece));
  WorldSide& there = at(other(post.side));
  const Place& target = request.target;
  auto rkey = target.key == Key::stale ? there.stale[target.region].rkey : there.keys[target.region].rkey;
  if (target.key == Key::unknown) rkey = fabric::RKey{static_cast<std::uint32_t>(rkey) ^ kOtherTag};
  const fabric::SendWr wr{
      .wr_id = WrId{request.id},
      .sges = sges,
      .remote = {there.memory.address(target, is_atomic(request.opcode) ? 0 : bytes), rkey},
      .compare_add = request.compare_add,
      .swap = request.swap,
      .imm = request.imm,
      .opcode = request.opcode,
      .flags = last ? request.flags | SendFlags::signaled : request.flags};
  return at(post.side).ends[post.connection].qp->post_send({&wr, 1});
}

void World::act(const PostReceives& post) {
  WorldSide& here = at(post.side);
  std::size_t accepted = 0;
  for (const Receive& receive : post.receives) {
    std::vector<fabric::Sge> sges;
    for (const Place& piece : receive.pieces) sges.push_back(sge(post.side, piece));
    const fabric::RecvWr wr{.wr_id = WrId{receive.id}, .sges = sges};
    if (here.srqs[post.srq]->post_recv({&wr, 1}) == 0) break;
    here.receives[receive.id] = &receive;
    ++accepted;
  }
  returned("took " + std::to_string(accepted) + " receives");
}

void World::act(const Fail& fail) {
  End& end = at(fail.side).ends[fail.connection];
  if (end.qp != nullptr) end.qp->fail();
}

// Completions of a queue pair that is gone are free to come or not; those before are taken first.
void World::act(const Destroy& destroy) {
  WorldSide& here = at(destroy.side);
  End& end = here.ends[destroy.connection];
  if (end.qp == nullptr) return;
  poll_all();
  for (const Request* request : end.outstanding) forget_bytes_of(destroy.side, *request);
  here.connection_of.erase(end.qp->address().qp);
  end.qp.reset();
  end = {};
}

void World::act(const Register& wish) {
  WorldSide& here = at(wish.side);
  here.regions[wish.region].reset();
  if (!wish.again) return;
  here.stale[wish.region] = here.keys[wish.region];
  auto& region = here.regions[wish.region];
  region = must(here.host->device().register_memory(here.memory.region(wish.region), wish.access));
  here.keys[wish.region] = {region->lkey(), region->rkey()};
}

// --- Completions.

// When the step is over the whole slots are as they were in the beginning: what a failed request left there is free.
void World::forget_bytes(Side side, const std::vector<Place>& pieces) {
  for (const Place& piece : pieces) undefined_.emplace_back(side, piece);
}

void World::forget_bytes_of(Side side, const Request& request) {
  if (returns_data(request.opcode)) forget_bytes(side, request.pieces);
  if (finds_no_receive_late(request) || finds_memory_late(request)) forget_bytes(other(side), {request.target});
}

void World::poll_all() {
  for (const Side side : kSides) {
    poll(side, *at(side).send_cq);
    poll(side, *at(side).recv_cq);
    for (End& end : at(side).ends) {
      if (end.own_cq != nullptr) poll(side, *end.own_cq);
    }
    std::array<fabric::DeviceEvent, 8> events;
    while (at(side).host->device().poll_events(events) > 0) continue;
  }
}

void World::poll(Side side, fabric::CompletionQueue& cq) {
  std::array<fabric::Completion, 8> batch;
  while (const std::size_t count = cq.poll(batch)) {
    for (const fabric::Completion& completion : std::span(batch).first(count)) take(side, completion);
  }
}

// Receives and requests have ids of one sequence, so the id says which of the two this is, in error as well.
void World::take(Side side, const fabric::Completion& completion) {
  const auto found = at(side).connection_of.find(completion.qp);
  if (found == at(side).connection_of.end()) return;  // it is gone
  const auto id = static_cast<std::uint32_t>(completion.wr_id);
  if (at(side).receives.contains(id)) {
    take_receive(side, found->second, completion);
  } else {
    take_send(side, found->second, completion);
  }
}

namespace {

Event event_of(const fabric::Completion& completion, Fault fault) {
  Event event{.id = static_cast<std::uint32_t>(completion.wr_id), .status = completion.status, .fault = fault};
  if (completion.status != fabric::WcStatus::success) return event;
  event.opcode = completion.opcode;
  const bool sized = completion.opcode != fabric::WcOpcode::send &&
                     completion.opcode != fabric::WcOpcode::rdma_write;
  if (sized) event.length = completion.byte_len;
  event.has_imm = completion.has_imm;
  if (completion.has_imm) event.imm = completion.imm;
  return event;
}

}  // namespace

void World::take_send(Side side, std::uint8_t connection, const fabric::Completion& completion) {
  std::deque<const Request*>& outstanding = at(side).ends[connection].outstanding;
  const auto id = static_cast<std::uint32_t>(completion.wr_id);
  const auto found = std::ranges::find(outstanding, id, &Request::id);
  if (found == outstanding.end()) {
    now_.breaches.push_back("request #" + std::to_string(id) + " completed, but was not outstanding");
    return;
  }
  const Request& request = **found;
  now_.streams[{connection, side, Queue::send}].push_back(event_of(completion, request.fault));
  if (completion.status != fabric::WcStatus::success) forget_bytes_of(side, request);
  outstanding.erase(outstanding.begin(), found + 1);
}

void World::take_receive(Side side, std::uint8_t connection, const fabric::Completion& completion) {
  const auto found = at(side).receives.find(static_cast<std::uint32_t>(completion.wr_id));
  const Receive& receive = *found->second;
  now_.streams[{connection, side, Queue::receive}].push_back(event_of(completion, receive.fault));
  if (completion.status != fabric::WcStatus::success) forget_bytes(side, receive.pieces);
  at(side).receives.erase(found);
}

// --- Draining.

bool World::at_rest() {
  poll_all();
  return std::ranges::all_of(sides_, [](const auto& side) {
    return std::ranges::all_of(side->ends, [](const End& end) {
      return end.waits_for_ever || end.outstanding.empty();
    });
  });
}

void World::run_for(Duration duration) {
  const Instant end = reactor().now() + duration;
  if (clock_ == Clock::virtual_time) {
    reactor().run(end);
    return poll_all();
  }
  do {
    reactor().run(reactor().now() + Duration{20'000});
    poll_all();
  } while (reactor().now() < end);
}

void World::drain(const Step& step, const StepOutcome* expected) {
  using namespace std::chrono_literals;
  const bool real = clock_ == Clock::real;
  const Instant begin = reactor().now();
  const Duration limit = real ? 8s : 6s;  // the longest that a patient queue pair takes to give up is 4 s
  Duration pause = real ? Duration(20us) : Duration(5us);
  while (!at_rest() && reactor().now() - begin < limit) {
    const bool idle = reactor().run(reactor().now() + pause) == fabric::RunEnd::idle;
    if (idle && !at_rest()) break;
    if (!real) pause = std::min<Duration>(pause * 2, 20ms);
  }
  if (!at_rest()) now_.breaches.emplace_back("a request never completes");
  const bool waits = std::ranges::any_of(sides_, [](const auto& side) {
    return std::ranges::any_of(side->ends, [](const End& end) { return !end.outstanding.empty(); });
  });
  const bool ends = step.racy || std::ranges::any_of(step.actions, [](const Action& action) {
    return std::holds_alternative<Fail>(action) || std::holds_alternative<Destroy>(action) ||
           std::holds_alternative<Connect>(action);
  });
  if (!real) return run_for(waits ? 500ms : 2ms);
  const Instant rest = reactor().now();
  while (expected != nullptr && now_.completions() < expected->completions() && reactor().now() - rest < 2s) {
    run_for(20us);
  }
  run_for(ends ? Duration(4ms) : Duration(100us));
}

}  // namespace bx::differential
