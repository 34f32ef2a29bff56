// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/raw_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace bx::harness {
namespace {

constexpr std::uint8_t kAckTimeout = 18;  // 1.07 s
constexpr std::uint8_t kRetries = 6;
constexpr std::uint8_t kRnrForEver = 7;
constexpr std::uint8_t kRnrTimer = 1;  // 0.01 ms
constexpr std::uint8_t kReads = 16;
constexpr std::uint8_t kTrafficClass = 104;
constexpr std::size_t kPollBatch = 64;

}  // namespace

RawEnd::~RawEnd() {
  host_.reactor().attach(nullptr);
  if (stream_ != nullptr) stream_->set_events(nullptr);
  qp_.reset();  // before the queues it uses
  srq_.reset();
  cq_.reset();
}

bool RawEnd::open() {
  fabric::Device& device = host_.device();
  const auto failed = [this](const Error& error) {
    fail(fmt::format("{}: {}", host_.name(), error.detail));
    return false;
  };
  memory_.resize(kPerfSizeMax);
  auto region = device.register_memory(memory_, fabric::Access::remote_read | fabric::Access::remote_write);
  if (!region) return failed(region.error());
  region_ = std::move(*region);
  auto cq = device.create_cq({.depth = kReceives + 2 * kPerfDepth, .waker = &host_.reactor().waker()});
  if (!cq) return failed(cq.error());
  cq_ = std::move(*cq);
  auto srq = device.create_srq({.depth = kReceives});
  if (!srq) return failed(srq.error());
  srq_ = std::move(*srq);
  auto qp = device.create_qp({.send_cq = cq_.get(),
                              .recv_cq = cq_.get(),
                              .srq = srq_.get(),
                              .send_depth = 2 * kPerfDepth,
                              .sges_max = 1});
  if (!qp) return failed(qp.error());
  qp_ = std::move(*qp);
  host_.reactor().attach(this);
  return true;
}

RawMessage RawEnd::hello() const {
  const fabric::DeviceCaps& caps = host_.device().caps();
  RawMessage message;
  message.address = qp_->address();
  message.memory = reinterpret_cast<std::uintptr_t>(memory_.data());
  message.rkey = static_cast<std::uint32_t>(region_->rkey());
  message.mtu_max = caps.mtu_max;
  message.rd_atomic_max = caps.rd_atomic_max;
  return message;
}

bool RawEnd::connect(const RawMessage& peer) {
  const fabric::DeviceCaps& caps = host_.device().caps();
  peer_ = peer;
  const auto reads = static_cast<std::uint8_t>(
      std::min<std::uint32_t>({kReads, std::max(1U, caps.rd_atomic_max), std::max(1U, peer.rd_atomic_max)}));
  const Result<> connected = qp_->connect(peer.address, {.mtu_bytes = std::min(caps.mtu_max, peer.mtu_max),
                                                         .ack_timeout = kAckTimeout,
                                                         .retry_cnt = kRetries,
                                                         .rnr_retry = kRnrForEver,
                                                         .min_rnr_timer = kRnrTimer,
                                                         .rd_atomic_max = reads,
                                                         .rd_atomic_dest_max = reads,
                                                         .traffic_class = kTrafficClass});
  if (!connected) {
    fail(fmt::format("{}: {}", host_.name(), connected.error().detail));
    return false;
  }
  return post_receives(kReceives);
}

bool RawEnd::post_receives(std::uint32_t count) {
  const fabric::Sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()),
                        static_cast<std::uint32_t>(memory_.size()), region_->lkey()};
  const fabric::RecvWr request{.wr_id = {}, .sges = {&sge, 1}};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (srq_->post_recv({&request, 1}) == 1) continue;
    fail(fmt::format("{}: the receive queue is full", host_.name()));
    return false;
  }
  return true;
}

bool RawEnd::post(fabric::Opcode opcode, std::uint32_t size) {
  const fabric::Sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), size, region_->lkey()};
  const fabric::SendWr request{.wr_id = {},
                               .sges = {&sge, 1},
                               .remote = {peer_.memory, static_cast<fabric::RKey>(peer_.rkey)},
                               .opcode = opcode};
  return qp_->post_send({&request, 1}) == 1;
}

bool RawEnd::say(const RawMessage& message) {
  const RawBytes bytes = encode(message);
  if (stream_->write(bytes) == bytes.size()) return true;
  fail("the other end does not take what is said to it");
  return false;
}

void RawEnd::on_stream(fabric::Stream& stream) noexcept {
  while (error_.empty()) {
    const std::size_t count = stream.read(std::span(received_).subspan(received_bytes_));
    if (count == 0) break;
    received_bytes_ += count;
    if (received_bytes_ < received_.size()) continue;
    received_bytes_ = 0;
    const auto message = decode(received_);
    if (!message) return fail("the other end is no 'bx perf verbs', or of another version");
    on_message(*message);
  }
  if (stream.state() == fabric::StreamState::peer_closed || stream.state() == fabric::StreamState::reset)
    on_closed();
}

fabric::TurnResult RawEnd::turn(Instant /*now*/) noexcept {
  fabric::TurnResult result;
  if (cq_ == nullptr) return result;
  std::array<fabric::Completion, kPollBatch> batch;
  const std::size_t count = cq_->poll(batch);
  result.work.completions = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count && error_.empty(); ++i) {
    if (batch[i].status != fabric::WcStatus::success) {
      fail(fmt::format("{}: a request failed: {}", host_.name(), to_string(batch[i].status)));
      break;
    }
    on_completion(batch[i]);
  }
  result.more = count == batch.size() || cq_->arm() == fabric::ArmResult::pending;
  return result;
}

void RawEnd::fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
  host_.reactor().stop();
}

}  // namespace bx::harness
