// SPDX-License-Identifier: GPL-2.0-only
// Hosts without a NIC for tests of links and switches: they send frames at line rate whenever they may, and
// count what arrives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/port.h"
#include "sim/model/topology.h"
#include "sim/model/topology_shapes.h"
#include "sim/model/units.h"

namespace bx::sim::testing {

inline constexpr Picoseconds kForever = std::chrono::seconds{1000};
inline constexpr std::uint8_t kLossless = 3;
inline constexpr std::uint8_t kLossy = 1;

constexpr Rate gbps(std::uint64_t n) {
  return Rate{n * 1'000'000'000ULL};
}
// Of one frame after none, so without a carried remainder.
inline Picoseconds serialisation(std::uint64_t wire_bytes, Rate rate) {
  return Serialiser(rate).time_for(wire_bytes);
}

struct Flow {
  std::uint16_t dst = 0;
  std::uint64_t frames = 0;
  std::uint32_t payload_bytes = 4096;
  std::uint8_t priority = kLossless;
  Ecn ecn = Ecn::not_capable;
  std::uint16_t udp_src_port = 0;
};

struct Arrival {
  Picoseconds time{};
  std::uint32_t psn = 0;
  std::uint16_t src = 0;
  std::uint8_t priority = 0;
  Ecn ecn = Ecn::not_capable;
};

class TrafficHost final : public PortOwner {
 public:
  TrafficHost(Engine& engine, FramePool& pool, std::uint16_t index, Rate rate)
      : engine_(engine), pool_(pool), index_(index), port_(engine, pool, *this, 0, rate) {}

  [[nodiscard]] Port& port() { return port_; }
  void send(const Flow& flow) {
    flows_.push_back(flow);
    port_.kick();
  }
  // Goes out before any flow.
  void send_pfc(std::uint8_t enable, std::uint16_t quanta) {
    Frame* frame = pool_.make();
    frame->kind = FrameKind::pfc;
    frame->wire_bytes = kMinimumWireBytes;
    frame->pfc_enable = enable;
    frame->pfc_quanta.fill(quanta);
    control_.push(frame);
    port_.kick();
  }
  [[nodiscard]] const std::vector<Arrival>& arrivals() const { return arrivals_; }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t transmitted() const { return transmitted_; }

  NextFrame next_frame(Port& port) override {
    if (!control_.empty()) return control_.pop();
    for (Flow& flow : flows_) {
      if (flow.frames == 0 || port.paused(flow.priority)) continue;
      --flow.frames;
      return make(flow);
    }
    return nullptr;
  }
  void receive(Port& /*port*/, Frame* frame) override {
    arrivals_.push_back({engine_.now(), frame->psn, frame->src_host, frame->priority, frame->ecn});
    pool_.free(frame);
  }
  void transmitted(Port& /*port*/, std::uint32_t /*wire_bytes*/, std::uint8_t /*priority*/,
                   std::uint16_t /*ingress_port*/) override {
    ++transmitted_;
  }

 private:
  Frame* make(const Flow& flow) {
    Frame* frame = pool_.make();
    frame->wire_bytes = flow.payload_bytes + kRoceOverheadBytes;
    frame->payload_bytes = flow.payload_bytes;
    frame->src_host = index_;
    frame->dst_host = flow.dst;
    frame->udp_src_port = flow.udp_src_port;
    frame->priority = flow.priority;
    frame->ecn = flow.ecn;
    frame->dst_qp = flow.dst;
    frame->psn = static_cast<std::uint32_t>(sent_++);
    return frame;
  }

  Engine& engine_;
  FramePool& pool_;
  std::uint16_t index_;
  Port port_;
  FrameQueue control_;
  std::vector<Flow> flows_;
  std::vector<Arrival> arrivals_;
  std::uint64_t sent_ = 0;
  std::uint64_t transmitted_ = 0;
};

// N hosts around one switch; its ports take their rate from `fabric`.
struct StarConfig {
  std::uint16_t hosts = 0;
  Picoseconds delay{};
  SwitchConfig fabric{};
  [[nodiscard]] TopologyConfig topology() const {
    return {.plan = single_switch(hosts, {fabric.rate, delay}), .fabric = fabric};
  }
};

// A topology with a host on every port.
struct Net {
  Net(EngineKind kind, const TopologyConfig& config, std::uint64_t seed = 1)
      : engine(kind), topology(engine, pool, config, Prng(seed)) {
    for (std::uint16_t i = 0; i < topology.hosts(); ++i) {
      hosts.emplace_back(engine, pool, i, topology.host_rate(i));
      topology.connect_host(i, hosts.back().port());
    }
  }

  Engine engine;
  FramePool pool;
  Topology topology;
  std::deque<TrafficHost> hosts;
};

struct Star : Net {
  Star(EngineKind kind, const StarConfig& config, std::uint64_t seed = 1)
      : Net(kind, config.topology(), seed) {}
  [[nodiscard]] Switch& fabric() { return topology.switch_at(0); }
};

// 100 Gb/s, 1 us links, one lossless class with headroom by the formula, alpha 1.
inline StarConfig star_config(std::uint16_t hosts, std::uint64_t buffer_bytes) {
  StarConfig config{.hosts = hosts, .delay = microseconds{1}};
  config.fabric.rate = gbps(100);
  config.fabric.buffer.total_bytes = buffer_bytes;
  ClassBufferConfig& lossless = config.fabric.buffer.classes[kLossless];
  lossless.lossless = true;
  lossless.headroom_bytes =
      static_cast<std::uint32_t>(headroom_needed_bytes({.rate = gbps(100), .delay = microseconds{1}}));
  lossless.xon_offset_bytes = 2 * kFrameBytesMax;
  return config;
}

}  // namespace bx::sim::testing
