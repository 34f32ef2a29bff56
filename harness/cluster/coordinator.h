// SPDX-License-Identifier: GPL-2.0-only
// The other end of the agents (agent.h): starts a process for each host, lets in those that show the run's
// token, takes them through the phases together, measures their clocks, notices who dies or falls silent, and
// collects what they report. What the phases mean, and what a lost host means for the run, is its owner's
// business.
//
// Invariant: a host is lost once and for good, unless its owner restarts it; losses() says who and why.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/stopwatch.h"
#include "harness/cluster/channel.h"
#include "harness/cluster/clock_offset.h"
#include "harness/cluster/player.h"
#include "harness/cluster/process.h"

namespace bx::harness {

struct CoordinatorConfig {
  std::string address = "127.0.0.1";  // of this machine, that agents can reach
  std::string commit{};               // that agents must be of, too; empty: any
  double start_seconds = 120;         // for a host to be ready, devices opened and memory registered
  double silence_seconds = 30;        // without a sign of life, after which a host counts as hung
};

// Starts the process of a host, which is to call this port and to be given the token on its standard input.
using Launcher = std::function<Parsed<std::unique_ptr<Process>>(std::uint32_t host, std::uint16_t port,
                                                                const std::string& token)>;

enum class AgentStage : std::uint8_t { launched, opening, ready, lost };

struct AgentState {
  std::uint32_t host = 0;
  AgentStage stage = AgentStage::launched;
  std::string why_lost{};
  std::unique_ptr<Process> process{};
  std::unique_ptr<Channel> channel{};
  ReadyReport ready{};
  ClockOffset clock{};
  Beat beat{};
  HostReport report{};
  std::optional<Phase> done{};  // the last one
  bool reported = false;
  bool expected_to_die = false;
  std::int64_t since_ns = 0;   // when it was launched, or last heard of
  std::int64_t broken_ns = 0;  // when its connection ended: its process tells why a moment later
};

class Coordinator {
 public:
  // `setup` is asked for what a host is told.
  Coordinator(CoordinatorConfig config, HostList hosts, Launcher launch,
              std::function<AgentSetup(std::uint32_t host)> setup);
  ~Coordinator();  // ends every process that is left
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Launches all. The error is a sentence.
  Parsed<void> start();
  // Waits for news, at most so long, and takes them.
  void pump(int milliseconds);
  // Again, for a host that was killed; once it is ready it may join() a phase that the others are in.
  void launch(std::uint32_t host);
  // A fault of the scenario: it dies, and that is no loss. A connection must be there for one on another
  // machine.
  void kill(std::uint32_t host);

  [[nodiscard]] std::int64_t now_ns() const { return static_cast<std::int64_t>(stopwatch_.seconds() * 1e9); }
  [[nodiscard]] bool all_ready() const;  // clocks known
  void measure_clocks();
  // All that are ready begin, `in_ns` from now by everybody's clock.
  void begin(Phase phase, std::int64_t in_ns);
  void join(std::uint32_t host, Phase phase);
  [[nodiscard]] bool all_done(Phase phase) const;
  void ask_for_reports();
  [[nodiscard]] bool all_reported() const;
  // After their reports: they may go.
  void dismiss();

  [[nodiscard]] const std::vector<AgentState>& agents() const noexcept { return agents_; }
  // "host3: its process was ended by signal 9 (Killed)"; not of those that a fault killed.
  [[nodiscard]] std::vector<std::string> losses() const;
  // Connections that did not show the token, or were of no use otherwise.
  [[nodiscard]] std::uint32_t refused() const noexcept { return refused_; }

 private:
  struct Stranger {
    std::unique_ptr<Channel> channel;
    std::int64_t since_ns = 0;
  };
  AgentState& agent(std::uint32_t host);
  void lose(AgentState& agent, std::string why);
  void let_in();
  void hear_strangers();
  // True once it is known or refused.
  bool take_hello(Stranger& stranger, const Json& message);
  void refuse(Channel& channel, const std::string& why);
  void hear(AgentState& agent);
  void take(AgentState& agent, const Json& message);
  void look_after(AgentState& agent);

  CoordinatorConfig config_;
  Launcher launch_;
  std::function<AgentSetup(std::uint32_t host)> setup_;
  std::string token_;
  Stopwatch stopwatch_;
  std::optional<ControlListener> listener_;
  std::vector<Stranger> strangers_;
  std::vector<AgentState> agents_;
  std::uint32_t refused_ = 0;
  bool dismissed_ = false;
};

}  // namespace bx::harness
