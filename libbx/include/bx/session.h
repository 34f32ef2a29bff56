// SPDX-License-Identifier: BSD-3-Clause
// A Session is a logical connection to a service at a peer. Many sessions share the few queue pairs ("lanes")
// between two workers. Copyable handle; using one after its worker is gone is a programming error.
#pragma once

#include <bx/buffer.h>
#include <bx/gather.h>
#include <bx/region.h>
#include <bx/waiter.h>

#include <coroutine>
#include <cstdint>

#include "libbx/base/intrusive_list.h"
#include "libbx/base/result.h"
#include "libbx/base/time.h"

namespace bx {

namespace engine {
class Worker;
struct SessionStats;
}  // namespace engine

// Of two calls to one peer that wait to be sent, the high one goes first; behind so many high ones
// (kHighInARow) a normal one goes that waits, so that neither is kept for ever.
enum class Priority : std::uint8_t { normal, high };
inline constexpr std::uint32_t kHighInARow = 8;

struct CallOptions {
  Instant deadline = kNever;  // kNever: the knob calls.deadline from now
  Priority priority = Priority::normal;
};

inline constexpr std::uint32_t kStreamWindowMax = 8;

struct StreamOptions {
  std::uint32_t window = 2;   // parts asked for ahead, 1 to kStreamWindowMax
  Instant deadline = kNever;  // of the whole stream; kNever: each part has calls.deadline
  Priority priority = Priority::normal;
};

// What a call that is started now would meet.
enum class Pressure : std::uint8_t {
  none,     // it leaves at once
  waiting,  // it waits, or calls do: for credits, for places in the send queue, or for the window
  full,     // calls.max calls are outstanding: it would fail with `exhausted`
  closed,   // the session is gone
};

// One call from start to its one completion. The object must stay where it is until then.
class CallOp : public ListHook<> {
 public:
  CallOp() = default;
  CallOp(const CallOp&) = delete;
  CallOp& operator=(const CallOp&) = delete;
  virtual ~CallOp();  // a call still outstanding is abandoned: its answer will be dropped

  // Called by the worker, in a turn, when result() is set. May start further calls and may destroy *this.
  virtual void on_complete() noexcept = 0;

  // Gives the call up: it completes with `cancelled`, later and not from inside this call. Memory of it that
  // a NIC may still touch stays the library's until no NIC does. Nothing happens if it has completed.
  void cancel() noexcept;

  // The answer, or the error: deadline_exceeded, cancelled, exhausted (calls.max, memory.arena), closed or
  // device (the peer's lanes failed; scope session), protocol, and what the service returned.
  [[nodiscard]] Result<Buffer>& result() noexcept { return result_; }

 private:
  friend class engine::Worker;
  engine::Worker* worker_ = nullptr;  // while outstanding
  std::uint64_t call_ = 0;            // its handle
  Result<Buffer> result_{Buffer{}};
};

class CallAwaiter;
class GatherCallAwaiter;
class OneSidedAwaiter;
class OpenStream;
class ReadyAwaiter;

class Session {
 public:
  Session() = default;  // not connected

  // The one initiating function: sends `request` (taken over, from 0 bytes up) and completes `op` exactly
  // once, never from inside this call.
  void start_call(Buffer request, CallOp& op, CallOptions options = {}) noexcept;
  // The same for coroutines: Result<Buffer> answer = co_await session.call(std::move(request));
  [[nodiscard]] CallAwaiter call(Buffer request, CallOptions options = {}) noexcept;
  // The same of a request in several parts, see bx/gather.h.
  void start_call(Gather request, CallOp& op, CallOptions options = {}) noexcept;
  [[nodiscard]] GatherCallAwaiter call(Gather request, CallOptions options = {}) noexcept;

  // Back-pressure: what is started without asking waits in the library, up to calls.max calls.
  [[nodiscard]] Pressure pressure() const noexcept;
  // Starts the call only if it leaves at once, or fails and leaves `request` with the caller: would_block,
  // exhausted (calls.max), or why the session is closed.
  [[nodiscard]] Result<> try_start_call(Buffer& request, CallOp& op, CallOptions options = {}) noexcept;
  // Waits until a call would leave at once. Those who wait are resumed in the order they came, as many as
  // there is room for. Errors: why the session is closed.
  [[nodiscard]] ReadyAwaiter ready() noexcept;

  // Asks the service for an answer in parts (bx/stream.h): co_await it for a Result<StreamReader>. Errors:
  // those of a call, unsupported (the peer or the service has no streams), exhausted (streams.max here or
  // there).
  [[nodiscard]] OpenStream open_stream(Buffer request, StreamOptions options = {}) noexcept;

