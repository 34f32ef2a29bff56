// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/raw_client.h"

#include <fmt/format.h>

namespace bx::harness {
namespace {

constexpr Duration kRedial{100'000'000};

fabric::Opcode opcode_of(PerfCase which) {
  switch (which) {
    case PerfCase::write_latency:
    case PerfCase::write_bandwidth:
      return fabric::Opcode::rdma_write;
    case PerfCase::read_latency:
    case PerfCase::read_bandwidth:
      return fabric::Opcode::rdma_read;
    default:
      return fabric::Opcode::send;
  }
}

}  // namespace

RawClient::RawClient(fabric::Host& host, std::string peer, const PerfPlan& plan)
    : RawEnd(host), peer_name_(std::move(peer)), point_ns_(plan.point_ns) {
  for (const PerfCase which : plan.cases) {
    if (!spec_of(which).raw) continue;
    for (const std::uint64_t size : plan.sizes) wanted_.push_back({which, static_cast<std::uint32_t>(size)});
  }
}

bool RawClient::start(Duration patience) {
  if (!open()) return false;
  give_up_ = host_.reactor().now() + patience;
  dial();
  return error().empty();
}

void RawClient::dial() {
  auto stream = host_.streams().connect(peer_name_, kRawPort, *this);
  if (!stream) return fail(fmt::format("{}: {}", peer_name_, stream.error().detail));
  stream_ = std::move(*stream);
}

// The server may not be there yet.
void RawClient::on_timer(Instant /*now*/) noexcept {
  stream_.reset();
  dial();
}

void RawClient::on_stream(fabric::Stream& stream) noexcept {
  if (stream.state() == fabric::StreamState::connecting) return;
  if (!greeted_ && stream.state() == fabric::StreamState::reset) {
    if (host_.reactor().now() >= give_up_) {
      return fail(fmt::format("nobody answers at {} port {}: start 'bx perf verbs --listen' there",
                              peer_name_, kRawPort));
    }
    return host_.reactor().arm(*this, host_.reactor().now() + kRedial);
  }
  if (!greeted_) {
    greeted_ = true;
    say(hello());
  }
  RawEnd::on_stream(stream);
}

void RawClient::on_message(const RawMessage& message) {
  if (message.kind == RawMessage::Kind::hello) {
    if (connect(message)) next_point();
  } else if (message.kind == RawMessage::Kind::ready) {
    begin_point();
  } else {
    fail("the server speaks out of turn");
  }
}

void RawClient::next_point() {
  RawMessage message;
  message.kind = at_ < wanted_.size() ? RawMessage::Kind::point : RawMessage::Kind::finish;
  if (at_ < wanted_.size()) {
    message.which = wanted().which;
    message.size = wanted().size;
  }
  say(message);
  // Nothing is under way any more: the server may close when it likes.
  if (message.kind == RawMessage::Kind::finish) {
    finished_ = true;
    host_.reactor().stop();
  }
}

void RawClient::begin_point() {
  timer_.emplace(wanted().which, wanted().size, point_ns_);
  timer_->start(now_ns());
  post_more();
}

void RawClient::post_more() {
  const std::uint32_t depth = spec_of(wanted().which).latency ? 1 : kPerfDepth;
  while (outstanding_ < depth && !waiting_ && !timer_->done()) {
    posted_at_ns_ = now_ns();
    if (!post(opcode_of(wanted().which), wanted().size)) return;
    ++outstanding_;
    waiting_ = wanted().which == PerfCase::send_latency;
  }
}

void RawClient::on_completion(const fabric::Completion& completion) {
  if (!timer_) return;
  const std::uint64_t now = now_ns();
  const auto elapsed = static_cast<double>(now - posted_at_ns_);
  if (completion.opcode == fabric::WcOpcode::recv) {
    if (!post_receives(1)) return;
    waiting_ = false;
    timer_->complete(now, elapsed / 2);
  } else {
    --outstanding_;
    if (wanted().which != PerfCase::send_latency) timer_->complete(now, elapsed);
  }
  post_more();
  if (!timer_->done() || outstanding_ != 0 || waiting_) return;
  points_.push_back(timer_->result());
  timer_.reset();
  ++at_;
  next_point();
}

void RawClient::on_closed() {
  if (!finished_) fail("the server is gone");
}

}  // namespace bx::harness
