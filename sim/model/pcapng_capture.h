// SPDX-License-Identifier: GPL-2.0-only
// Captures at ports of a topology, one interface a port, into one pcapng file. Both directions are written: a
// frame that is sent at the time of its first bit, one that is received when it has arrived whole.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libbx/base/result.h"
#include "sim/model/engine.h"
#include "sim/model/frame_bytes.h"
#include "sim/model/pcapng.h"
#include "sim/model/port.h"
#include "sim/model/topology.h"

namespace bx::sim {

// The ports that can be captured: "host3" is that host's NIC's, "leaf0:2" port 2 of that switch.
[[nodiscard]] std::vector<std::string> port_names(const TopologyPlan& plan);
// Nothing, or what is wrong with these names: one that no port has, or one twice.
[[nodiscard]] Result<> check_captured(const TopologyPlan& plan, std::span<const std::string> ports);

// Must be destroyed before the topology's and the hosts' ports.
class Capture {
 public:
  // Errors: those of PcapngWriter::create. `topology` has all its hosts connected.
  static Result<std::unique_ptr<Capture>> create(const Engine& engine, const Topology& topology,
                                                 const std::string& path);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // "host3" is the port of that host's NIC, "leaf0:2" port 2 of that switch. Errors: invalid_argument (no
  // such port, or it is captured already).
  Result<> add(std::string_view port);

  [[nodiscard]] std::uint64_t frames() const noexcept { return writer_->frames(); }
  // Errors: exhausted, if not everything could be written.
  Result<> flush() { return writer_->flush(); }

 private:
  struct Tap final : PortTap {
    Tap(Capture& c, Port& p, std::uint32_t number) : capture(c), port(p), interface(number) {}
    void on_frame(const Port& port, Direction direction, const Frame& frame) override;
    Capture& capture;
    Port& port;
    std::uint32_t interface;
    MacAddress own{};
    MacAddress peer{};
  };
  Capture(const Engine& engine, const Topology& topology, std::unique_ptr<PcapngWriter> writer);
  [[nodiscard]] MacAddress mac_of(std::size_t link, std::size_t end) const noexcept;

  const Engine& engine_;
  const Topology& topology_;
  std::unique_ptr<PcapngWriter> writer_;
  std::deque<Tap> taps_;  // which do not move
};

}  // namespace bx::sim