  // Writes the bytes of `from` to the peer's exposed memory, or fills `into` (all of its size) from there,
  // with no part of the peer's program; `op` completes with the same buffer. Long ones are cut into chunks
  // under the windows. A put completes when the peer's NIC has acknowledged all of it; the peer's program may
  // look at it once a message that was sent after that has come to it, for its NIC makes WRITEs visible
  // before what follows them. Errors beyond those of a call: invalid_argument (the region is shorter, another
  // worker's, or of one started again), exhausted (transfers.max). What only the NIC knows, a region that was
  // revoked, fails the lane as verbs have it: `device`, scope session, for all calls to that peer.
  void start_put(Buffer from, const RemoteRegion& to, CallOp& op, CallOptions options = {}) noexcept;
  void start_get(Buffer into, const RemoteRegion& from, CallOp& op, CallOptions options = {}) noexcept;
  [[nodiscard]] OneSidedAwaiter put(Buffer from, const RemoteRegion& to, CallOptions options = {}) noexcept;
  [[nodiscard]] OneSidedAwaiter get(Buffer into, const RemoteRegion& from, CallOptions options = {}) noexcept;

  // Where sessions of a peer have to wait for each other, bytes go in proportion to weights, in both
  // directions (lanes.fair). Rounded down to a power of two, 1 to 1024; 1 unless set. Holds for what is
  // started over this handle and its later copies, from when the session has nothing waiting.
  void set_weight(std::uint32_t weight) noexcept;

  [[nodiscard]] bool connected() const noexcept { return worker_ != nullptr; }

 private:
  friend class engine::Worker;
  friend class OpenStream;
  friend class ReadyAwaiter;
  Session(engine::Worker& worker, engine::SessionStats& stats, std::uint32_t peer, std::uint32_t incarnation,
          std::uint32_t id) noexcept
      : worker_(&worker), stats_(&stats), peer_(peer), incarnation_(incarnation), id_(id) {}
  engine::Worker* worker_ = nullptr;
  engine::SessionStats* stats_ = nullptr;  // while the peer is there
  std::uint32_t peer_ = 0;
  std::uint32_t incarnation_ = 0;  // whose session it is, should another peer take the place
  std::uint32_t id_ = 0;
};

// Lives in the awaiting coroutine's frame: a call costs no allocation.
class [[nodiscard]] CallAwaiter final : public CallOp {
 public:
  CallAwaiter(Session session, Buffer request, CallOptions options) noexcept
      : session_(session), request_(std::move(request)), options_(options) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept {
    awaiting_ = awaiting;
    session_.start_call(std::move(request_), *this, options_);
  }
  Result<Buffer> await_resume() noexcept { return std::move(result()); }
  void on_complete() noexcept override { awaiting_.resume(); }

 private:
  Session session_;
  Buffer request_;
  CallOptions options_;
  std::coroutine_handle<> awaiting_;
};

class [[nodiscard]] GatherCallAwaiter final : public CallOp {
 public:
  GatherCallAwaiter(Session session, Gather request, CallOptions options) noexcept
      : session_(session), request_(std::move(request)), options_(options) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept {
    awaiting_ = awaiting;
    session_.start_call(std::move(request_), *this, options_);
  }
  Result<Buffer> await_resume() noexcept { return std::move(result()); }
  void on_complete() noexcept override { awaiting_.resume(); }

 private:
  Session session_;
  Gather request_;
  CallOptions options_;
  std::coroutine_handle<> awaiting_;
};

// co_await session.ready() -> Result<>
class [[nodiscard]] ReadyAwaiter final : public Waiter {
 public:
  explicit ReadyAwaiter(Session session) noexcept : session_(session) {}
  bool await_ready() const noexcept { return session_.pressure() == Pressure::none; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept;
  Result<> await_resume() noexcept { return result_; }

 private:
  Session session_;
};

class [[nodiscard]] OneSidedAwaiter final : public CallOp {
 public:
  using Start = void (Session::*)(Buffer, const RemoteRegion&, CallOp&, CallOptions) noexcept;
  struct Operation {
    Start start;
    Buffer local;
    RemoteRegion remote;
  };
  OneSidedAwaiter(Session session, Operation operation, CallOptions options) noexcept
      : session_(session), operation_(std::move(operation)), options_(options) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept {
    awaiting_ = awaiting;
    (session_.*operation_.start)(std::move(operation_.local), operation_.remote, *this, options_);
  }
  Result<Buffer> await_resume() noexcept { return std::move(result()); }
  void on_complete() noexcept override { awaiting_.resume(); }

 private:
  Session session_;
  Operation operation_;
  CallOptions options_;
  std::coroutine_handle<> awaiting_;
};

inline OneSidedAwaiter Session::put(Buffer from, const RemoteRegion& to, CallOptions options) noexcept {
  return OneSidedAwaiter(*this, {&Session::start_put, std::move(from), to}, options);
}
inline OneSidedAwaiter Session::get(Buffer into, const RemoteRegion& from, CallOptions options) noexcept {
  return OneSidedAwaiter(*this, {&Session::start_get, std::move(into), from}, options);
}

inline GatherCallAwaiter Session::call(Gather request, CallOptions options) noexcept {
  return GatherCallAwaiter(*this, std::move(request), options);
}

inline ReadyAwaiter Session::ready() noexcept {
  return ReadyAwaiter(*this);
}

inline CallAwaiter Session::call(Buffer request, CallOptions options) noexcept {
  return CallAwaiter(*this, std::move(request), options);
}

}  // namespace bx
