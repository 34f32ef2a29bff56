// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/verbs_queue_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "libbx/base/check.h"
#include "libbx/base/path_mtu.h"
#include "libbx/providers/verbs/verbs_queues.h"
#include "libbx/providers/verbs/verbs_values.h"

namespace bx::verbs {
namespace {

using fabric::Opcode;
using fabric::SendFlags;
using fabric::SendWr;
using fabric::WrId;

constexpr std::uint8_t kHopLimit = 255;

}  // namespace

VerbsQueuePair::VerbsQueuePair(VerbsDevice& device, Handle<ibv_qp> qp, const fabric::QpConfig& config)
    : device_(device),
      send_cq_(static_cast<VerbsCq*>(config.send_cq)),
      recv_cq_(static_cast<VerbsCq*>(config.recv_cq)),
      srq_(static_cast<VerbsSrq*>(config.srq)),
      qp_(std::move(qp)),
      tag_(device.owners().add(this, false)),
      depth_(config.send_depth),
      sges_max_(config.sges_max),
      inline_max_(config.inline_max),
      mask_(std::bit_ceil(config.send_depth) - 1),
      ids_(mask_ + 1) {
  address_ = {.gid = device.port().gid.gid, .qp = fabric::QpNum{qp_->qp_num}, .psn = device.random_psn()};
  device_.add(*this);
  device_.add_object();
  send_cq_->add_user();
  recv_cq_->add_user();
  srq_->add_user();
}

VerbsQueuePair::~VerbsQueuePair() {
  device_.remove(*this);
  qp_.reset();
  send_cq_->forget(address_.qp);
  device_.owners().remove(tag_);
  send_cq_->remove_user();
  recv_cq_->remove_user();
  srq_->remove_user();
  if (refused_) device_.remove_refused();
  device_.remove_object();
}

Result<> VerbsQueuePair::check(const fabric::PathConfig& path) const {
  const auto invalid = [](const char* detail) {
    return bx::fail(ErrorCode::invalid_argument, ErrorScope::operation, detail);
  };
  if (state_ == State::failed) {
    return bx::fail(ErrorCode::device, ErrorScope::queue_pair, "the queue pair has failed");
  }
  if (state_ == State::connected) return invalid("the queue pair is connected already");
  const fabric::DeviceCaps& caps = device_.caps();
  if (!is_path_mtu(path.mtu_bytes)) return invalid("path MTU: 256, 512, 1024, 2048 or 4096");
  if (path.mtu_bytes > caps.mtu_max) {
    return invalid("path MTU above what the port can carry: raise the interface's MTU or lower path.mtu");
  }
  if (path.ack_timeout > 31) return invalid("local ACK timeout: 0 to 31");
  if (path.retry_cnt > 7) return invalid("retry count: 0 to 7");
  if (path.rnr_retry > 7) return invalid("RNR retry count: 0 to 7");
  if (path.min_rnr_timer > 31) return invalid("RNR timer code: 0 to 31");
  if (path.rd_atomic_max > caps.rd_atomic_max || path.rd_atomic_dest_max > caps.rd_atomic_max) {
    return invalid("more outstanding READs than the device can have");
  }
  return {};
}

Result<> VerbsQueuePair::connect(const fabric::QpAddress& peer, const fabric::PathConfig& path) {
  if (auto checked = check(path); !checked) return checked;
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = mtu_of(path.mtu_bytes);
  to.dest_qp_num = static_cast<std::uint32_t>(peer.qp);
  to.rq_psn = peer.psn;
  to.max_dest_rd_atomic = path.rd_atomic_dest_max;
  to.min_rnr_timer = path.min_rnr_timer;
  to.ah_attr.is_global = 1;
  std::memcpy(to.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  to.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device_.port().gid.index);
  to.ah_attr.grh.hop_limit = kHopLimit;
  to.ah_attr.grh.traffic_class = path.traffic_class;
  to.ah_attr.sl = device_.service_level();
  to.ah_attr.port_num = device_.port().port;
  constexpr int kToReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr int kToSend = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  int error = ::ibv_modify_qp(qp_.get(), &to, kToReceive);
  if (error == 0) {
    to = {};
    to.qp_state = IBV_QPS_RTS;
    to.sq_psn = address_.psn;
    to.timeout = path.ack_timeout;
    to.retry_cnt = device_.soft_roce() ? std::min<std::uint8_t>(path.retry_cnt, 6) : path.retry_cnt;
    to.rnr_retry = path.rnr_retry;
    to.max_rd_atomic = path.rd_atomic_max;
    error = ::ibv_modify_qp(qp_.get(), &to, kToSend);
  }
  if (error != 0) {
    const bool no_way = error == ETIMEDOUT || error == ENETUNREACH || error == EHOSTUNREACH;
    return bx::fail(no_way ? ErrorCode::unreachable : ErrorCode::device, ErrorScope::queue_pair,
                    "the queue pair could not be connected: is there a route to the peer's address?", error);
  }
  state_ = State::connected;
  return {};
}

std::uint64_t VerbsQueuePair::length_of(const SendWr& request) const noexcept {
  BX_CHECK(request.sges.size() <= sges_max_, "more elements than the queue pair was made for");
  std::uint64_t bytes = 0;
  for (const fabric::Sge& sge : request.sges) bytes += sge.length;
  BX_CHECK(!has(request.flags, SendFlags::inlined) || bytes <= inline_max_,
           "more inline bytes than the queue pair was made for");
  return bytes;
}

// What verbs end as a local length error (IBA 1.4, 11.6.2), and not every driver looks at.
bool VerbsQueuePair::length_is_legal(const SendWr& request) const noexcept {
  const std::uint64_t bytes = length_of(request);
  const bool atomic = request.opcode == Opcode::fetch_add || request.opcode == Opcode::cmp_swap;
  return atomic ? bytes == sizeof(std::uint64_t) : bytes <= device_.caps().message_bytes_max;
}

ibv_send_wr VerbsQueuePair::translate(const SendWr& request, std::uint32_t number) const noexcept {
  Tag tag = tag_;
  tag.number = number;
  ibv_send_wr wr{};
  wr.wr_id = tag.pack();
  wr.sg_list = as_ibv(request.sges);
  wr.num_sge = static_cast<int>(request.sges.size());
  wr.opcode = to_ibv(request.opcode);
  wr.send_flags = to_ibv(request.flags);
  wr.imm_data = htonl(request.imm);
  if (request.opcode == Opcode::fetch_add || request.opcode == Opcode::cmp_swap) {
    wr.wr.atomic = {.remote_addr = request.remote.addr,
                    .compare_add = request.compare_add,
                    .swap = request.swap,
                    .rkey = static_cast<std::uint32_t>(request.remote.rkey)};
  } else {
    wr.wr.rdma = {.remote_addr = request.remote.addr,
                  .rkey = static_cast<std::uint32_t>(request.remote.rkey)};
  }
  return wr;
}

std::size_t VerbsQueuePair::post_send(std::span<const SendWr> requests) noexcept {
  BX_CHECK(state_ != State::unconnected, "a request was posted before connect()");
  std::size_t accepted = 0;
  while (accepted < requests.size()) {
    const auto rest = requests.subspan(accepted);
    const std::size_t taken = refused_ ? keep_refused(rest) : post_batch(rest);
    accepted += taken;
    if (taken == 0 && (!refused_ || next_ - oldest_ == depth_)) break;
  }
  return accepted;
}

std::size_t VerbsQueuePair::post_batch(std::span<const SendWr> requests) noexcept {
  constexpr std::size_t kBatch = 16;
  std::array<ibv_send_wr, kBatch> batch;
  const std::size_t room = depth_ - (next_ - oldest_);
  const std::size_t wish = std::min({requests.size(), kBatch, room});
  std::size_t count = 0;
  bool bad_length = false;
  while (count < wish) {
    const SendWr& request = requests[count];
    bad_length = !length_is_legal(request);
    if (bad_length) break;
    const auto number = next_ + static_cast<std::uint32_t>(count);
    batch[count] = translate(request, number);
    ids_[number & mask_] = request.wr_id;
    if (count > 0) batch[count - 1].next = &batch[count];
    ++count;
  }
  ibv_send_wr* bad = nullptr;
  const int error = count > 0 ? ::ibv_post_send(qp_.get(), batch.data(), &bad) : 0;
  const std::size_t taken = error == 0 ? count : static_cast<std::size_t>(bad - batch.data());
  next_ += static_cast<std::uint32_t>(taken);
  if (error == 0 && bad_length) refuse(fabric::WcStatus::local_length);
  if (error != 0 && error != ENOMEM && error != EAGAIN) refuse(fabric::WcStatus::local_qp_operation);
  return taken;
}

void VerbsQueuePair::refuse(fabric::WcStatus status) noexcept {
  fail();
  refused_ = true;
  refusal_ = status;
  refused_from_ = next_;
  device_.add_refused();
}

std::size_t VerbsQueuePair::keep_refused(std::span<const SendWr> requests) noexcept {
  const std::size_t count = std::min<std::size_t>(requests.size(), depth_ - (next_ - oldest_));
  for (const SendWr& request : requests.first(count)) ids_[next_++ & mask_] = request.wr_id;
  return count;
}

std::size_t VerbsQueuePair::take_refused(std::span<fabric::Completion> out) noexcept {
  if (oldest_ - refused_from_ > depth_) return 0;  // the device has some yet
  std::size_t count = 0;
  while (count < out.size() && oldest_ != next_) {
    out[count++] = {.wr_id = ids_[oldest_ & mask_], .qp = address_.qp, .status = refusal_};
    refusal_ = fabric::WcStatus::flushed;
    ++oldest_;
  }
  return count;
}

void VerbsQueuePair::fail() noexcept {
  if (state_ == State::failed) return;
  state_ = State::failed;
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_ERR;
  ::ibv_modify_qp(qp_.get(), &to, IBV_QP_STATE);
}

WrId VerbsQueuePair::retire(std::uint32_t number) noexcept {
  BX_CHECK(number - oldest_ < next_ - oldest_, "a request completed twice");
  oldest_ = number + 1;
  return ids_[number & mask_];
}

}  // namespace bx::verbs
