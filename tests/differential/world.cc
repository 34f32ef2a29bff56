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
  record_memory(step);
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
  end.qp = must(device.create_qp({.send_cq = connect.one_cq ? end.own_cq.get() : here.send_cq.get(),
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

}  // namespace bx::differential
