// SPDX-License-Identifier: GPL-2.0-only
// One end of the raw measurement: a queue pair with its memory, and the stream to the other end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/perf/raw_message.h"
#include "libbx/fabric/fabric.h"

namespace bx::harness {

inline constexpr std::uint16_t kRawPort = 7811;

class RawEnd : protected fabric::Turn, protected fabric::StreamEvents {
 public:
  RawEnd(const RawEnd&) = delete;
  RawEnd& operator=(const RawEnd&) = delete;
  // What went wrong, or nothing.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 protected:
  static constexpr std::uint32_t kReceives = 128;  // posted at once, all into the same memory

  explicit RawEnd(fabric::Host& host) : host_(host) {}
  virtual ~RawEnd();

  // Makes memory, queues and queue pair. False after fail().
  bool open();
  [[nodiscard]] RawMessage hello() const;
  // Connects the queue pair to the end that said this, and posts the receives.
  bool connect(const RawMessage& peer);
  bool post_receives(std::uint32_t count);
  // One request; false if the queue is full.
  bool post(fabric::Opcode opcode, std::uint32_t size);

  bool say(const RawMessage& message);
  // What the stream brought; each whole message goes to on_message().
  void on_stream(fabric::Stream& stream) noexcept override;
  virtual void on_message(const RawMessage& message) = 0;
  virtual void on_completion(const fabric::Completion& completion) = 0;
  virtual void on_closed() = 0;  // the stream has ended
  fabric::TurnResult turn(Instant now) noexcept override;

  void fail(std::string why);
  [[nodiscard]] std::uint64_t now_ns() const {
    return static_cast<std::uint64_t>(host_.reactor().now().time_since_epoch().count());
  }

  fabric::Host& host_;
  std::unique_ptr<fabric::Stream> stream_;
  RawMessage peer_{};

 private:
  std::vector<std::byte> memory_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::unique_ptr<fabric::SharedReceiveQueue> srq_;
  std::unique_ptr<fabric::QueuePair> qp_;
  RawBytes received_{};
  std::size_t received_bytes_ = 0;
  std::string error_;
};

}  // namespace bx::harness
