// SPDX-License-Identifier: BSD-3-Clause
// A peer made of plain verbs, for tests of what a worker does when the other side does not keep the rules. It
// shakes hands as told, and then sends whatever bytes it is given.
#pragma once

#include <string>
#include <vector>

#include "libbx/wire/hello.h"
#include "libbx/wire/message.h"
#include "tests/engine/world.h"

namespace bx::testing {

class RawPeer final : private fabric::StreamAcceptor, private fabric::StreamEvents {
 public:
  RawPeer(World& world, const std::string& name) : host_(world.fabric.open_host(name).value()) {
    fabric::Device& device = host_->device();
    memory_.resize(kBytes);
    region_ =
        device.register_memory(memory_, fabric::Access::remote_read | fabric::Access::remote_write).value();
    cq_ = device.create_cq({.depth = 1024}).value();
    srq_ = device.create_srq({.depth = kReceives}).value();
    qp_ = device
              .create_qp({.send_cq = cq_.get(),
                          .recv_cq = cq_.get(),
                          .srq = srq_.get(),
                          .send_depth = 256,
                          .sges_max = 1})
              .value();
    for (std::uint64_t i = 0; i < kReceives; ++i) post_receive(i);
    const fabric::QpAddress address = qp_->address();
    hello.epoch = 1;
    hello.gid = address.gid;
    hello.qp = static_cast<std::uint32_t>(address.qp);
    hello.psn = address.psn;
    hello.mtu_bytes = 4096;
    hello.credits = 16;
    hello.control_slots = 2;
    hello.receive_bytes = kSlot;
    hello.reads_max = 16;
  }

  // Waits for one connection, or makes one. The caller runs the world.
  void listen(std::uint16_t port) { listener_ = host_->streams().listen(port, *this).value(); }
  void connect(const std::string& to, std::uint16_t port) {
    opener_ = true;
    stream_ = host_->streams().connect(to, port, *this).value();
  }
  // Bytes on the stream, whatever they are.
  void say(const std::vector<std::byte>& bytes) { stream_->write(bytes); }
  [[nodiscard]] bool stream_lost() const {
    return stream_ != nullptr && (stream_->state() == fabric::StreamState::reset ||
                                  stream_->state() == fabric::StreamState::peer_closed);
  }

  struct Received {
    std::vector<std::byte> bytes;
    wire::Message message;  // valid while `bytes` is
    bool announcement = false;
    std::uint32_t imm = 0;
  };
  // What has come since the last time. Every receive is posted again at once.
  std::vector<Received> received() {
    poll();
    return std::exchange(received_, {});
  }
  [[nodiscard]] bool failed() {
    poll();
    return failed_;
  }

