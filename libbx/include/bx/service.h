// SPDX-License-Identifier: BSD-3-Clause
// The server's side of a call.
#pragma once

#include <bx/buffer.h>
#include <bx/gather.h>

#include <cstdint>
#include <utility>

#include "libbx/base/frame_pool.h"
#include "libbx/base/result.h"

namespace bx {

namespace engine {
class Worker;
}

// Whose request it is: the peer, and what the peer calls it.
struct RequestId {
  std::uint32_t peer = 0;
  std::uint32_t incarnation = 0;  // of the peer, should another take its place
  std::uint32_t session = 0;
  std::uint32_t service = 0;  // which one of the worker's it was for
  std::uint64_t call = 0;
};

struct ServeOptions {
  // Requests that the service may be handed and not have answered yet. What comes beyond is refused with
  // `exhausted` at once, a long payload before it is fetched. Without a limit of its own the service has that
  // of the worker (requests.max), beyond which requests wait in their receives and hold their senders back.
  std::uint32_t concurrency_max = 0xffff'ffff;
};

// One request being served. Move-only; answered exactly once, at once or later. Dropping it unanswered tells
// the caller `cancelled`.
class Request {
 public:
  Request() = default;
  Request(Request&& other) noexcept
      : worker_(std::exchange(other.worker_, nullptr)), id_(other.id_), payload_(std::move(other.payload_)) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      drop();
      worker_ = std::exchange(other.worker_, nullptr);
      id_ = other.id_;
      payload_ = std::move(other.payload_);
    }
    return *this;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { drop(); }

  // What the caller sent. Let go of it early (payload() = {}) if answering takes long: it holds a receive
  // slot.
  [[nodiscard]] Buffer& payload() noexcept { return payload_; }
  // Sends the answer (taken over); nothing happens if the caller is gone.
  void reply(Buffer answer) noexcept;
  // The same in several parts, see bx/gather.h.
  void reply(Gather answer) noexcept;
  // Answers with an error: the caller's result() carries this code with scope operation.
  void reject(ErrorCode code) noexcept;
  [[nodiscard]] FramePool& frame_pool() noexcept;
  // For allocating the answer.
  [[nodiscard]] Result<Buffer> allocate(std::size_t size) noexcept;

 private:
  friend class engine::Worker;
  Request(engine::Worker& worker, const RequestId& id, Buffer&& payload) noexcept
      : worker_(&worker), id_(id), payload_(std::move(payload)) {}
  void drop() noexcept;

  engine::Worker* worker_ = nullptr;
  RequestId id_;
  Buffer payload_;
};

class StreamWriter;

class Service {
 public:
  virtual ~Service() = default;
  // Called in a turn of the worker, once a request, when its payload is all there. Do not block.
  virtual void handle(Request request) noexcept = 0;
  // The same for a caller that wants the answer in parts (bx/stream.h). Unless overridden it is refused with
  // `unsupported`.
  virtual void open(StreamWriter writer) noexcept;
};

}  // namespace bx
