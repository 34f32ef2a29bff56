// SPDX-License-Identifier: BSD-3-Clause
// The service's end of streams: parts meet those who asked for them.
#include <cstring>
#include <utility>

#include "libbx/engine/worker.h"
#include "libbx/wire/stream.h"

namespace bx::engine {

void OutStream::on_timer(Instant /*now*/) noexcept {
  worker->end_reading(*this, {ErrorCode::deadline_exceeded, ErrorScope::operation, 0,
                              "the caller asked for no part within calls.deadline"});
}

// Answers a request of a stream; it is counted with its service only now, for it is not handed to it.
void Worker::answer_stream(const RequestId& request, Buffer&& answer, std::uint8_t status) noexcept {
  ++services_[request.service]->place.serving;
  reply(request, std::move(answer), status);
}

void Worker::on_stream_request(Peer& peer, std::uint32_t session, std::uint64_t call,
                               Buffer&& payload) noexcept {
  const RequestId request{peer.index, peer.incarnation, session, peer.service->index, call};
  if (wire::opens_stream(session)) return open_out_stream(peer, request, std::move(payload));
  wire::StreamPull pull;
  if (!wire::read_pull(std::as_const(payload).bytes(), pull)) {
    fail_peer(peer, protocol_error("a request for a part of a stream that is not well-formed"));
    return answer_stream(request, Buffer{}, 0);  // to nobody: its place is free again
  }
  payload.reset();
  OutStream* stream = out_streams_.find(pull.stream);
  if (stream != nullptr && stream->opened.peer != peer.index) stream = nullptr;
  if (pull.ask == wire::StreamAsk::cancel) {
    answer_stream(request, Buffer{}, 0);
    if (stream != nullptr) {
      end_reading(*stream, {ErrorCode::cancelled, ErrorScope::operation, 0, "the caller has cancelled"});
    }
    return;
  }
  if (stream != nullptr && !stream->reading) {
    return answer_stream(request, Buffer{}, wire::status_of(stream->error.code));
  }
  if (stream == nullptr || pull.number - stream->next >= kStreamWindowMax ||
      stream->pull(pull.number).there) {
    return answer_stream(request, Buffer{}, wire::status_of(ErrorCode::cancelled));
  }
  stream->pull(pull.number) = {true, request};
  serve_stream(*stream);
}

// An open stream is a request being served, of the service's and so of its concurrency_max.
void Worker::open_out_stream(Peer& peer, const RequestId& request, Buffer&& payload) noexcept {
  ServicePlace& place = *peer.service;
  if (++place.serving > place.serving_max) return refuse_request(request);
  auto number = arena_->allocate(wire::kStreamNumberBytes);
  if (out_streams_.full() || !number) {
    ++stats_.requests_refused;
    return reply(request, Buffer{}, wire::status_of(ErrorCode::exhausted));
  }
  const auto [handle, stream] = out_streams_.make(*this, request);
  stream.handle = handle;
  std::memcpy(number->data(), &handle, wire::kStreamNumberBytes);
  ++place.serving;
  ++stats_.streams_served;
  ++work_.handlers;
  reply(request, std::move(*number), 0);
  watch_reader(stream);
  place.handler.open(StreamWriter(*this, handle, std::move(payload)));
}

void Worker::watch_reader(OutStream& stream) noexcept {
  if (!stream.reading || stream.pull(stream.next).there) {
    if (stream.armed()) reactor_.cancel(stream);
  } else if (!stream.armed()) {
    reactor_.arm(stream, reactor_.now() + Duration(static_cast<std::int64_t>(config_.call_deadline)));
  }
}

void Worker::send_part(OutStream& stream, Buffer&& part) noexcept {
  OutStream::Pull& pull = stream.pull(stream.next++);
  pull.there = false;
  ++stats_.stream_parts;
  answer_stream(pull.request, std::move(part), 0);
}

// Something changed: what is there goes to who asked for it.
void Worker::serve_stream(OutStream& stream) noexcept {
  while (stream.reading && stream.pull(stream.next).there) {
    if (Waiter* waiter = stream.writer.pop_front()) {
      send_part(stream, std::move(static_cast<WritePart&>(*waiter).part_));
      resume(*waiter, {});
    } else if (!stream.writing) {
      stream.reading = false;
      answer_pulls(stream, stream.status);
    } else {
      break;
    }
  }
  watch_reader(stream);
  erase_if_over(stream);
}

// In the order they were asked for: the first of them is the end to its caller.
void Worker::answer_pulls(OutStream& stream, std::uint8_t status) noexcept {
  for (std::uint32_t i = 0; i < kStreamWindowMax; ++i) {
    OutStream::Pull& pull = stream.pull(stream.next + i);
    if (std::exchange(pull.there, false)) answer_stream(pull.request, Buffer{}, status);
  }
}

// Nobody reads any more, or ever will.
void Worker::end_reading(OutStream& stream, const Error& error) noexcept {
  if (!stream.reading) return;
  stream.reading = false;
  stream.error = error;
  answer_pulls(stream, wire::status_of(error.code));
  if (Waiter* waiter = stream.writer.pop_front()) resume(*waiter, tl::unexpected<Error>(error));
  watch_reader(stream);
  erase_if_over(stream);
}

void Worker::end_writing(core::SlotHandle handle, std::uint8_t status) noexcept {
  OutStream* stream = out_streams_.find(handle);
  BX_CHECK(stream != nullptr, "a stream went away while its service was writing");
  stream->writing = false;
  stream->status = status;
  serve_stream(*stream);
  wake();
}

void Worker::erase_if_over(OutStream& stream) noexcept {
  if (stream.reading || stream.writing) return;
  --services_[stream.opened.service]->place.serving;
  out_streams_.erase(stream.handle);
}

void Worker::drop_streams(const Peer& peer) noexcept {
  out_streams_.for_each([&](core::SlotHandle, OutStream& stream) {
    if (stream.opened.peer == peer.index) end_reading(stream, peer.error);
  });
}

bool Worker::write_part(core::SlotHandle handle, Buffer& part, Result<>& result) noexcept {
  OutStream* stream = out_streams_.find(handle);
  BX_CHECK(stream != nullptr && stream->writer.empty(), "parts of a stream are written one at a time");
  if (!stream->reading) {
    result = tl::unexpected<Error>(stream->error);
    return true;
  }
  if (part.empty()) return true;
  if (!stream->pull(stream->next).there) return false;
  send_part(*stream, std::move(part));
  watch_reader(*stream);
  return true;
}

void Worker::await_pull(core::SlotHandle handle, Waiter& waiter, std::coroutine_handle<> awaiting) noexcept {
  waiter.awaiting_ = awaiting;
  out_streams_.find(handle)->writer.push_back(waiter);
}

}  // namespace bx::engine

namespace bx {

void Service::open(StreamWriter writer) noexcept {
  writer.fail(ErrorCode::unsupported);
}

WritePart StreamWriter::write(Buffer part) noexcept {
  BX_CHECK(worker_ != nullptr, "a part was written to a stream that is finished");
  return {*worker_, stream_, std::move(part)};
}

void StreamWriter::finish() noexcept {
  request_.reset();
  if (worker_ != nullptr) std::exchange(worker_, nullptr)->end_writing(stream_, 0);
}

void StreamWriter::fail(ErrorCode code) noexcept {
  request_.reset();
  if (worker_ != nullptr) std::exchange(worker_, nullptr)->end_writing(stream_, wire::status_of(code));
}

Result<Buffer> StreamWriter::allocate(std::size_t size) noexcept {
  return worker_->allocate(size);
}

FramePool& StreamWriter::frame_pool() noexcept {
  return worker_->frame_pool();
}

bool WritePart::await_ready() noexcept {
  return worker_->write_part(stream_, part_, result_);
}

void WritePart::await_suspend(std::coroutine_handle<> awaiting) noexcept {
  worker_->await_pull(stream_, *this, awaiting);
}

}  // namespace bx
