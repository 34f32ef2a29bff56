// SPDX-License-Identifier: BSD-3-Clause
// What a worker says to people: a line when a lane or a handshake fails, and all its live objects when asked.
#include <algorithm>
#include <string>

#include "libbx/engine/error_text.h"
#include "libbx/engine/report.h"
#include "libbx/engine/worker.h"

namespace bx::engine {
namespace {

constexpr std::uint32_t kShownMax = 16;  // of the sessions of a peer, of calls, of transfers: the first

const char* word_of(SendRecord::Use use) noexcept {
  switch (use) {
    case SendRecord::Use::nothing:
    case SendRecord::Use::message:
      return "send";
    case SendRecord::Use::read:
      return "read";
    case SendRecord::Use::write:
      return "write";
    case SendRecord::Use::notify:
      return "notify";
    case SendRecord::Use::put:
      return "put";
    case SendRecord::Use::drain:
      return "drain";
  }
  return "unknown";
}

const char* word_of(PeerState state) noexcept {
  switch (state) {
    case PeerState::connecting:
      return "connecting";
    case PeerState::open:
      return "open";
    case PeerState::failed:
      return "failed";
  }
  return "unknown";
}

// What was being done when it failed, as far as anybody knows.
const char* request_of(const Peer& peer, const Error& error) noexcept {
  if (peer.state == PeerState::connecting) return "handshake";
  if (peer.failed_request != nullptr) return peer.failed_request;
  if (error.code == ErrorCode::protocol) return "receive";
  return error.code == ErrorCode::closed ? "connection" : "none";
}

// One line of a dump: an object `depth` levels below the worker.
class Line {
 public:
  Line(int depth, std::string_view object) noexcept : line_(LogLevel::dump) { line_.nest(depth, object); }
  Line& add(std::string_view key, std::string_view value) noexcept {
    line_.add(key, value);
    return *this;
  }
  Line& add(std::string_view key, std::uint64_t value) noexcept {
    line_.add(key, value);
    return *this;
  }
  Line& add(std::string_view key, Duration time) noexcept {
    return add(key, static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count())));
  }
  void to(LogSink& sink) const noexcept { sink.line(LogLevel::dump, line_.text()); }

 private:
  LogLine line_;
};

void more(int depth, std::size_t of, LogSink& sink) {
  if (of > kShownMax) Line(depth, "more").add("count", of - kShownMax).to(sink);
}

void dump_sessions(const Peer& peer, LogSink& sink) {
  std::uint32_t shown = 0;
  for (const auto& session : peer.session_stats) {
    if (shown++ == kShownMax) break;
    const std::uint64_t completed = session->latency.count();
    Line(2, "session")
        .add("id", session->session)
        .add("outstanding", session->calls_started - completed - session->calls_failed)
        .add("completed", completed)
        .add("failed", session->calls_failed)
        .add("latency_p50_ns", static_cast<std::uint64_t>(session->latency.quantile_ns(500)))
        .add("latency_p99_ns", static_cast<std::uint64_t>(session->latency.quantile_ns(990)))
        .to(sink);
  }
  more(2, peer.sessions, sink);
}

void dump_peer(Peer& peer, Instant now, LogSink& sink) {
  Line line(1, "peer");
  line.add("name", name_of(peer)).add("state", word_of(peer.state)).add("epoch", peer.epoch);
  line.add("sessions", peer.sessions).add("queued", peer.queued);
  line.add("credits", peer.credits.available()).add("receives_posted", peer.issuer.posted());
  line.add("receives_owed", peer.reposts_owed);
  line.add("bytes_out", peer.window_out.in_flight()).add("bytes_in", peer.window_in.in_flight());
  const StallReason stall = peer.stall.reason();
  line.add("stalled", name_of(stall));
  if (stall != StallReason::none) line.add("stalled_ns", now - peer.stall.since());
  if (peer.state == PeerState::failed) line.add("error", peer.error.detail);
  line.to(sink);
  for (const PeerLane& each : peer.all_lanes()) {
    const bool control = peer.has_control_lane() && &each == &peer.control_lane();
    Line(2, "lane")
        .add("qp", name_of(each.lane->qp().address().qp))
        .add("remote_qp", name_of(each.remote.qp))
        .add("carries", control ? "control" : "data")
        .add("outstanding", each.lane->outstanding())
        .add("free_slots", each.lane->free_slots())
        .add("reads", each.reads_outstanding)
        .add("grants", each.grants.size())
        .to(sink);
  }
  dump_sessions(peer, sink);
}

}  // namespace

void Worker::log(const LogLine& line) noexcept {
  std::uint64_t suppressed = 0;
  if (log_ == nullptr || !log_limit_.admit(reactor_.now(), suppressed)) return;
  if (suppressed > 0) {
    LogLine note(LogLevel::error);
    note.add("worker", host_.name()).add("suppressed", suppressed);
    log_->line(LogLevel::error, note.text());
  }
  log_->line(LogLevel::error, line.text());
}

