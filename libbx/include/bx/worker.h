// SPDX-License-Identifier: BSD-3-Clause
// The application's view of a worker: one thread, its own completion queue, receive queue, lanes and memory.
// A copyable handle; it lives as long as its Context.
#pragma once

#include <bx/buffer.h>
#include <bx/config.h>
#include <bx/memory.h>
#include <bx/region.h>
#include <bx/service.h>
#include <bx/session.h>
#include <bx/task.h>

#include <coroutine>
#include <cstdint>
#include <string>
#include <string_view>

#include "libbx/base/intrusive_list.h"
#include "libbx/base/log.h"
#include "libbx/base/metrics.h"
#include "libbx/fabric/reactor.h"

namespace bx {

// What is in flight at one instant, for time series.
struct WorkerGauges {
  std::uint64_t bytes_in_flight_out = 0;  // eager messages and granted writes posted and not yet complete
  std::uint64_t bytes_in_flight_in = 0;   // READs posted and writes granted and not yet complete
  std::uint64_t credits_available = 0;    // summed over peers
  std::uint64_t bytes_received = 0;       // payload of whole messages, since start
  std::uint64_t messages_queued = 0;      // waiting for credit, slot or window
  std::uint64_t calls_outstanding = 0;
  std::uint64_t leases = 0;  // receive slots that the application keeps
  MemoryPressure memory_pressure = MemoryPressure::none;
};

class Worker;

// co_await worker.connect("host7", 7000) -> Result<Session>
class [[nodiscard]] ConnectAwaiter : public ListHook<> {
 public:
  ConnectAwaiter(engine::Worker& worker, std::string_view host, std::uint16_t port)
      : worker_(&worker), host_(host), port_(port) {}
  ConnectAwaiter(const ConnectAwaiter&) = delete;
  ConnectAwaiter& operator=(const ConnectAwaiter&) = delete;
  ~ConnectAwaiter() { unlink(); }  // no longer waits; the lanes are opened all the same
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept;
  Result<Session> await_resume() noexcept { return result_; }

 private:
  friend class engine::Worker;
  engine::Worker* worker_;
  std::string host_;
  std::uint16_t port_;
  Result<Session> result_ = fail(ErrorCode::closed, ErrorScope::session, "connect never finished");
  std::coroutine_handle<> awaiting_;
};

// co_await worker.sleep_until(when)
class [[nodiscard]] SleepAwaiter final : public fabric::Timer {
 public:
  SleepAwaiter(fabric::Reactor& reactor, Instant when) : reactor_(reactor), until_(when) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept {
    awaiting_ = awaiting;
    reactor_.arm(*this, until_);
  }
  void await_resume() const noexcept {}
  void on_timer(Instant /*now*/) noexcept override { awaiting_.resume(); }

 private:
  fabric::Reactor& reactor_;
  Instant until_;
  std::coroutine_handle<> awaiting_;
};

// co_await worker.drain() -> Result<>
class [[nodiscard]] DrainAwaiter final : public Waiter, private fabric::Timer {
 public:
  DrainAwaiter(engine::Worker& worker, Instant deadline) noexcept : worker_(&worker), deadline_(deadline) {}
  ~DrainAwaiter();  // no longer waits; the worker drains all the same, without a deadline
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept;
  Result<> await_resume() noexcept { return result_; }

 private:
  friend class engine::Worker;
  void on_timer(Instant now) noexcept override;
  engine::Worker* worker_;
  Instant deadline_;
};

class Worker {
 public:
  explicit Worker(engine::Worker& worker) noexcept : worker_(&worker) {}

