// SPDX-License-Identifier: BSD-3-Clause
// The caller's end of streams: a ring of calls, one for each part that is asked for ahead.
#include <cstring>
#include <utility>

#include "libbx/engine/worker.h"
#include "libbx/wire/stream.h"

namespace bx::engine {

void PullOp::on_complete() noexcept {
  asked = false;
  answered = true;
  stream->worker->on_pulled(*stream, *this);
}

void Worker::open_in_stream(OpenStream& open) noexcept {
  const Session& session = open.session_;
  const Peer* peer = peer_at(session.peer_);
  BX_CHECK(open.options_.window > 0 && open.options_.window <= kStreamWindowMax,
           "a stream's window is 1 to kStreamWindowMax");
  if (pressure_of(session) == Pressure::closed) return fail_at_once(open, refusal_of(session));
  if (!peer->takes_streams) {
    return fail_at_once(
        open, {ErrorCode::unsupported, ErrorScope::operation, 0, "the peer is of a version without streams"});
  }
  if (in_streams_.full()) {
    return fail_at_once(
        open, {ErrorCode::exhausted, ErrorScope::operation, static_cast<int>(in_streams_.capacity()),
               "streams.max streams are being read"});
  }
  const auto [handle, stream] = in_streams_.make(*this, session, open.options_);
  stream.handle = handle;
  open.worker_ = this;
  open.stream_ = handle;
  Session opening = session;
  opening.id_ |= wire::kStreamOpenBit;
  opening.start_call(std::move(open.request_), open,
                     {.deadline = open.options_.deadline, .priority = open.options_.priority});
}

// The service has answered.
void Worker::begin_reading(core::SlotHandle handle, std::uint64_t number) noexcept {
  InStream& stream = *in_streams_.find(handle);
  stream.number = number;
  ask_parts(stream);
}

// As many as the window has room for. They are asked for in order and none is left out: one that was never
// asked for would hold up those behind it at the service, and their places among what is served there. So
// what finds no place among the calls waits for one, and so does the farewell, which frees those places.
void Worker::ask_parts(InStream& stream) noexcept {
  while (!stream.over() && stream.next_asked - stream.next_read < stream.options.window) {
    if (calls_.full()) return wait_for_calls(stream);
    send_pull(stream, stream.pull(stream.next_asked), wire::StreamAsk::part);
    ++stream.next_asked;
  }
}

void Worker::bid_farewell(InStream& stream) noexcept {
  stream.farewell_due = calls_.full();
  if (stream.farewell_due) return wait_for_calls(stream);
  send_pull(stream, stream.farewell, wire::StreamAsk::cancel);
}

void Worker::wait_for_calls(InStream& stream) noexcept {
  if (!stream.linked()) short_of_calls_.push_back(stream);
}

// A call has ended since they found none free, which is what a turn comes of.
void Worker::ask_again() noexcept {
  while (!calls_.full()) {
    InStream* const stream = short_of_calls_.pop_front();
    if (stream == nullptr) return;
    if (pressure_of(stream->session) == Pressure::closed) {
      stream->farewell_due = false;
      if (!stream->over()) stop_reading(*stream, refusal_of(stream->session));
      erase_if_over(*stream);
    } else if (stream->farewell_due) {
      bid_farewell(*stream);
    } else {
      ask_parts(*stream);
    }
  }
}

void Worker::send_pull(InStream& stream, PullOp& op, wire::StreamAsk ask) noexcept {
  op.asked = true;
  op.answered = false;
  auto bytes = arena_->allocate(wire::kStreamPullBytes);
  if (!bytes) return complete_op(op, tl::unexpected<Error>(bytes.error()));
  wire::write_pull({stream.number, stream.next_asked, ask}, bytes->bytes());
  Session session = stream.session;
  session.id_ |= wire::kStreamPullBit;
  session.start_call(std::move(*bytes), op,
                     {.deadline = ask == wire::StreamAsk::part ? stream.options.deadline : kNever,
                      .priority = stream.options.priority});
}

void Worker::on_pulled(InStream& stream, PullOp& op) noexcept {
  if (stream.over() || stream.dropped) {
    op.result() = Buffer{};  // nobody will read it
    op.answered = false;
    return erase_if_over(stream);
  }
  if (&op == &stream.pull(stream.next_read)) {
    if (Waiter* waiter = stream.reader.pop_front()) resume(*waiter, {});
  }
}

bool Worker::part_ready(core::SlotHandle handle) noexcept {
  InStream& stream = *in_streams_.find(handle);
  return stream.over() || stream.pull(stream.next_read).answered;
}

void Worker::await_part(core::SlotHandle handle, Waiter& waiter, std::coroutine_handle<> awaiting) noexcept {
  InStream& stream = *in_streams_.find(handle);
  BX_CHECK(stream.reader.empty(), "parts of a stream are read one at a time");
  waiter.awaiting_ = awaiting;
  stream.reader.push_back(waiter);
}

Result<std::optional<Buffer>> Worker::take_part(core::SlotHandle handle) noexcept {
  InStream& stream = *in_streams_.find(handle);
  PullOp& op = stream.pull(stream.next_read);
  if (!stream.over()) {
    op.answered = false;
    Result<Buffer> part = std::exchange(op.result(), Buffer{});
    if (!part) {
      stop_reading(stream, part.error());
    } else if (part->empty()) {
      stream.ended = true;
      forget_parts(stream);
    } else {
      ++stream.next_read;
      ask_parts(stream);
      return std::optional<Buffer>(std::move(*part));
    }
  }
  if (stream.error) return tl::unexpected<Error>(*stream.error);
  return std::optional<Buffer>{};
}

// Those that came and will not be read.
void Worker::forget_parts(InStream& stream) noexcept {
  for (PullOp& pull : stream.pulls) {
    if (std::exchange(pull.answered, false)) pull.result() = Buffer{};
  }
}

// Before its end: the service is told, unless it is gone.
void Worker::stop_reading(InStream& stream, const Error& error) noexcept {
  stream.error = error;
  forget_parts(stream);
  for (PullOp& pull : stream.pulls) {
    if (pull.asked) pull.cancel();
  }
  stream.unlink();
  if (pressure_of(stream.session) != Pressure::closed) bid_farewell(stream);
  if (Waiter* waiter = stream.reader.pop_front()) resume(*waiter, {});
}

void Worker::cancel_stream(core::SlotHandle handle) noexcept {
  InStream& stream = *in_streams_.find(handle);
  if (stream.over()) return;
  stop_reading(stream, {ErrorCode::cancelled, ErrorScope::operation, 0, "the stream was cancelled"});
}

// Nobody holds it any more. One that never began has nothing to end.
void Worker::drop_stream(core::SlotHandle handle) noexcept {
  InStream& stream = *in_streams_.find(handle);
  if (stream.next_asked > 0) cancel_stream(handle);
  stream.dropped = true;
  erase_if_over(stream);
}

void Worker::erase_if_over(InStream& stream) noexcept {
  if (!stream.dropped || stream.farewell.asked || stream.farewell_due) return;
  for (const PullOp& pull : stream.pulls) {
    if (pull.asked) return;
  }
  stream.unlink();
  in_streams_.erase(stream.handle);
}

}  // namespace bx::engine

