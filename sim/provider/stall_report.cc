// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/stall_report.h"

#include "sim/model/pause_graph.h"

namespace bx::sim {
namespace {

constexpr std::size_t kPauseLinesMax = 16;
constexpr std::size_t kQueuePairLinesMax = 32;

std::string line_of(std::size_t host, RcQueuePair& qp) {
  return "host" + std::to_string(host) + " qp " + std::to_string(qp.number()) + " to host" +
         std::to_string(qp.path().peer_host) + " qp " + std::to_string(qp.path().peer_qp) + ": " +
         std::string(to_string(qp.state())) + ", " + std::to_string(qp.requester().outstanding()) +
         " send requests outstanding, timer " + (qp.requester().timer_armed() ? "armed" : "off") +
         (qp.requester().linked() ? ", has packets to send" : "") +
         (qp.responder().busy() ? ", owes answers" : "");
}

}  // namespace

std::uint64_t network_progress(const SimNetwork& network) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < network.nics(); ++i) {
    const NicCounters& c = network.nic_at(i).counters();
    sum += c.payload_bytes_delivered + c.timeouts + c.completions + c.queue_pairs_failed;
  }
  return sum;
}

std::vector<std::string> describe_stall(const SimNetwork& network) {
  std::vector<std::string> lines =
      describe(find_pauses(network.topology(), network.engine().now()), kPauseLinesMax);
  std::size_t queue_pairs = 0;
  for (std::size_t i = 0; i < network.nics(); ++i) {
    const Nic& nic = network.nic_at(i);
    nic.for_each_qp([&](RcQueuePair& qp) {
      if (qp.requester().outstanding() == 0 && !qp.responder().busy()) return;
      if (++queue_pairs <= kQueuePairLinesMax) lines.push_back(line_of(nic.host(qp.port()), qp));
    });
  }
  if (queue_pairs > kQueuePairLinesMax) {
    lines.push_back("and " + std::to_string(queue_pairs - kQueuePairLinesMax) +
                    " more queue pairs with something outstanding");
  }
  return lines;
}

}  // namespace bx::sim
