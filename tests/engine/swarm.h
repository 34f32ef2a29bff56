// SPDX-License-Identifier: BSD-3-Clause
// A whole system by seed: a few hosts with random tiny limits, all serving and calling each other with random
// sizes, holds, deadlines, rejections and callers that give up; with faults as well if asked for. Everything
// that happens follows from the seed.
//
//   Swarm --runs--> Member (one host: service, worker, sessions, calls; acts on a timer of its own)
//     '-- in fault mode also makes members vanish and return
#pragma once

#include <map>
#include <string>

#include "libbx/base/digest.h"
#include "libbx/base/prng.h"
#include "libbx/fabric/fault_fabric.h"
#include "tests/engine/world.h"

namespace bx::testing {

enum class SwarmMode { honest, faulty };

// What went wrong, if anything, and what the run looked like.
struct SwarmReport {
  std::vector<std::string> faults;
  std::uint64_t digest = 0;
  std::uint64_t calls = 0;
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t expired = 0;
  std::uint64_t failed = 0;  // with their session
  std::uint64_t peers_failed = 0;
};

class Swarm;

class Member final : public Service, private fabric::Timer {
 public:
  Member(Swarm& swarm, std::string name, const Config& config, Prng prng);
  ~Member() override;
  void start();
  void stop();  // vanishes, with everything it had in hand
  [[nodiscard]] bool running() const noexcept { return node_.context != nullptr; }
  // No more calls; everything that is held is answered now, and from now on at once.
  void wind_down();
  void check_end(SwarmReport& report);
  void handle(Request request) noexcept override;
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  struct SwarmCall;
  struct Held {
    std::optional<Request> request;  // nothing: only the payload is kept
    Buffer payload;
    Instant due;
  };
  void on_timer(Instant now) noexcept override;
  void act(Instant now);
  void release(Instant now);
  void start_call();
  void finish(SwarmCall& call);
  Task<> open(std::string to);
  std::size_t random_size();
  void fault(const std::string& what);

  Swarm& swarm_;
  std::string name_;
  Config config_;
  Prng prng_;
  Node node_;
  std::vector<Held> held_;
  std::map<std::string, Session> sessions_;
  std::map<std::string, bool> opening_;
  std::map<std::uint64_t, std::unique_ptr<SwarmCall>> calls_;
  std::uint64_t next_call_ = 1;
  bool winding_down_ = false;
};

class Swarm {
 public:
  Swarm(std::uint64_t seed, SwarmMode mode);
  ~Swarm();
  SwarmReport run();

  [[nodiscard]] fabric::Fabric& fabric() noexcept { return *fabric_; }
  [[nodiscard]] SwarmMode mode() const noexcept { return mode_; }
  [[nodiscard]] SwarmReport& report() noexcept { return report_; }
  [[nodiscard]] const std::string& some_name(Prng& prng) const {
    return members_[prng.below(members_.size())]->name();
  }

 private:
  Config random_config();
  void run_until(Instant limit);

  Prng prng_;
  SwarmMode mode_;
  SwarmReport report_;
  std::unique_ptr<fabric::Fabric> fabric_;
  const loopback::LoopbackFabric* loopback_ = nullptr;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace bx::testing
