// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/sim_queue_pair.h"

#include "libbx/base/check.h"
#include "sim/provider/host_address.h"
#include "sim/provider/sim_device.h"
#include "sim/provider/translate.h"

namespace bx::sim {

SimQueuePair::SimQueuePair(SimDevice& device, RcQueuePair& model, const fabric::QpAddress& address) noexcept
    : device_(device), model_(model), address_(address) {
  device_.add_object();
}

SimQueuePair::~SimQueuePair() {
  device_.nic().destroy(model_);
  device_.remove_object();
}

Result<> SimQueuePair::connect(const fabric::QpAddress& peer, const fabric::PathConfig& path) {
  if (path.mtu_bytes > device_.caps().mtu_max) {
    return bx::fail(ErrorCode::invalid_argument, ErrorScope::queue_pair,
                    "the path MTU is above the device's active MTU");
  }
  if (path.rd_atomic_max > device_.caps().rd_atomic_max ||
      path.rd_atomic_dest_max > device_.caps().rd_atomic_max) {
    return bx::fail(ErrorCode::invalid_argument, ErrorScope::queue_pair,
                    "more READs and atomics than the device holds");
  }
  if (model_.state() == QpState::error) {
    return bx::fail(ErrorCode::device, ErrorScope::queue_pair, "the queue pair has failed");
  }
  const Result<> receiving = model_.to_ready_to_receive({
      .peer_host = host_of(peer.gid),
      .peer_qp = static_cast<std::uint32_t>(peer.qp),
      .send_psn = address_.psn,
      .receive_psn = peer.psn,
      .mtu = path.mtu_bytes,
      .ack_timeout = path.ack_timeout,
      .retry_cnt = path.retry_cnt,
      .rnr_retry = path.rnr_retry,
      .min_rnr_timer = path.min_rnr_timer,
      .rd_atomic_max = path.rd_atomic_max,
      .rd_atomic_dest_max = path.rd_atomic_dest_max,
      .traffic_class = path.traffic_class,
  });
  if (!receiving) return receiving;
  return model_.to_ready_to_send();
}

std::size_t SimQueuePair::post_send(std::span<const fabric::SendWr> requests) noexcept {
  std::size_t count = 0;
  for (const fabric::SendWr& request : requests) {
    const SegmentArray segments(request.sges);
    const SendRequest translated = translate(request, segments);
    const Result<std::size_t> posted = model_.post_send({&translated, 1});
    BX_CHECK(posted.has_value(), "a send was posted to a queue pair before connect()");
    if (*posted == 0) break;
    ++count;
  }
  if (count > 0) device_.reactor().ring(*this);
  return count;
}

void SimQueuePair::on_doorbell() noexcept {
  device_.nic().ring(model_);
}

}  // namespace bx::sim
