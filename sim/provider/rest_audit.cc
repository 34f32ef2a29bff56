// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/rest_audit.h"

#include "sim/model/pause_graph.h"

namespace bx::sim {
namespace {

class RestAudit {
 public:
  explicit RestAudit(std::vector<std::string>& breaches) : breaches_(breaches) {}
  ~RestAudit() {
    if (lines_ > kRestLinesMax) {
      breaches_.push_back("and " + std::to_string(lines_ - kRestLinesMax) + " more things held at rest");
    }
  }
  RestAudit(const RestAudit&) = delete;
  RestAudit& operator=(const RestAudit&) = delete;

  void look_at(const std::string& name, Switch& fabric) {
    const SharedBuffer& buffer = fabric.buffer();
    for (std::uint16_t port = 0; port < fabric.ports(); ++port) {
      for (std::uint8_t p = 0; p < kPriorities; ++p) {
        look_at_ingress(buffer, name, port, p);
        const std::uint64_t queued = fabric.queue(port, p).bytes;
        if (queued != 0) say(place(name, port, p) + std::to_string(queued) + " bytes in its egress queue");
      }
    }
    const std::uint64_t pools = buffer.shared_used_bytes() + buffer.headroom_used_bytes();
    if (buffer.used_bytes() == 0 && pools == 0) return;
    say("switch " + name + ": " + std::to_string(buffer.used_bytes()) + " bytes of its buffer in use, " +
        std::to_string(buffer.shared_used_bytes()) + " of the shared pool and " +
        std::to_string(buffer.headroom_used_bytes()) + " of headroom");
  }

  void look_at_pauses(const SimNetwork& network) {
    for (const std::string& line :
         describe(find_pauses(network.topology(), network.engine().now()), kRestLinesMax)) {
      say("a pause has not ended: " + line);
    }
  }

  void say(std::string line) {
    if (++lines_ <= kRestLinesMax) breaches_.push_back(std::move(line));
  }

 private:
  static std::string place(const std::string& name, std::uint16_t port, std::uint8_t priority) {
    return "switch " + name + " port " + std::to_string(port) + " priority " + std::to_string(priority) +
           ": ";
  }

  void look_at_ingress(const SharedBuffer& buffer, const std::string& name, std::uint16_t port,
                       std::uint8_t priority) {
    const std::uint64_t used = buffer.used_bytes(port, priority);
    if (used == 0 && !buffer.xoff(port, priority)) return;
    std::string line = place(name, port, priority) + std::to_string(used) + " bytes of buffer (" +
                       std::to_string(buffer.headroom_bytes(port, priority)) +
                       " of headroom) never given back";
    if (buffer.xoff(port, priority)) line += ", and still in XOFF";
    say(std::move(line));
  }

  std::vector<std::string>& breaches_;
  std::size_t lines_ = 0;
};

}  // namespace

void audit_rest(SimNetwork& network, std::vector<std::string>& breaches) {
  RestAudit audit(breaches);
  Topology& topology = network.topology();
  for (std::size_t i = 0; i < topology.switches(); ++i) {
    audit.look_at(topology.plan().switches[i], topology.switch_at(i));
  }
  audit.look_at_pauses(network);
  if (const std::size_t payloads = network.frames().payloads_in_use(); payloads != 0) {
    audit.say(std::to_string(payloads) + " payloads in use that no frame has");
  }
}

}  // namespace bx::sim
