// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/raw_server.h"

#include <fmt/format.h>

namespace bx::harness {

bool RawServer::listen() {
  if (!open()) return false;
  auto listener = host_.streams().listen(kRawPort, *this);
  if (!listener) {
    fail(fmt::format("port {} of {}: {}", kRawPort, host_.name(), listener.error().detail));
    return false;
  }
  listener_ = std::move(*listener);
  return true;
}

void RawServer::on_accept(std::unique_ptr<fabric::Stream> stream) noexcept {
  if (stream_ != nullptr) return;  // one client: another finds the door shut
  stream_ = std::move(stream);
  stream_->set_events(this);
  on_stream(*stream_);
}

void RawServer::on_message(const RawMessage& message) {
  switch (message.kind) {
    case RawMessage::Kind::hello:
      if (connect(message)) say(hello());
      return;
    case RawMessage::Kind::point: {
      point_ = message;
      RawMessage ready = message;
      ready.kind = RawMessage::Kind::ready;
      say(ready);
      return;
    }
    case RawMessage::Kind::finish:
      finished_ = true;
      host_.reactor().stop();
      return;
    case RawMessage::Kind::ready:
      return fail("the client speaks out of turn");
  }
}

void RawServer::on_completion(const fabric::Completion& completion) {
  if (completion.opcode != fabric::WcOpcode::recv) return;
  if (!post_receives(1)) return;
  if (point_.which == PerfCase::send_latency && !post(fabric::Opcode::send, point_.size)) {
    fail("the answer to a SEND finds the send queue full");
  }
}

void RawServer::on_closed() {
  if (!finished_) fail("the client is gone");
}

}  // namespace bx::harness
