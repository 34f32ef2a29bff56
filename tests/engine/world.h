// SPDX-License-Identifier: BSD-3-Clause
// Workers on a loopback fabric, for tests of the engine: hosts, contexts, and services that echo or make
// answers.
#pragma once

#include <bx/bx.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libbx/providers/loopback/loopback_fabric.h"

namespace bx::testing {

inline constexpr std::uint16_t kPort = 7000;

// Bytes that depend on their place and on a salt, so that a misplaced or missing part shows.
inline void fill(std::span<std::byte> bytes, std::uint64_t salt) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i * 131 + (i >> 8U) * 17 + salt * 29 + 7) & 0xffU);
  }
}

inline bool is_filled(std::span<const std::byte> bytes, std::uint64_t salt) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>((i * 131 + (i >> 8U) * 17 + salt * 29 + 7) & 0xffU)) return false;
  }
  return true;
}

// Sends back what it got.
class EchoService final : public Service {
 public:
  void handle(Request request) noexcept override {
    ++served;
    Buffer payload = std::move(request.payload());
    request.reply(std::move(payload));
  }
  int served = 0;
};

// Keeps requests until told to answer.
class HoldingService final : public Service {
 public:
  void handle(Request request) noexcept override { held.push_back(std::move(request)); }
  // Echoes all that are held now.
  void answer() {
    for (Request& request : std::exchange(held, {})) {
      Buffer payload = std::move(request.payload());
      request.reply(std::move(payload));
    }
  }
  std::vector<Request> held;
};

// One call by callback, and how it ended.
class RecordedCall final : public CallOp {
 public:
  void on_complete() noexcept override {
    ++completions;
    if (result()) {
      answer = std::move(*result());
    } else {
      error = result().error();
    }
  }
  [[nodiscard]] bool done() const noexcept { return completions > 0; }
  [[nodiscard]] bool succeeded() const noexcept { return completions == 1 && !error; }
  [[nodiscard]] bool failed_with(ErrorCode code) const noexcept {
    return completions == 1 && error && error->code == code;
  }
  int completions = 0;
  std::optional<Error> error;
  Buffer answer;
};

struct Node {
  std::unique_ptr<fabric::Host> host;
  std::unique_ptr<Context> context;
  [[nodiscard]] Worker worker() const { return context->worker(); }
};

// A host of `fabric` named `name` with a worker on it.
inline Node open_node(fabric::Fabric& fabric, const std::string& name, const Config& config = {}) {
  Node node;
  node.host = fabric.open_host(name).value();
  auto context = Context::create(*node.host, config);
  EXPECT_TRUE(context.has_value()) << (context ? "" : context.error().detail);
  if (context) node.context = std::move(*context);
  return node;
}

class World {
 public:
  explicit World(const loopback::LoopbackConfig& config = {}) : fabric(config) {}
  Node add(const std::string& name, const Config& config = {}) { return open_node(fabric, name, config); }
  loopback::LoopbackFabric fabric;
};

// A context goes before its host.
inline void end(Node& node) {
  node.context.reset();
  node.host.reset();
}

// Runs every host until nothing is left that could happen.
inline void run_dry(const Node& any) {
  any.worker().reactor().run(kNever);
}

inline Buffer filled(Worker worker, std::size_t size, std::uint64_t salt) {
  Buffer buffer = worker.allocate(size).value();
  fill(buffer.bytes(), salt);
  return buffer;
}

inline Task<Result<Session>> connect_task(Worker worker, std::string host, std::uint16_t port) {
  co_return co_await worker.connect(host, port);
}

// Connects within the deadline of the config; runs the world meanwhile.
inline Result<Session> try_connect(const Node& from, const std::string& host, std::uint16_t port = kPort) {
  auto session = block_on(from.worker(), connect_task(from.worker(), host, port));
  if (!session) return tl::unexpected<Error>(session.error());
  return *session;
}

inline Session connect(const Node& from, const std::string& host, std::uint16_t port = kPort) {
  auto session = try_connect(from, host, port);
  EXPECT_TRUE(session.has_value()) << (session ? "" : session.error().detail);
  return session.value_or(Session{});
}

// Calls an echoing service `total` times, `depth` at a time, with sizes that `size_of(n)` gives, and looks at
// every answer. Callbacks only, so it allocates nothing once made.
class CallLoop {
 public:
  using SizeOf = std::size_t (*)(std::uint64_t n);
  CallLoop(Worker worker, Session session, std::uint64_t total, std::size_t depth, SizeOf size_of)
      : worker_(worker), session_(session), total_(total), size_of_(size_of), ops_(depth) {
    for (Op& op : ops_) op.loop = this;
  }
  void start() {
    for (Op& op : ops_) next(op);
  }
  [[nodiscard]] bool complete() const noexcept { return succeeded == total_ && wrong == 0; }

  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t wrong = 0;  // answers with other bytes than were sent
  std::optional<Error> first_error;

 private:
  struct Op final : CallOp {
    void on_complete() noexcept override { loop->finish(*this); }
    CallLoop* loop = nullptr;
    std::uint64_t n = 0;
  };
  void next(Op& op) {
    if (started_ == total_) return;
    op.n = started_++;
    session_.start_call(filled(worker_, size_of_(op.n), op.n), op);
  }
  void finish(Op& op) noexcept {
    if (op.result()) {
      Buffer answer = std::move(*op.result());
      ++succeeded;
      if (answer.size() != size_of_(op.n) || !is_filled(answer.bytes(), op.n)) ++wrong;
    } else {
      ++failed;
      if (!first_error) first_error = op.result().error();
    }
    next(op);
  }

  Worker worker_;
  Session session_;
  std::uint64_t total_;
  SizeOf size_of_;
  std::vector<Op> ops_;
  std::uint64_t started_ = 0;
};

// The value of one of the worker's counters.
inline double counter(const Node& node, std::string_view name) {
  struct Sink final : MetricSink {
    explicit Sink(std::string_view looked_for) : wanted(looked_for) {}
    void metric(std::string_view metric_name, double metric_value, std::string_view /*unit*/) override {
      if (metric_name == wanted) value = metric_value;
    }
    std::string_view wanted;
    std::optional<double> value;
  } sink(name);
  node.worker().report(sink);
  EXPECT_TRUE(sink.value.has_value()) << name;
  return sink.value.value_or(-1);
}

inline void expect_at_rest(const Node& node) {
  EXPECT_TRUE(node.worker().idle());
  node.worker().check_invariants();
  EXPECT_EQ(counter(node, "peers.failed"), 0);
}

// The smallest limits that every knob allows and that two workers can still talk with.
inline Config tiny() {
  Config config;
  config.peers_max = 4;
  config.credits_per_peer = 2;
  config.send_depth = 8;
  config.send_control_reserve = 1;
  config.receive_spare = 0;
  config.transfers_max = 1;
  config.requests_max = 1;
  config.rendezvous_reads_max = 1;
  config.eager_max = 256;
  config.rendezvous_chunk = 4096;
  config.window_per_peer = 4096;
  config.window_receiver = 4096;
  config.memory_arena = 64U << 20U;
  config.turn_completions_max = 1;
  return config;
}

}  // namespace bx::testing