  // Accepts sessions at `port` (of the host's stream network) for `service`, which must outlive the worker.
  // Errors: exhausted (port taken), invalid_argument, closed.
  Result<> serve(std::uint16_t port, Service& service, ServeOptions options = {}) noexcept;
  // Opens a session; the lanes to the peer are opened if there are none yet. Errors: unreachable, exhausted
  // (peers.max here or there, with the number that would fit in the peer's reason), protocol,
  // deadline_exceeded.
  [[nodiscard]] ConnectAwaiter connect(std::string_view host, std::uint16_t port) noexcept;
  // Registered memory; size 0 gives an empty buffer. Errors: exhausted (memory.send), too_large.
  [[nodiscard]] Result<Buffer> allocate(std::size_t size) noexcept;
  // A copy in registered memory of bytes that lie anywhere, counted as memory.copied_in. Errors as above.
  [[nodiscard]] Result<Buffer> copy_in(std::span<const std::byte> bytes) noexcept;
  // Registers memory of the application's own, see bx/memory.h. Under a `generation` other than 0 the
  // registration is cached and found again by the same address, length and generation; the owner of the
  // memory names another one once it has given it back or mapped it anew. Errors: invalid_argument,
  // too_large and exhausted (memory.user, memory.user_regions), device.
  [[nodiscard]] Result<UserMemory> register_memory(std::span<std::byte> bytes, std::uint64_t generation = 0);
  // The memory will be given back: no registration of it is cached any longer.
  void forget_memory(std::span<std::byte> bytes) noexcept;
  // Null for none. It must outlive the worker, or be taken off.
  void set_pressure_listener(PressureListener* listener) noexcept;
  // Lets peers put to the buffer and get from it; takes the buffer over. Errors: invalid_argument (empty),
  // and those of the device.
  [[nodiscard]] Result<Exposed> expose(Buffer buffer);
  // Starts a task that nobody awaits; it is destroyed when it ends, or with the worker.
  void spawn(Task<> task);
  // Starts a task in the next turn without taking it over: the caller keeps it alive until it is done.
  void start(Task<>& task);
  [[nodiscard]] SleepAwaiter sleep_until(Instant when) noexcept;
  [[nodiscard]] Instant now() const noexcept;
  [[nodiscard]] fabric::Reactor& reactor() noexcept;
  [[nodiscard]] FramePool& frame_pool() noexcept;
  [[nodiscard]] const Config& config() const noexcept;
  // Ends every session and lane; outstanding calls complete with `closed`. Idempotent.
  void close() noexcept;
  // Closes without losing what was begun: from now on nobody can connect and new requests are refused with
  // `draining`; once all requests are answered, all calls of this worker's own have completed, and all that
  // was sent has been acknowledged, the worker closes. Calls may still be started until then. Errors:
  // deadline_exceeded (it was closed at the deadline, with something unfinished).
  [[nodiscard]] DrainAwaiter drain(Instant deadline = kNever) noexcept;
  [[nodiscard]] bool draining() const noexcept;

  [[nodiscard]] WorkerGauges gauges() const noexcept;
  // Counters since start: calls.*, messages.*, transfers.*, credits.*, window.*, stall.*, memory.*.
  void report(MetricSink& sink) const;
  // The same and what is in flight, by worker ("worker.calls.started"), peer with its lane ("messages.sent")
  // and session ("session.latency"). Peers and sessions count since they were opened, and are there while
  // they are.
  void report(LabelledMetricSink& sink) const;
  // Where a line goes for each lane that fails and each handshake that comes to nothing, with the reason and
  // what to look at (libbx/base/log.h); at most LogLimit's. Standard error until set, null for nowhere.
  // Outlives the worker.
  void set_log(LogSink* sink) noexcept;
  // The live objects, a line each, indented by who holds whom: the worker, its memory, peers with lanes and
  // sessions, calls and transfers, with states, counts, ages and what they wait for. Allocates; not for the
  // way of a message.
  void dump(LogSink& sink) const;
  // True when nothing is outstanding: no call, request, transfer, unretired work request; all credits at
  // home.
  [[nodiscard]] bool idle() const noexcept;
  // Breaks (BX_CHECK) if an invariant of any machine is broken.
  void check_invariants() const;

 private:
  friend Result<> dump_on_signal(Worker worker, int signal);
  engine::Worker* worker_;
};

// When the process gets `signal` (SIGUSR1), the worker dumps into its log at its next turn. The handler only
// counts, so it is safe at any moment; a worker that sleeps dumps when it wakes. Several workers may ask for
// the same signal; the handler stays. Errors: invalid_argument (no such signal, or one that cannot be
// handled).
Result<> dump_on_signal(Worker worker, int signal);

}  // namespace bx
