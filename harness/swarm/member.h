// SPDX-License-Identifier: GPL-2.0-only
// One host of a swarm: it serves, calls, puts and gets as its random numbers say, and checks whatever comes
// back.
//
// Each member exposes a table with a part for every member; a put goes to the putter's own part, is read back
// with a get, and never touches the guards on both sides of the part.
#pragma once

#include <bx/bx.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/metric_set.h"
#include "harness/swarm/swarm.h"

namespace bx::harness {

class Member final : public Service, private fabric::Timer, private LogSink {
 public:
  Member(Swarm& swarm, std::size_t number, Prng prng);
  ~Member() override;
  void start();
  void stop();  // vanishes, with everything it had in hand
  [[nodiscard]] bool running() const noexcept { return context_ != nullptr; }
  [[nodiscard]] fabric::Reactor& reactor() noexcept { return host_->reactor(); }
  // No more calls; everything that is held is answered now, and from now on at once.
  void wind_down();
  void check_end();
  void close();         // gives everything back and closes the worker
  void check_memory();  // after close()
  void handle(Request request) noexcept override;
  void open(StreamWriter writer) noexcept override;

 private:
  static constexpr std::size_t kUserSlots = 3;
  static constexpr std::size_t kUserBytes = 65'536;
  static constexpr std::size_t kPartBytes = 65'536;  // of the table, of each member
  static constexpr std::size_t kGuardBytes = 32;
  static constexpr std::size_t kStreamsMax = 8;  // read at once

  enum class Kind : std::uint8_t { call, put, get };
  struct SwarmCall;
  struct Held {
    std::optional<Request> request;  // nothing: only the payload is kept
    Buffer payload;
    Instant due;
  };
  // Memory of the application's own.
  struct UserSlot {
    std::vector<std::byte> bytes;
    std::optional<UserMemory> memory;
    std::uint64_t generation = 0;
  };
  void on_timer(Instant now) noexcept override;
  void line(LogLevel level, std::string_view text) noexcept override;

  void act(Instant now);
  void disturb();  // cancels or abandons a call
  void release(Instant now);
  void start_call();
  void start_put(std::size_t to, Session session);
  void start_get(const SwarmCall& put);
  void launch(std::unique_ptr<SwarmCall> call, Buffer buffer);
  void finish(SwarmCall& call);
  void finish_well(SwarmCall& call);
  void finish_badly(const SwarmCall& call, const Error& error);
  Task<> connect(std::size_t to);
  // member_streams.cc
  void start_stream(std::size_t to, Session session);
  Task<> read_stream(std::size_t to, Session session, Prng prng);
  Task<> write_stream(StreamWriter writer);
  void end_stream(const Error& error);
  std::optional<Gather> in_parts(const Buffer& whole);
  std::size_t random_size();
  // Of `size` bytes, from the library's memory or the member's own; nothing if there is none.
  std::optional<Buffer> some_buffer(std::size_t size);
  std::optional<Buffer> user_buffer(std::size_t size);
  void expose_table();
  void check_guards();
  [[nodiscard]] MetricSet metrics() const;
  void fault(const std::string& checker, const std::string& what);
  [[nodiscard]] Worker worker() const { return context_->worker(); }

  Swarm& swarm_;
  std::size_t number_;
  std::string name_;
  Prng prng_;
  std::unique_ptr<fabric::Host> host_;
  std::vector<UserSlot> user_;
  std::unique_ptr<Context> context_;
  std::optional<Exposed> table_;
  std::vector<Held> held_;
  std::map<std::size_t, Session> sessions_;
  std::map<std::size_t, bool> opening_;
  std::map<std::size_t, bool> part_busy_;  // with a put of mine, until it is read back
  std::map<std::uint64_t, std::unique_ptr<SwarmCall>> calls_;
  std::vector<std::unique_ptr<SwarmCall>> done_;  // some of them, to see if they complete again
  Buffer kept_;                                   // of a sabotage
  Request silenced_;                              // of a sabotage
  MetricSet at_start_;
  std::uint64_t served_ = 0;
  std::uint64_t next_call_ = 1;
  std::size_t streams_reading_ = 0;
  bool winding_down_ = false;
};

}  // namespace bx::harness
