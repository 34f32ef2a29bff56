// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/pcapng_capture.h"

#include <algorithm>
#include <utility>

namespace bx::sim {
namespace {

std::string port_name(const TopologyPlan& plan, Node node, std::uint16_t port) {
  const std::string name = node_name(plan, node);
  return node.kind == NodeKind::host ? name : name + ':' + std::to_string(port);
}

}  // namespace

std::vector<std::string> port_names(const TopologyPlan& plan) {
  std::vector<std::string> names;
  const auto numbers = link_ports(plan);
  for (std::size_t link = 0; link < plan.links.size(); ++link) {
    for (std::size_t end = 0; end < 2; ++end) {
      names.push_back(port_name(plan, plan.links[link].ends[end], numbers[link][end]));
    }
  }
  return names;
}

Result<> check_captured(const TopologyPlan& plan, std::span<const std::string> ports) {
  const std::vector<std::string> names = port_names(plan);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (std::find(names.begin(), names.end(), ports[i]) == names.end()) {
      return fail(ErrorCode::invalid_argument, ErrorScope::operation,
                  "capture: no such port; give host<n>, or <switch>:<port>");
    }
    const auto before = ports.first(i);
    if (std::find(before.begin(), before.end(), ports[i]) != before.end()) {
      return fail(ErrorCode::invalid_argument, ErrorScope::operation, "capture: a port is named twice");
    }
  }
  return {};
}

Result<std::unique_ptr<Capture>> Capture::create(const Engine& engine, const Topology& topology,
                                                 const std::string& path) {
  Result<std::unique_ptr<PcapngWriter>> writer = PcapngWriter::create(path);
  if (!writer) return tl::unexpected(writer.error());
  return std::unique_ptr<Capture>(new Capture(engine, topology, std::move(*writer)));
}

Capture::Capture(const Engine& engine, const Topology& topology, std::unique_ptr<PcapngWriter> writer)
    : engine_(engine), topology_(topology), writer_(std::move(writer)) {}

Capture::~Capture() {
  for (Tap& tap : taps_) tap.port.set_tap(nullptr);
}

MacAddress Capture::mac_of(std::size_t link, std::size_t end) const noexcept {
  const Node node = topology_.plan().links[link].ends[end];
  return node.kind == NodeKind::host ? host_mac(node.index)
                                     : switch_mac(node.index, topology_.port_of(link, end)->index());
}

Result<> Capture::add(std::string_view name) {
  const TopologyPlan& plan = topology_.plan();
  const auto numbers = link_ports(plan);
  for (std::size_t link = 0; link < plan.links.size(); ++link) {
    for (std::size_t end = 0; end < 2; ++end) {
      if (port_name(plan, plan.links[link].ends[end], numbers[link][end]) != name) continue;
      Port* port = topology_.port_of(link, end);
      const auto is_its = [&](const Tap& tap) { return &tap.port == port; };
      if (port == nullptr || std::any_of(taps_.begin(), taps_.end(), is_its)) {
        return fail(ErrorCode::invalid_argument, ErrorScope::operation,
                    "capture: that port is captured already, or has no host yet");
      }
      Tap& tap = taps_.emplace_back(*this, *port, writer_->add_interface(name, port->rate()));
      tap.own = mac_of(link, end);
      tap.peer = mac_of(link, 1 - end);
      port->set_tap(&tap);
      return {};
    }
  }
  return fail(ErrorCode::invalid_argument, ErrorScope::operation,
              "capture: no such port; give host<n>, or <switch>:<port>");
}

void Capture::Tap::on_frame(const Port& /*port*/, Direction direction, const Frame& frame) {
  std::array<std::byte, kCapturedBytesMax> bytes;
  const std::size_t size = write_frame(frame, direction == Direction::sent ? own : peer, bytes);
  capture.writer_->write(interface, capture.engine_.now(), direction, std::span(bytes).first(size));
}

}  // namespace bx::sim