// Not of the end of a worker, this one or the other, that nothing went wrong with.
void Worker::log_failure(const Peer& peer, const Error& error) noexcept {
  if (closed_) return;
  if (error.code == ErrorCode::closed && peer.connection != nullptr && peer.connection->closed_by_peer())
    return;
  const ErrorText text = text_of(error);
  LogLine line(LogLevel::error);
  line.add("worker", host_.name())
      .add("peer", name_of(peer))
      .add("qp", name_of(peer.lanes[peer.failed_lane].lane->qp().address().qp))
      .add("request", request_of(peer, error))
      .add("status", text.status)
      .add("detail", error.detail)
      .add("hint", text.hint);
  log(line);
}

// A handshake of somebody who came to us and did not become a peer.
void Worker::log_refusal(const Error& error) noexcept {
  if (closed_) return;
  const ErrorText text = text_of(error);
  LogLine line(LogLevel::error);
  line.add("worker", host_.name())
      .add("peer", "unknown")
      .add("request", "handshake")
      .add("status", text.status)
      .add("detail", error.detail)
      .add("hint", text.hint);
  log(line);
}

void Worker::note_failed_send(Peer& peer, const WrTag& tag) noexcept {
  if (peer.failed_request != nullptr) return;
  peer.failed_request = word_of(peer.lanes[tag.lane].lane->use_of(tag.number));
  peer.failed_lane = tag.lane;
}

void Worker::watch(const std::atomic<std::uint32_t>& dump_requests) noexcept {
  dump_requests_ = &dump_requests;
  dumps_seen_ = dump_requests.load(std::memory_order_relaxed);
}

void Worker::dump_as_asked() noexcept {
  dumps_seen_ = dump_requests_->load(std::memory_order_relaxed);
  if (log_ != nullptr) dump(*log_);
}

void Worker::dump(LogSink& sink) {
  const Instant now = reactor_.now();
  Line(0, "worker")
      .add("host", host_.name())
      .add("now_ns", now - Instant{})
      .add("turns", stats_.turns)
      .add("state", closed_ ? "closed" : "open")
      .add("peers", peers_live_)
      .add("calls", calls_.size())
      .add("serving", serving_)
      .add("deferred", deferred_requests_.size() + deferred_responses_.size())
      .add("bytes_in", budget_.outstanding())
      .add("window_in", budget_.budget())
      .to(sink);
  Line(1, "memory")
      .add("send_in_use", arena_->usage(memory::Side::send).bytes)
      .add("receive_in_use", arena_->usage(memory::Side::receive).bytes)
      .add("peak", arena_->bytes_in_use_peak())
      .add("capacity", arena_->capacity())
      .add("receives_posted", receives_->posted())
      .add("receives_lent", receives_->lent())
      .add("receives_kept", receives_->kept())
      .add("receives_owed", receives_owed_)
      .to(sink);
  for (const auto& peer : peers_) {
    if (peer != nullptr) dump_peer(*peer, now, sink);
  }
  dump_calls(sink);
  dump_transfers(sink);
}

void Worker::dump_calls(LogSink& sink) {
  std::uint32_t shown = 0;
  deadlines_.for_each([&](Call& call) {
    if (shown++ >= kShownMax) return;
    const bool waits = call.ListHook<Waiting>::linked();
    const bool fetching = call.response_transfer != 0;
    Line(1, "call")
        .add("peer", name_of(*peers_[call.peer]))
        .add("session", call.header.session)
        .add("state", waits      ? "queued"
                      : fetching ? "fetching"
                                 : "sent")
        .add("age_ns", reactor_.now() - call.started)
        .to(sink);
  });
  more(1, calls_.size(), sink);
}

void Worker::dump_transfers(LogSink& sink) {
  std::uint32_t shown = 0;
  in_transfers_.for_each([&](core::SlotHandle, InTransfer& transfer) {
    if (shown++ >= kShownMax) return;
    const bool empty = transfer.buffer.empty();
    Line(1, "transfer")
        .add("direction", "in")
        .add("peer", name_of(*peers_[transfer.peer]))
        .add("way", transfer.by_write() ? "granted-write" : "pull")
        .add("bytes", transfer.offer.length)
        .add("state", transfer.cursor.stopped()      ? "stopped"
                      : transfer.cursor.all_issued() ? "asked"
                      : empty                        ? "no_memory"
                                                     : "asking")
        .to(sink);
  });
  more(1, in_transfers_.size(), sink);
  shown = 0;
  out_transfers_.for_each([&](core::SlotHandle, OutTransfer& transfer) {
    if (shown++ >= kShownMax) return;
    Line(1, "transfer")
        .add("direction", "out")
        .add("peer", name_of(*peers_[transfer.peer]))
        .add("bytes", transfer.payload.size())
        .add("writes", transfer.writes_outstanding)
        .add("state", transfer.finished ? "finished" : "offered")
        .to(sink);
  });
  more(1, out_transfers_.size(), sink);
}

}  // namespace bx::engine