namespace bx {

OpenStream::~OpenStream() {
  if (worker_ != nullptr) worker_->drop_stream(stream_);
}

void OpenStream::await_suspend(std::coroutine_handle<> awaiting) noexcept {
  awaiting_ = awaiting;
  BX_CHECK(session_.worker_ != nullptr, "a stream over a session that was never connected");
  session_.worker_->open_in_stream(*this);
}

Result<StreamReader> OpenStream::await_resume() noexcept {
  engine::Worker* const worker = std::exchange(worker_, nullptr);
  if (worker == nullptr) return tl::unexpected<Error>(result().error());  // it was never asked for
  const bool opened = result() && result()->size() == wire::kStreamNumberBytes;
  if (!opened) {
    worker->drop_stream(stream_);
    if (!result()) return tl::unexpected<Error>(result().error());
    return bx::fail(ErrorCode::protocol, ErrorScope::operation, "an answer that is not a stream's number");
  }
  std::uint64_t number = 0;
  std::memcpy(&number, result()->data(), wire::kStreamNumberBytes);
  result() = Buffer{};
  worker->begin_reading(stream_, number);
  return StreamReader(*worker, stream_);
}

NextPart StreamReader::next() noexcept {
  BX_CHECK(worker_ != nullptr, "a part was read from a stream that was never opened");
  return {*worker_, stream_};
}

void StreamReader::cancel() noexcept {
  if (worker_ != nullptr) worker_->cancel_stream(stream_);
}

void StreamReader::drop() noexcept {
  if (worker_ != nullptr) std::exchange(worker_, nullptr)->drop_stream(stream_);
}

bool NextPart::await_ready() const noexcept {
  return worker_->part_ready(stream_);
}

void NextPart::await_suspend(std::coroutine_handle<> awaiting) noexcept {
  worker_->await_part(stream_, *this, awaiting);
}

Result<std::optional<Buffer>> NextPart::await_resume() noexcept {
  return worker_->take_part(stream_);
}

}  // namespace bx
