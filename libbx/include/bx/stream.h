// SPDX-License-Identifier: BSD-3-Clause
// An answer in parts: the service writes them as they are made, the caller reads them as they arrive, in
// their order, and neither end ever holds more than a few.
//
//   service:  void open(bx::StreamWriter writer) noexcept override {
//   worker.spawn(produce(std::move(writer))); }
//             bx::Task<> produce(bx::StreamWriter writer) {
//               while (more) if (!co_await writer.write(next_part())) co_return;  // the caller has had
//               enough writer.finish();
//             }
//   caller:   auto reader = co_await session.open_stream(std::move(request), {.window = 4});
//             for (;;) {
//               auto part = co_await reader->next();  // Result<std::optional<Buffer>>
//               if (!part || !*part) break;           // an error; or the end
//             }
//
// The caller asks for parts ahead, `window` of them, each by a message of a few bytes; a part answers it. So
// a slow reader holds the writer back, and at most `window` parts are on their way or unread. A part travels
// as any answer does, from 1 byte up.
#pragma once

#include <bx/buffer.h>
#include <bx/session.h>
#include <bx/waiter.h>

#include <coroutine>
#include <cstdint>
#include <optional>
#include <utility>

#include "libbx/base/frame_pool.h"
#include "libbx/base/result.h"

namespace bx {

class NextPart;
class WritePart;

// The caller's end. Move-only; must not outlive its worker. Going away cancels what has not ended.
class StreamReader {
 public:
  StreamReader() = default;
  StreamReader(StreamReader&& other) noexcept
      : worker_(std::exchange(other.worker_, nullptr)), stream_(other.stream_) {}
  StreamReader& operator=(StreamReader&& other) noexcept {
    if (this != &other) {
      drop();
      worker_ = std::exchange(other.worker_, nullptr);
      stream_ = other.stream_;
    }
    return *this;
  }
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;
  ~StreamReader() { drop(); }

  // The next part; nothing at the end. One at a time. Errors: those of a call, and what the service failed
  // with; after one, or the end, it is the same for ever.
  [[nodiscard]] NextPart next() noexcept;
  // No more parts: what is on its way is dropped, next() says `cancelled`, the writer is told.
  void cancel() noexcept;

 private:
  friend class OpenStream;
  StreamReader(engine::Worker& worker, std::uint64_t stream) noexcept : worker_(&worker), stream_(stream) {}
  void drop() noexcept;
  engine::Worker* worker_ = nullptr;
  std::uint64_t stream_ = 0;
};

// The service's end. Move-only. Going away unfinished fails the stream with `cancelled`.
class StreamWriter {
 public:
  StreamWriter() = default;
  StreamWriter(StreamWriter&& other) noexcept
      : worker_(std::exchange(other.worker_, nullptr)),
        stream_(other.stream_),
        request_(std::move(other.request_)) {}
  StreamWriter& operator=(StreamWriter&& other) noexcept {
    if (this != &other) {
      fail(ErrorCode::cancelled);
      worker_ = std::exchange(other.worker_, nullptr);
      stream_ = other.stream_;
      request_ = std::move(other.request_);
    }
    return *this;
  }
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;
  ~StreamWriter() { fail(ErrorCode::cancelled); }

  // What the caller sent to open the stream.
  [[nodiscard]] Buffer& request() noexcept { return request_; }
  [[nodiscard]] Result<Buffer> allocate(std::size_t size) noexcept;
  // Waits until the caller has asked for another part, and sends it; an empty one is nothing. One at a time.
  // Errors: cancelled (by the caller), closed or device (the caller is gone), deadline_exceeded (it asked for
  // nothing for calls.deadline).
  [[nodiscard]] WritePart write(Buffer part) noexcept;
  // The end: the caller has got all parts. Nothing happens the second time.
  void finish() noexcept;
  // The end, with an error that the caller's next() returns once it has read the parts before.
  void fail(ErrorCode code) noexcept;
  [[nodiscard]] FramePool& frame_pool() noexcept;

 private:
  friend class engine::Worker;
  friend class WritePart;
  StreamWriter(engine::Worker& worker, std::uint64_t stream, Buffer&& request) noexcept
      : worker_(&worker), stream_(stream), request_(std::move(request)) {}
  engine::Worker* worker_ = nullptr;
  std::uint64_t stream_ = 0;
  Buffer request_;
};

// co_await session.open_stream(...) -> Result<StreamReader>
class [[nodiscard]] OpenStream final : public CallOp {
 public:
  OpenStream(Session session, Buffer request, StreamOptions options) noexcept
      : session_(session), request_(std::move(request)), options_(options) {}
  ~OpenStream() override;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept;
  Result<StreamReader> await_resume() noexcept;
  void on_complete() noexcept override { awaiting_.resume(); }

 private:
  friend class engine::Worker;
  Session session_;
  Buffer request_;
  StreamOptions options_;
  engine::Worker* worker_ = nullptr;  // while a stream of it is reserved
  std::uint64_t stream_ = 0;
  std::coroutine_handle<> awaiting_;
};

class [[nodiscard]] NextPart final : public Waiter {
 public:
  NextPart(engine::Worker& worker, std::uint64_t stream) noexcept : worker_(&worker), stream_(stream) {}
  bool await_ready() const noexcept;
  void await_suspend(std::coroutine_handle<> awaiting) noexcept;
  Result<std::optional<Buffer>> await_resume() noexcept;

 private:
  engine::Worker* worker_;
  std::uint64_t stream_;
};

class [[nodiscard]] WritePart final : public Waiter {
 public:
  WritePart(engine::Worker& worker, std::uint64_t stream, Buffer part) noexcept
      : worker_(&worker), stream_(stream), part_(std::move(part)) {}
  bool await_ready() noexcept;
  void await_suspend(std::coroutine_handle<> awaiting) noexcept;
  Result<> await_resume() noexcept { return result_; }

 private:
  friend class engine::Worker;
  engine::Worker* worker_;
  std::uint64_t stream_;
  Buffer part_;
};

inline OpenStream Session::open_stream(Buffer request, StreamOptions options) noexcept {
  return OpenStream(*this, std::move(request), options);
}

}  // namespace bx
