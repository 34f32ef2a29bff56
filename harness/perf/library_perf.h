// SPDX-License-Identifier: GPL-2.0-only
// The library's cases of `bx perf verbs`: a service that answers as much as it is asked for, and a client
// that calls it, one call after the other or many at once.
#pragma once

#include <bx/bx.h>

#include <coroutine>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/perf/points.h"

namespace bx::harness {

inline constexpr std::uint16_t kLibraryPort = 7812;
inline constexpr std::uint64_t kPerfRequestMin = 16;  // bytes: what is asked for

// What a service does when its client has said that it is done. Where both run in one loop, that is the
// client's to end.
enum class AtEnd : std::uint8_t { stop_reactor, carry_on };

class PerfService final : public Service {
 public:
  PerfService(Worker worker, AtEnd at_end) : worker_(worker), at_end_(at_end) {}
  void handle(Request request) noexcept override;
  // A client has said that it is done.
  [[nodiscard]] bool finished() const noexcept { return finished_; }

 private:
  Worker worker_;
  AtEnd at_end_;
  std::optional<Exposed> exposed_;  // once a client has asked for it
  bool finished_ = false;
};

class LibraryClient {
 public:
  // Only the library's cases of the plan are measured.
  LibraryClient(Worker worker, std::string peer, const PerfPlan& plan);
  LibraryClient(const LibraryClient&) = delete;
  LibraryClient& operator=(const LibraryClient&) = delete;

  // To be run with block_on(). Tries to reach the server until `patience` has passed; tells it when all is
  // done.
  Task<bool> run(Worker worker, Duration patience);
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] const std::vector<PerfPoint>& points() const noexcept { return points_; }

 private:
  // One of the calls that may be under way at once.
  struct Call final : CallOp {
    LibraryClient* client = nullptr;
    Buffer memory{};  // of puts and gets, between two of them
    Instant started{};
    void on_complete() noexcept override { client->on_complete(*this); }
  };
  // Until no call is under way.
  struct Quiet {
    LibraryClient& client;
    [[nodiscard]] bool await_ready() const noexcept { return client.under_way_ == 0; }
    void await_suspend(std::coroutine_handle<> awaiting) noexcept { client.awaiting_ = awaiting; }
    void await_resume() const noexcept {}
  };

  // What the server has exposed, for puts and gets.
  Task<bool> ask_for_region(Worker worker);
  void start(Call& call);
  void start_call(Call& call);
  void on_complete(Call& call);
  void begin_point(PerfCase which, std::uint64_t size);

  Worker worker_;
  std::string peer_;
  const PerfPlan& plan_;
  Session session_;
  RemoteRegion region_{};
  std::vector<std::unique_ptr<Call>> calls_;
  PerfCase which_{};  // of the point, as the rest
  std::uint64_t size_ = 0;
  std::uint64_t request_bytes_ = 0;
  std::uint64_t answer_bytes_ = 0;
  std::optional<PointTimer> timer_;
  std::uint32_t under_way_ = 0;
  std::coroutine_handle<> awaiting_;
  std::vector<PerfPoint> points_;
  std::string error_;
};

}  // namespace bx::harness
