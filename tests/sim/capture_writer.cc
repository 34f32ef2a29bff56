// SPDX-License-Identifier: GPL-2.0-only
// capture_writer FILE: writes a capture for capture_test.py to look at, and on standard output what is in it,
// one JSON object a captured frame. One host sends a frame of every kind to another across a switch; then it
// sends to a paused one until the switch pauses it.
#include <cstdio>
#include <string>

#include "sim/model/pcapng_capture.h"
#include "sim/model/wire_size.h"
#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::kLossless;
using testing::Star;
using testing::star_config;
using testing::StarConfig;

// A host that sends the frames that it is given.
class Speaker final : public PortOwner {
 public:
  Speaker(Engine& engine, FramePool& pool, Rate rate) : pool_(pool), port(engine, pool, *this, 0, rate) {}
  void send(Frame* frame) {
    queue_.push(frame);
    port.kick();
  }
  NextFrame next_frame(Port& from) override {
    if (queue_.empty() || from.paused(queue_.front()->priority)) return nullptr;
    return queue_.pop();
  }
  void receive(Port& /*port*/, Frame* frame) override { pool_.free(frame); }
  void transmitted(Port& /*port*/, std::uint32_t /*wire_bytes*/, std::uint8_t /*priority*/,
                   std::uint16_t /*ingress_port*/) override {}

 private:
  FramePool& pool_;
  FrameQueue queue_;

 public:
  Port port;
};

Frame* make(FramePool& pool, BthOpcode opcode, std::uint32_t psn) {
  Frame* frame = pool.make();
  const bool carries = opcode != BthOpcode::acknowledge && opcode != BthOpcode::read_request &&
                       opcode != BthOpcode::cmp_swap && opcode != BthOpcode::fetch_add &&
                       opcode != BthOpcode::atomic_acknowledge && opcode != BthOpcode::cnp;
  frame->opcode = opcode;
  frame->payload_bytes = carries ? 61 + psn % 4 : 0;
  if (carries) {
    frame->payload = pool.make_payload();
    for (std::uint32_t i = 0; i < frame->payload_bytes; ++i) {
      frame->payload->bytes[i] = static_cast<std::byte>(i * 7 + psn);
    }
  }
  frame->wire_bytes = wire_bytes(opcode, frame->payload_bytes);
  frame->dst_host = 1;
  frame->udp_src_port = static_cast<std::uint16_t>(0xc000 + psn);
  frame->priority = opcode == BthOpcode::cnp ? 6 : kLossless;
  frame->dscp = opcode == BthOpcode::cnp ? 48 : 26;
  frame->ecn = psn % 2 == 0 ? Ecn::capable : Ecn::congestion_experienced;
  frame->solicited = psn % 3 == 0;
  frame->ack_req = psn % 2 == 1;
  frame->dst_qp = 0x00abc0 + psn;
  frame->psn = 0xfffff0 + psn;
  frame->va = 0x7f00'0000'1000 + psn;
  frame->rkey = 0x1234 + psn;
  frame->dma_length = 16384 + psn;
  frame->swap_add = 0x1111'2222'3333'4444 + psn;
  frame->compare = 0x5555'6666'7777'8888 + psn;
  frame->syndrome = psn % 2 == 0 ? 0x1f : 0x60;  // ACK, NAK (PSN sequence error)
  frame->msn = 0x70 + psn;
  frame->atomic_original = 0x9999'aaaa'bbbb'cccc + psn;
  frame->imm = 0xcafe0000 + psn;
  return frame;
}

// Prints what a port sees, as it sees it. (A tap of its own: the capture's is on other ports.)
class Printer final : public PortTap {
 public:
  explicit Printer(const Engine& engine) : engine_(engine) {}
  void on_frame(const Port& /*port*/, Direction direction, const Frame& f) override {
    std::printf(
        "{\"time_ps\":%lld,\"sent\":%d,\"pfc\":%d,\"pfc_enable\":%u,\"quanta3\":%u,\"src\":%u,\"dst\":%u,"
        "\"sport\":%u,\"dscp\":%u,\"ecn\":%u,\"opcode\":%u,\"se\":%d,\"a\":%d,\"qp\":%u,\"psn\":%u,"
        "\"payload\":%u,",
        static_cast<long long>(engine_.now().count()), direction == Direction::sent ? 1 : 0,
        f.kind == FrameKind::pfc ? 1 : 0, unsigned{f.pfc_enable}, unsigned{f.pfc_quanta[3]},
        unsigned{f.src_host}, unsigned{f.dst_host}, unsigned{f.udp_src_port}, unsigned{f.dscp},
        static_cast<unsigned>(f.ecn), static_cast<unsigned>(f.opcode), f.solicited ? 1 : 0, f.ack_req ? 1 : 0,
        f.dst_qp, f.psn, f.payload_bytes);
    std::printf(
        "\"va\":%llu,\"rkey\":%u,\"length\":%u,\"swap\":%llu,\"compare\":%llu,\"syndrome\":%u,\"msn\":%u,"
        "\"original\":%llu,\"imm\":%u,\"wire\":%u}\n",
        static_cast<unsigned long long>(f.va), f.rkey, f.dma_length,
        static_cast<unsigned long long>(f.swap_add), static_cast<unsigned long long>(f.compare),
        unsigned{f.syndrome}, f.msn, static_cast<unsigned long long>(f.atomic_original), f.imm, f.wire_bytes);
  }

 private:
  const Engine& engine_;
};

// The capture is of the switch's port 0, what is printed of the host's: what one sends the other receives a
// known delay later, so that times, too, are checked against something.
int run(const std::string& path) {
  const StarConfig config = star_config(4, 1024 * 1024);
  Engine engine(EngineKind::fast);
  FramePool pool;
  Topology topology(engine, pool, config.topology(), Prng(1));
  Speaker speaker(engine, pool, config.fabric.rate);
  topology.connect_host(0, speaker.port);
  std::deque<testing::TrafficHost> hosts;
  for (std::uint16_t i = 1; i < 4; ++i) {
    hosts.emplace_back(engine, pool, i, config.fabric.rate);
    topology.connect_host(i, hosts.back().port());
  }
  auto capture = Capture::create(engine, topology, path);
  if (!capture || !(*capture)->add("switch0:0")) return 1;
  Printer printer(engine);
  speaker.port.set_tap(&printer);
  for (std::uint32_t psn = 0; psn <= 40; ++psn) {
    speaker.send(make(pool, static_cast<BthOpcode>(psn % 21), psn));
  }
  speaker.send(make(pool, BthOpcode::cnp, 42));
  speaker.send(make(pool, BthOpcode::send_last_inv, 43));
  speaker.send(make(pool, BthOpcode::send_only_inv, 44));
  engine.run(microseconds{20});
  // Host 1 pauses the switch for 150 us, so that what goes there fills it and it pauses host 0.
  hosts[0].send_pfc(1U << kLossless, 30000);
  for (std::uint32_t psn = 0; psn < 300; ++psn) {
    Frame* frame = make(pool, BthOpcode::send_only, 2 * psn);
    frame->payload_bytes = 4096;
    frame->wire_bytes = wire_bytes(frame->opcode, 4096);
    speaker.send(frame);
  }
  hosts[1].send({.dst = 0, .frames = 5, .payload_bytes = 64, .ecn = Ecn::capable});
  if (!engine.run(testing::kForever)) return 1;
  return (*capture)->flush() ? 0 : 1;
}

}  // namespace
}  // namespace bx::sim

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: capture_writer FILE\n");
    return 2;
  }
  return bx::sim::run(argv[1]);
}