  // A message that keeps all the rules; to be spoilt.
  [[nodiscard]] wire::Message message(wire::MessageKind kind) const {
    wire::Message m;
    m.header.kind = kind;
    m.header.epoch = hello.epoch;
    m.header.credit_grant = hello.credits;
    return m;
  }
  [[nodiscard]] wire::Message response_to(std::uint64_t call) const {
    wire::Message m = message(wire::MessageKind::response);
    m.header.call = call;
    return m;
  }
  void send(wire::Message m, std::span<const std::byte> payload = {}) {
    m.header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    std::vector<std::byte> bytes(wire::kEnvelopeBytesMax);
    bytes.resize(wire::encode_envelope(m, bytes));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    send_bytes(bytes);
  }
  void send_bytes(std::span<const std::byte> bytes) {
    std::byte* place = memory_.data() + kSendAt + (sent_++ % 128) * kSlot * 2;
    std::copy(bytes.begin(), bytes.end(), place);
    const fabric::Sge sge{reinterpret_cast<std::uint64_t>(place), static_cast<std::uint32_t>(bytes.size()),
                          region_->lkey()};
    post({.sges = {&sge, 1}, .opcode = fabric::Opcode::send});
  }
  void announce(const wire::Announcement& announcement) {
    post({.imm = wire::encode(announcement), .opcode = fabric::Opcode::rdma_write_with_imm});
  }
  void write(std::uint64_t addr, std::uint32_t rkey, std::uint32_t length) {
    const fabric::Sge sge{reinterpret_cast<std::uint64_t>(memory_.data() + kSendAt), length, region_->lkey()};
    post({.sges = {&sge, 1}, .remote = {addr, fabric::RKey{rkey}}, .opcode = fabric::Opcode::rdma_write});
  }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory_.data()); }
  [[nodiscard]] std::uint32_t rkey() const { return static_cast<std::uint32_t>(region_->rkey()); }

  wire::Hello hello;                        // what it says of itself
  bool echo_epoch = true;                   // as an acceptor
  std::vector<wire::HandshakeFrame> heard;  // on the stream

 private:
  static constexpr std::uint64_t kReceives = 128;
  static constexpr std::uint32_t kSlot = 8448;
  static constexpr std::size_t kSendAt = kReceives * kSlot;
  static constexpr std::size_t kBytes = kSendAt + 130 * 2 * std::size_t{kSlot};

  void on_accept(std::unique_ptr<fabric::Stream> stream) noexcept override {
    stream_ = std::move(stream);
    stream_->set_events(this);
  }
  void on_stream(fabric::Stream& stream) noexcept override {
    if (opener_ && !said_ && stream.state() == fabric::StreamState::open) tell(hello);
    std::array<std::byte, 512> bytes;
    for (std::size_t count; (count = stream.read(bytes)) > 0;) {
      parser_.feed(std::span(bytes).first(count));
      for (auto frame = parser_.next(); frame && frame->has_value(); frame = parser_.next()) handle(**frame);
    }
  }
  void handle(const wire::HandshakeFrame& frame) {
    heard.push_back(frame);
    const auto* theirs = std::get_if<wire::Hello>(&frame);
    if (theirs == nullptr) return;
    const fabric::QpAddress address{.gid = theirs->gid, .qp = fabric::QpNum{theirs->qp}, .psn = theirs->psn};
    EXPECT_TRUE(qp_->connect(address, {.rnr_retry = 0}).has_value());
    if (opener_) {
      tell(wire::Ready{});
    } else {
      if (echo_epoch) hello.epoch = theirs->epoch;
      tell(hello);
    }
  }
  void tell(const wire::HandshakeFrame& frame) {
    said_ = true;
    say(wire::encode_frame(frame));
  }
  void post(fabric::SendWr wr) { EXPECT_EQ(qp_->post_send({&wr, 1}), 1U); }
  void post_receive(std::uint64_t slot) {
    const fabric::Sge sge{reinterpret_cast<std::uint64_t>(memory_.data() + slot * kSlot), kSlot,
                          region_->lkey()};
    const fabric::RecvWr wr{fabric::WrId{slot}, {&sge, 1}};
    EXPECT_EQ(srq_->post_recv({&wr, 1}), 1U);
  }
  void poll() {
    std::array<fabric::Completion, 32> batch;
    for (std::size_t count; (count = cq_->poll(batch)) > 0;) {
      for (const fabric::Completion& c : std::span(batch).first(count)) take(c);
    }
  }
  void take(const fabric::Completion& c) {
    failed_ = failed_ || c.status != fabric::WcStatus::success;
    const bool receive =
        c.opcode == fabric::WcOpcode::recv || c.opcode == fabric::WcOpcode::recv_rdma_with_imm;
    if (!receive || c.status != fabric::WcStatus::success) return;
    Received one;
    one.announcement = c.opcode == fabric::WcOpcode::recv_rdma_with_imm;
    one.imm = c.imm;
    const auto slot = static_cast<std::uint64_t>(c.wr_id);
    if (!one.announcement) {
      const std::byte* from = memory_.data() + slot * kSlot;
      one.bytes.assign(from, from + c.byte_len);
      const auto decoded = wire::decode(one.bytes);
      EXPECT_TRUE(decoded.has_value());
      if (decoded) one.message = *decoded;
    }
    received_.push_back(std::move(one));
    post_receive(slot);
  }

  std::unique_ptr<fabric::Host> host_;
  std::vector<std::byte> memory_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::unique_ptr<fabric::SharedReceiveQueue> srq_;
  std::unique_ptr<fabric::QueuePair> qp_;
  std::unique_ptr<fabric::Stream> stream_;
  std::unique_ptr<fabric::Listener> listener_;
  wire::FrameParser parser_;
  std::vector<Received> received_;
  std::uint64_t sent_ = 0;
  bool opener_ = false;
  bool said_ = false;
  bool failed_ = false;
};

}  // namespace bx::testing
