// SPDX-License-Identifier: BSD-3-Clause
// A NIC as the library needs it: verbs-shaped abstract classes, called at batch granularity. A provider
// implements them; the conformance suite (tests/conformance) holds every provider to the contract below.
//
// The contract, each point one group of conformance tests:
//  1. post_send accepts a prefix and returns its length; it never blocks, allocates or throws. A short count
//  is
//     back-pressure and no error.
//  2. Send completions of one QP arrive in post order; an unsignalled request is retired by the next
//  signalled one,
//     and its slot is free only when that completion has been polled. No order is promised between send and
//     receive completions.
//  3. A wake-up never runs inside a call of the user's; at most one per arm(); arm() says pending if a
//  completion is
//     queued already.
//  4. Payload is visible before the completion that announces it. WRITE_WITH_IMM consumes one receive.
//  5. After fail() or a fatal status every outstanding request completes exactly once as flushed, in order;
//  then
//     silence. Receives of a shared receive queue belong to that queue and survive.
//  6. No receive posted: RNR NAK, RNR retry as configured, then rnr_retry_exceeded. No answer: timeout,
//  retry_cnt
//     retransmissions, then retry_exceeded.
//  7. Length, key, bounds and permission faults fail both ends with the statuses that verbs define.
//  8. Destruction order QP, CQ and SRQ, MR, Device; breaking it is a checked programming error. CQ overrun is
//  an
//     error event, never silent.
//  9. Zero-length, one-byte, MTU-1, MTU, MTU+1 and largest messages; every opcode; every SGE count up to
//  caps().
//
// Threads: all objects of a Host belong to the one thread that runs its Reactor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "libbx/base/result.h"
#include "libbx/fabric/types.h"

namespace bx::fabric {

// Called by a provider when something armed has happened; never from inside a call that the user is making.
class Waker {
 public:
  virtual void wake() noexcept = 0;

 protected:
  ~Waker() = default;
};

// Registered memory. Destroying it ends remote access at once; the bytes stay with whoever owns them.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const noexcept = 0;
  [[nodiscard]] virtual LKey lkey() const noexcept = 0;
  [[nodiscard]] virtual RKey rkey() const noexcept = 0;
};

enum class ArmResult : std::uint8_t {
  armed,    // the waker will be called once, when the next completion arrives
  pending,  // completions are queued already: poll again; the queue is not armed
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  // Moves up to out.size() completions into `out`, oldest first; returns how many.
  virtual std::size_t poll(std::span<Completion> out) noexcept = 0;
  [[nodiscard]] virtual ArmResult arm() noexcept = 0;
};

class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;
  // Accepts a prefix and returns its length; short when the queue is full.
  virtual std::size_t post_recv(std::span<const RecvWr> requests) noexcept = 0;
};

// A reliable connected (RC) queue pair. Made in INIT; connect() takes it to RTS.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  [[nodiscard]] virtual QpAddress address() const noexcept = 0;
  // Errors: invalid_argument (an attribute out of its range, mtu above caps, already connected), device.
  virtual Result<> connect(const QpAddress& peer, const PathConfig& path) = 0;
  // Accepts a prefix and returns its length (contract point 1). A request with more elements or more inline
  // bytes than the QP was made for, or posted before connect(), is a checked programming error.
  virtual std::size_t post_send(std::span<const SendWr> requests) noexcept = 0;
  // To the error state: everything outstanding completes as flushed. Idempotent.
  virtual void fail() noexcept = 0;
};

struct CqConfig {
  std::uint32_t depth = 0;
  Waker* waker = nullptr;  // called after arm(); may be null for a queue that is only polled
};

struct SrqConfig {
  std::uint32_t depth = 0;
  std::uint32_t sges_max = 1;
};

struct QpConfig {
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  std::uint32_t send_depth = 0;
  std::uint32_t sges_max = 1;
  std::uint32_t inline_max = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceCaps& caps() const noexcept = 0;
  // Errors of the four: invalid_argument (zero or above caps), exhausted, device.
  virtual Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> bytes,
                                                                Access access) = 0;
  virtual Result<std::unique_ptr<CompletionQueue>> create_cq(const CqConfig& config) = 0;
  virtual Result<std::unique_ptr<SharedReceiveQueue>> create_srq(const SrqConfig& config) = 0;
  virtual Result<std::unique_ptr<QueuePair>> create_qp(const QpConfig& config) = 0;
  // Asynchronous events, oldest first. The waker is called, once an event, when one arrives.
  virtual std::size_t poll_events(std::span<DeviceEvent> out) noexcept = 0;
  virtual void set_event_waker(Waker* waker) noexcept = 0;
};

}  // namespace bx::fabric
