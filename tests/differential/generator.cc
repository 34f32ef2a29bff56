// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/generator.h"

#include "libbx/base/prng.h"
#include "tests/differential/connection.h"
#include "tests/differential/request_maker.h"

namespace bx::differential {
namespace {

constexpr std::size_t kStepsMax = 12;

class Generator {
 public:
  explicit Generator(const GeneratorConfig& config)
      : config_(config), random_(Prng(config.seed).fork("program")), maker_(random_) {
    program_.seed = config.seed;
  }

  Program run() {
    set_up();
    const std::size_t steps = random_.between(3, kStepsMax);
    const std::size_t connections = random_.between(1, kConnections);
    step_ = {};
    for (std::size_t i = 0; i < connections; ++i) connect(i);
    end_step();
    while (program_.steps.size() < steps && !over_) add_step();
    return std::move(program_);
  }

 private:
  void set_up() {
    for (SideSetup& setup : program_.setup) {
      setup.access[0] = fabric::Access::local;
      setup.access[1] = fabric::Access::remote_all;
      for (std::size_t i = 2; i < kRegions; ++i) setup.access[i] = some_access();
      for (std::uint32_t& depth : setup.srq_depth) {
        depth = static_cast<std::uint32_t>(random_.between(1, 16));
      }
    }
    for (const Side side : {Side::a, Side::b}) {
      const SideSetup& setup = program_.setup[index(side)];
      maker_.set_access(side, setup.access);
      for (std::size_t i = 0; i < kSrqs; ++i) srqs_[index(side)][i] = {.depth = setup.srq_depth[i]};
    }
  }
  fabric::Access some_access() { return static_cast<fabric::Access>(random_.below(8)); }

  void add_step() {
    step_ = {};
    maker_.begin_step();
    asked_the_dead_ = false;
    for (auto& side : srqs_) {
      for (SrqState& srq : side) srq.taken = false;
    }
    if (resolve_stuck()) return end_step();
    const std::uint64_t choice = random_.below(100);
    const std::size_t which = random_.below(kConnections);
    const Side side = some_side();
    if (choice < 10) {
      connect(which);
    } else if (choice < 15) {
      fail(which, side);
    } else if (choice < 19) {
      destroy(which, side);
    } else if (choice < 27) {
      register_again(side);
    } else if (choice < 33) {
      race(which, side);
    } else {
      for (std::size_t i = 0; i < kConnections; ++i) {
        if (random_.chance(0.7)) traffic(i);
      }
    }
    end_step();
  }
  void end_step() {
    if (!step_.actions.empty()) program_.steps.push_back(std::move(step_));
    if (++attempts_ > 200) program_.steps.resize(kStepsMax);  // nothing is left that could be done
  }
  Side some_side() { return static_cast<Side>(random_.below(2)); }

  // --- Objects.

  void connect(std::size_t which) {
    step_.actions.emplace_back(make_connect(random_, config_.for_device, which, connections_[which]));
  }
  void fail(std::size_t which, Side side) {
    Connection& c = connections_[which];
    if (!c.alive[index(side)]) return;
    c.alive[index(side)] = false;
    c.doubtful = true;
    step_.actions.emplace_back(Fail{static_cast<std::uint8_t>(which), side});
  }
  void destroy(std::size_t which, Side side) {
    Connection& c = connections_[which];
    if (!c.exists) return;
    c.alive[index(side)] = false;
    c.doubtful = true;
    step_.actions.emplace_back(Destroy{static_cast<std::uint8_t>(which), side});
  }
  void register_again(Side side) {
    const auto region = static_cast<std::uint8_t>(random_.between(1, kRegions - 1));
    const bool again = !maker_.registered(side, region) || random_.chance(0.8);
    const fabric::Access access = some_access();
    maker_.set_access(side, region, again, access);
    step_.actions.emplace_back(Register{side, region, again, access});
  }

  // --- Traffic.

  void traffic(std::size_t which) {
    Connection& c = connections_[which];
    if (!c.exists || c.spent) return;
    const Side side = some_side();
    if (c.doubtful) {
      if (!c.patient && !asked_the_dead_ && random_.chance(0.3)) {
        asked_the_dead_ = true;
        requests(which, side, {.count_max = 3});
      }
      return;
    }
    if (random_.chance(0.35)) return faulty(which, side);
    const bool both = random_.chance(0.5);
    requests(which, side, {.needs_receives = true});
    if (both) requests(which, other(side), {.needs_receives = true});
  }

  struct Wish {
    std::size_t count_max = 8;
    bool needs_receives = false;  // all that it consumes must be there
    Fault fault = Fault::none;
    bool consumes = true;
    bool messages_only = false;
  };

