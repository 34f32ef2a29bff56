// SPDX-License-Identifier: GPL-2.0-only
// Hosts around one switch, each with a NIC that has queue pairs and ns-3's IP stack, for the tests of both
// side by side.
#pragma once

#include <ns3/application.h>
#include <ns3/bulk-send-application.h>
#include <ns3/inet-socket-address.h>
#include <ns3/packet-sink.h>
#include <ns3/string.h>
#include <ns3/tcp-socket-factory.h>
#include <ns3/uinteger.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/ns3/ip_network.h"
#include "tests/sim/nic_world.h"
#include "tests/sim/traffic.h"

namespace bx::sim {

struct IpWorldConfig {
  EngineKind engine = EngineKind::fast;
  std::uint16_t hosts = 2;
  testing::StarConfig star = testing::star_config(2, 4U << 20U);
  IpNetworkConfig ip{};
};

class IpWorld {
 public:
  explicit IpWorld(const IpWorldConfig& config = {})
      : engine(config.engine), topology(engine, frames, plan(config).topology(), Prng(1)) {
    for (std::uint16_t host = 0; host < config.hosts; ++host) {
      sides.emplace_back(engine, frames, WorldConfig{.memory_bytes = 1U << 21U}, host);
      topology.connect_host(host, sides.back().nic.port());
      nics_.push_back(&sides.back().nic);
    }
    ip.emplace(topology, nics_, config.ip);
  }

  // TCP from one host to another: `bytes` in all, from now on; DSCP class selector `priority`.
  ns3::Ptr<ns3::PacketSink> start_tcp(std::uint16_t from, std::uint16_t to, std::uint64_t bytes,
                                      std::uint8_t priority = 0) {
    const std::uint16_t port = next_port_++;
    ns3::InetSocketAddress here(ns3::Ipv4Address::GetAny(), port);
    ns3::InetSocketAddress there(IpNetwork::address(to), port);
    there.SetTos(static_cast<std::uint8_t>(priority << 5U));
    here.SetTos(static_cast<std::uint8_t>(priority << 5U));
    const auto sink = ns3::CreateObjectWithAttributes<ns3::PacketSink>(
        "Protocol", ns3::TypeIdValue(ns3::TcpSocketFactory::GetTypeId()), "Local", ns3::AddressValue(here));
    ip->node(to)->AddApplication(sink);
    const auto source = ns3::CreateObjectWithAttributes<ns3::BulkSendApplication>(
        "Protocol", ns3::TypeIdValue(ns3::TcpSocketFactory::GetTypeId()), "Remote", ns3::AddressValue(there),
        "MaxBytes", ns3::UintegerValue(bytes), "SendSize", ns3::UintegerValue(8192));
    ip->node(from)->AddApplication(source);
    return sink;
  }
  // A connected queue pair from one host to another, and its other end, in the lossless class.
  std::pair<RcQueuePair*, RcQueuePair*> connect(std::uint16_t from, std::uint16_t to) {
    RcQueuePair& a = sides[from].make_qp();
    RcQueuePair& b = sides[to].make_qp();
    RcPath path{.peer_host = to, .peer_qp = b.number(), .traffic_class = testing::kLossless << 5U};
    World::bring_up(a, path);
    path.peer_host = from;
    path.peer_qp = a.number();
    World::bring_up(b, path);
    return {&a, &b};
  }
  // `count` WRITEs of `length` bytes, posted at once.
  void write(RcQueuePair& qp, std::uint16_t from, std::uint16_t to, std::uint32_t length, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const Segment segment = sides[from].segment(0, length);
      const SendRequest request{.id = i,
                                .segments = {&segment, 1},
                                .remote_addr = sides[to].at(0),
                                .rkey = sides[to].keys.rkey,
                                .opcode = RequestOpcode::write};
      BX_CHECK(sides[from].post(qp, request) == 1, "the send queue has room");
    }
  }

  Engine engine;
  FramePool frames;
  Topology topology;
  std::deque<Side> sides;
  std::optional<IpNetwork> ip;

 private:
  static testing::StarConfig plan(const IpWorldConfig& config) {
    testing::StarConfig star = config.star;
    star.hosts = config.hosts;
    return star;
  }
  std::vector<Nic*> nics_;
  std::uint16_t next_port_ = 5000;
};

}  // namespace bx::sim
