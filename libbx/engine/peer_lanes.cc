// SPDX-License-Identifier: BSD-3-Clause
// The lanes of a peer: how many, made, agreed upon with the other end, connected.
#include "libbx/engine/worker.h"

namespace bx::engine {

Worker::LaneCounts Worker::lanes_wanted() const noexcept {
  return {static_cast<std::uint32_t>(config_.lanes_per_peer), config_.lanes_control != 0};
}

Result<> Worker::make_lane(Peer& peer, std::uint32_t number) {
  auto lane = Lane::create(device_, *arena_, *cq_, receives_->queue(), peer.index,
                           {.depth = static_cast<std::uint32_t>(config_.send_depth),
                            .inline_max = limits_.inline_max,
                            .batch_max = static_cast<std::uint32_t>(config_.coalesce_max),
                            .control_reserve = static_cast<std::uint32_t>(config_.send_control_reserve),
                            .parts_max = limits_.parts_max,
                            .lane = number});
  if (!lane) return tl::unexpected<Error>(lane.error());
  peer.lanes[number].lane = std::move(*lane);
  return {};
}

// One that was never used, or has drained.
void Worker::drop_lane(PeerLane& lane) noexcept {
  peer_of_qp_.erase(lane.lane->qp().address().qp);
  lane = {};
}

// As many lanes as both ends have. An acceptor has made no more than the opener's; an opener lets go of those
// that the acceptor did not take.
Result<> Worker::settle_lanes(Peer& peer, const wire::Hello& hello) {
  const auto data = static_cast<std::uint32_t>(hello.more_lanes.count) + 1;
  const bool control = hello.control_lane.qp != 0;
  const bool opener = peer.service == nullptr;
  if (opener && (data > peer.data_lanes || (control && !peer.has_control_lane()))) {
    return fail(ErrorCode::protocol, ErrorScope::session, "the peer took more lanes than it was offered");
  }
  if (!opener) return {};
  if (peer.has_control_lane() && !control) drop_lane(peer.lanes[--peer.lane_count]);
  while (peer.data_lanes > data) {
    const std::uint32_t last = --peer.data_lanes;
    drop_lane(peer.lanes[last]);
    if (--peer.lane_count == last) continue;
    peer.lanes[last] = std::move(peer.lanes[last + 1]);  // the control lane comes after those for data
    peer.lanes[last].lane->set_number(peer.index, last);
  }
  return {};
}

Result<> Worker::connect_lane(Peer& peer, PeerLane& lane, const fabric::QpAddress& to,
                              std::uint8_t traffic_class) {
  lane.remote = to;
  return lane.lane->qp().connect(to, {.mtu_bytes = peer.mtu_bytes,
                                      .ack_timeout = static_cast<std::uint8_t>(config_.path_ack_timeout),
                                      .retry_cnt = static_cast<std::uint8_t>(config_.path_retry_cnt),
                                      .rnr_retry = static_cast<std::uint8_t>(config_.path_rnr_retry),
                                      .min_rnr_timer = static_cast<std::uint8_t>(config_.path_min_rnr_timer),
                                      .rd_atomic_max = static_cast<std::uint8_t>(peer.reads_max),
                                      .rd_atomic_dest_max = static_cast<std::uint8_t>(limits_.reads_max),
                                      .traffic_class = traffic_class});
}

}  // namespace bx::engine