  // A batch of one direction; receives for it go before it. False if nothing was posted.
  bool requests(std::size_t which, Side side, const Wish& wish) {
    Connection& c = connections_[which];
    SrqState& srq = srqs_[index(other(side))][c.srq[index(other(side))]];
    const bool may_consume = wish.consumes && !srq.taken && (!wish.needs_receives || srq.all_good);
    const std::size_t count = random_.between(1, wish.count_max + 2);
    const std::size_t fault_at = wish.fault == Fault::none                        ? count
                                 : finds_itself(wish.fault) && config_.for_device ? 0
                                                                                  : random_.below(count);
    Post post{static_cast<std::uint8_t>(which), side, {}};
    std::uint32_t consumed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool room = !wish.needs_receives || consumed < srq.depth;
      auto request = maker_.request({.from = side,
                                     .user = static_cast<std::uint32_t>(which * 2 + index(side)),
                                     .may_consume = may_consume && room,
                                     .message = wish.messages_only,
                                     .may_fence = !config_.for_device || wish.needs_receives,
                                     .fault = i == fault_at ? wish.fault : Fault::none});
      if (!request) continue;
      const bool alone = config_.for_device && request->fault != Fault::none &&
                         returns_data(request->opcode) && finds_itself(request->fault);
      consumed += consumes(request->opcode) ? 1 : 0;
      over_ = over_ || (config_.for_device && takes_receive_in_vain(*request));
      post.requests.push_back(std::move(*request));
      if (alone) break;
    }
    if (post.requests.empty()) return false;
    if (consumed > 0) {
      srq.taken = true;
      if (wish.needs_receives && srq.sure < consumed) {
        receives(other(side), c.srq[index(other(side))], consumed - srq.sure, Quality::good);
      }
      if (c.waits_for_ever && consumed > srq.sure) c.stuck[index(side)] = consumed - srq.sure;
      if (consumed > srq.sure) c.doubtful = true;
      srq.sure -= std::min(srq.sure, consumed);
    }
    step_.actions.emplace_back(std::move(post));
    return true;
  }

  enum class Quality : std::uint8_t { good, mixed };
  void receives(Side side, std::uint8_t srq, std::size_t count, Quality quality) {
    SrqState& state = srqs_[index(side)][srq];
    PostReceives post{side, srq, {}};
    for (std::size_t i = 0; i < count; ++i) {
      post.receives.push_back(maker_.receive(side, quality == Quality::mixed && random_.chance(0.3)));
    }
    if (quality == Quality::mixed) state.all_good = false;
    state.sure = std::min<std::uint32_t>(state.depth, state.sure + static_cast<std::uint32_t>(count));
    step_.actions.emplace_back(std::move(post));
  }

  // Found by the requester's device, not by the peer.
  static bool finds_itself(Fault fault) {
    return fault == Fault::local_key || fault == Fault::local_bounds || fault == Fault::crooked_atomic ||
           fault == Fault::atomic_length;
  }

  // On some devices, though not by the standard: which receive is the next one is not known any more.
  static bool takes_receive_in_vain(const Request& request) {
    return request.opcode == fabric::Opcode::rdma_write_with_imm && request.fault != Fault::none &&
           !finds_itself(request.fault);
  }

  // One direction in which something fails: a request, or a receive that is bad, short or missing.
  void faulty(std::size_t which, Side side) {
    Connection& c = connections_[which];
    if (random_.chance(0.6)) {
      const auto fault = static_cast<Fault>(random_.between(1, kFaults - 1));
      if (!requests(which, side, {.needs_receives = true, .fault = fault})) return;
      c.doubtful = true;
      c.spent = fault == Fault::crooked_atomic || fault == Fault::atomic_length;
      return;
    }
    SrqState& srq = srqs_[index(other(side))][c.srq[index(other(side))]];
    if (srq.taken) return;
    if (random_.chance(0.6)) {
      receives(other(side), c.srq[index(other(side))], random_.between(1, 5), Quality::mixed);
    }
    requests(which, side, {.messages_only = random_.chance(0.6)});
    c.doubtful = true;
  }

  // Requests that are in flight when their queue pair fails. They take no receives: how many would be free.
  void race(std::size_t which, Side side) {
    const Connection& c = connections_[which];
    if (!c.exists || c.doubtful) return;
    if (!requests(which, side, {.consumes = false})) return;
    for (Request& request : std::get<Post>(step_.actions.back()).requests) {
      request.flags = request.flags | fabric::SendFlags::signaled;
    }
    fail(which, side);
    step_.racy = true;
  }

  // Requests that wait for ever: with receives they go on, without one of their ends they end.
  bool resolve_stuck() {
    for (std::size_t which = 0; which < kConnections; ++which) {
      Connection& c = connections_[which];
      for (const Side side : {Side::a, Side::b}) {
        std::uint32_t& stuck = c.stuck[index(side)];
        if (stuck == 0) continue;
        SrqState& srq = srqs_[index(other(side))][c.srq[index(other(side))]];
        const std::uint64_t choice = random_.below(4);
        if (choice == 0 && srq.depth >= stuck) {
          srq.sure = 0;
          receives(other(side), c.srq[index(other(side))], stuck, Quality::good);
          srq.sure = 0;
        } else if (choice == 1 || c.patient) {
          fail(which, side);
        } else if (choice == 2) {
          destroy(which, side);
        } else {
          destroy(which, other(side));
        }
        stuck = 0;
        return true;
      }
    }
    return false;
  }

  GeneratorConfig config_;
  Prng random_;
  RequestMaker maker_;
  Program program_{};
  Step step_{};
  std::array<Connection, kConnections> connections_{};
  std::array<std::array<SrqState, kSrqs>, 2> srqs_{};
  bool asked_the_dead_ = false;
  bool over_ = false;  // nothing may follow the step at hand
  std::size_t attempts_ = 0;
};

}  // namespace

Program generate(const GeneratorConfig& config) {
  return Generator(config).run();
}

}  // namespace bx::differential
