// SPDX-License-Identifier: BSD-3-Clause
// Runs a program on one fabric. Both hosts are of one process, so nothing needs to be exchanged out of band.
//
//   World --- two WorldSides: memory, regions, shared receive queues, completion queues
//     |           each with one End a connection: queue pair, what it has outstanding
//     run(): actions of a step; drain; record; next step
//
// Draining: until the last request that each queue pair has taken is complete (every batch ends with a
// signalled one), then a while longer for what comes without being asked for. A queue pair that waits for
// receives for ever is not waited for. Under a real clock "a while" would have to be long: there the outcome
// of another fabric tells how many completions to expect, and only if fewer come they are waited for in vain.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libbx/fabric/fabric.h"
#include "tests/differential/memory_layout.h"
#include "tests/differential/outcome.h"
#include "tests/differential/program.h"

namespace bx::differential {

enum class Clock : std::uint8_t { virtual_time, real };

struct End {
  std::unique_ptr<fabric::CompletionQueue> own_cq{};  // of a connection with one queue for both
  std::unique_ptr<fabric::QueuePair> qp{};
  std::uint32_t send_depth = 0;
  bool waits_for_ever = false;
  std::deque<const Request*> outstanding{};  // taken and not known to be complete, oldest first
};

struct WorldSide {
  explicit WorldSide(Side side) : memory(side) {}
  SideMemory memory;
  std::unique_ptr<fabric::Host> host{};
  std::array<std::unique_ptr<fabric::MemoryRegion>, kRegions> regions{};
  struct Keys {
    fabric::LKey lkey{};
    fabric::RKey rkey{};
  };
  std::array<Keys, kRegions> keys{};   // the last ones, also of a region that is registered no more
  std::array<Keys, kRegions> stale{};  // those before
  std::unique_ptr<fabric::CompletionQueue> send_cq{};
  std::unique_ptr<fabric::CompletionQueue> recv_cq{};
  std::array<std::unique_ptr<fabric::SharedReceiveQueue>, kSrqs> srqs{};
  std::array<End, kConnections> ends{};
  std::map<std::uint32_t, const Receive*> receives{};     // posted, by id
  std::map<fabric::QpNum, std::uint8_t> connection_of{};  // of the queue pairs that exist
};

class World {
 public:
  World(const Program& program, std::unique_ptr<fabric::Fabric> made, const std::array<std::string, 2>& hosts,
        Clock clock);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // `expected` may be null.
  Outcome run(const Outcome* expected);

 private:
  void set_up();
  void run_step(const Step& step, const StepOutcome* expected);
  void act(const Connect& connect);
  void act(const Post& post);
  void act(const PostReceives& post);
  void act(const Fail& fail);
  void act(const Destroy& destroy);
  void act(const Register& wish);
  void make_end(const Connect& connect, Side side);
  void connect_end(const Connect& connect, Side side);
  std::size_t post_one(const Post& post, const Request& request, bool last);
  void returned(std::string text);

  void record_memory(const Step& step);
  void drain(const Step& step, const StepOutcome* expected);
  void run_for(Duration duration);
  [[nodiscard]] bool at_rest();
  void poll_all();
  void poll(Side side, fabric::CompletionQueue& cq);
  void take(Side side, const fabric::Completion& completion);
  void take_send(Side side, std::uint8_t connection, const fabric::Completion& completion);
  void take_receive(Side side, std::uint8_t connection, const fabric::Completion& completion);
  void forget_bytes(Side side, const std::vector<Place>& pieces);
  void forget_bytes_of(Side side, const Request& request);

  [[nodiscard]] WorldSide& at(Side side) noexcept { return *sides_[index(side)]; }
  [[nodiscard]] fabric::Reactor& reactor() noexcept { return at(Side::a).host->reactor(); }
  [[nodiscard]] fabric::Sge sge(Side side, const Place& piece);

  const Program& program_;
  std::unique_ptr<fabric::Fabric> fabric_;
  Clock clock_;
  std::array<std::unique_ptr<WorldSide>, 2> sides_{};
  StepOutcome now_{};
  std::vector<std::pair<Side, Place>> undefined_{};  // what the step has left undefined
  std::uint32_t action_ = 0;
};

}  // namespace bx::differential
