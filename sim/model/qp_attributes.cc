// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/qp_attributes.h"

#include <array>
#include <bit>
#include <utility>

#include "libbx/base/path_mtu.h"
#include "sim/model/psn.h"
#include "sim/model/rc_responder.h"

namespace bx::sim {
namespace {

constexpr std::size_t kStates = 7;
using A = QpAttr;

// What may change whenever both ends run.
constexpr A kLive = A::access_flags | A::alt_path | A::path_mig_state | A::min_rnr_timer;
constexpr QpTransition kFree{true, A::none, A::none};
constexpr QpTransition kNever{};

// RESET -> ERR is not there: Linux refuses what the standard allows from every state. Rows: the present
// state; columns: the next one; both RESET, INIT, RTR, RTS, SQD, SQE, ERR.
constexpr std::array<std::array<QpTransition, kStates>, kStates> kTable{{
    {{kFree,
      {true, A::pkey_index | A::port | A::access_flags, A::none},
      kNever,
      kNever,
      kNever,
      kNever,
      kNever}},
    {{kFree,
      {true, A::none, A::pkey_index | A::port | A::access_flags},
      {true, A::av | A::path_mtu | A::dest_qpn | A::rq_psn | A::max_dest_rd_atomic | A::min_rnr_timer,
       A::alt_path | A::access_flags | A::pkey_index},
      kNever,
      kNever,
      kNever,
      kFree}},
    {{kFree,
      kNever,
      kNever,
      {true, A::timeout | A::retry_cnt | A::rnr_retry | A::sq_psn | A::max_qp_rd_atomic,
       kLive | A::cur_state},
      kNever,
      kNever,
      kFree}},
    {{kFree,
      kNever,
      kNever,
      {true, A::none, kLive | A::cur_state},
      {true, A::none, A::en_sqd_async_notify},
      kNever,
      kFree}},
    {{kFree,
      kNever,
      kNever,
      {true, A::none, kLive | A::cur_state},
      {true, A::none,
       kLive | A::port | A::av | A::timeout | A::retry_cnt | A::rnr_retry | A::max_qp_rd_atomic |
           A::max_dest_rd_atomic | A::pkey_index},
      kNever,
      kFree}},
    // No transition leads to SQE: in RC every send error leads to ERR (IBA 1.4, 10.3.1.6).
    {{kFree, kNever, kNever, {true, A::none, A::none}, kNever, kNever, kFree}},
    {{kFree, kNever, kNever, kNever, kNever, kNever, kFree}},
}};

constexpr std::array<std::string_view, kStates> kStateNames{"RESET", "INIT", "RTR", "RTS",
                                                            "SQD",   "SQE",  "ERR"};
constexpr std::array<std::string_view, 21> kAttrNames{"IBV_QP_STATE",
                                                      "IBV_QP_CUR_STATE",
                                                      "IBV_QP_EN_SQD_ASYNC_NOTIFY",
                                                      "IBV_QP_ACCESS_FLAGS",
                                                      "IBV_QP_PKEY_INDEX",
                                                      "IBV_QP_PORT",
                                                      "IBV_QP_QKEY",
                                                      "IBV_QP_AV",
                                                      "IBV_QP_PATH_MTU",
                                                      "IBV_QP_TIMEOUT",
                                                      "IBV_QP_RETRY_CNT",
                                                      "IBV_QP_RNR_RETRY",
                                                      "IBV_QP_RQ_PSN",
                                                      "IBV_QP_MAX_QP_RD_ATOMIC",
                                                      "IBV_QP_ALT_PATH",
                                                      "IBV_QP_MIN_RNR_TIMER",
                                                      "IBV_QP_SQ_PSN",
                                                      "IBV_QP_MAX_DEST_RD_ATOMIC",
                                                      "IBV_QP_PATH_MIG_STATE",
                                                      "IBV_QP_CAP",
                                                      "IBV_QP_DEST_QPN"};

constexpr std::size_t index_of(QpState state) noexcept {
  return static_cast<std::size_t>(state);
}

constexpr QpAttr lowest(QpAttr attributes) noexcept {
  const auto bits = static_cast<std::uint32_t>(attributes);
  return static_cast<QpAttr>(bits & (~bits + 1));
}

std::string_view range_of(QpAttr attribute) noexcept {
  switch (attribute) {
    case A::path_mtu:
      return "256, 512, 1024, 2048 or 4096";
    case A::timeout:
    case A::min_rnr_timer:
      return "0 to 31";
    case A::retry_cnt:
    case A::rnr_retry:
      return "0 to 7";
    case A::max_qp_rd_atomic:
    case A::max_dest_rd_atomic:
      return "0 to 128";
    case A::rq_psn:
    case A::sq_psn:
    case A::dest_qpn:
      return "24 bits";
    case A::port:
      return "1 to the number of ports of the NIC";
    case A::pkey_index:
      return "0, the only partition key";
    case A::access_flags:
      return "a combination of remote read, remote write, remote atomic and local write";
    default:
      return "";
  }
}

}  // namespace

std::string_view to_string(QpState state) noexcept {
  return kStateNames[index_of(state)];
}

std::string_view to_string(QpAttr attribute) noexcept {
  if (attribute == A::rate_limit) return "IBV_QP_RATE_LIMIT";
  const auto bit = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(attribute)));
  return bit < kAttrNames.size() ? kAttrNames[bit] : "an unknown attribute";
}

std::string to_string(const QpRefusal& refusal) {
  std::string text = std::string(to_string(refusal.from)) + " -> " + std::string(to_string(refusal.to));
  const std::string name(to_string(refusal.attribute));
  switch (refusal.fault) {
    case QpFault::no_such_transition:
      return text + " is no transition of an RC queue pair";
    case QpFault::missing:
      return text + " needs " + name;
    case QpFault::not_allowed:
      return text + " does not take " + name;
    case QpFault::out_of_range:
      return text + ": the value of " + name + " must be " + std::string(range_of(refusal.attribute));
    case QpFault::wrong_state:
      return text + ": IBV_QP_CUR_STATE is not the present state";
    case QpFault::draining:
      return text + ": the send queue still drains; wait for IBV_EVENT_SQ_DRAINED";
    case QpFault::not_on_roce:
      return text + ": RoCE has no alternate paths, so leave " + name + " out";
  }
  return text;
}

const QpTransition& transition(QpState from, QpState to) noexcept {
  return kTable[index_of(from)][index_of(to)];
}

std::optional<QpRefusal> check_mask(QpState from, QpState to, QpAttr given) noexcept {
  const QpTransition& rule = transition(from, to);
  if (!rule.valid) return QpRefusal{QpFault::no_such_transition, A::none, from, to};
  const QpAttr missing = without(rule.required, given);
  if (any(missing)) return QpRefusal{QpFault::missing, lowest(missing), from, to};
  const QpAttr extra = without(given, rule.required | rule.optional | A::state);
  if (any(extra)) return QpRefusal{QpFault::not_allowed, lowest(extra), from, to};
  return std::nullopt;
}

std::optional<QpRefusal> check_values(QpState from, QpState to, QpAttr given, const QpAttributes& values,
                                      std::uint8_t ports) noexcept {
  const RcPath& path = values.path;
  constexpr std::uint32_t kReads = RcResponder::kReadsMax;
  constexpr auto kAccessMax = static_cast<unsigned>(MemoryAccess::local_write | MemoryAccess::remote_read |
                                                    MemoryAccess::remote_write | MemoryAccess::remote_atomic);
  const std::pair<QpAttr, bool> checks[] = {
      {A::access_flags, static_cast<unsigned>(values.access) <= kAccessMax},
      {A::pkey_index, values.pkey_index == 0},
      {A::port, values.port >= 1 && values.port <= ports},
      {A::path_mtu, is_path_mtu(path.mtu)},
      {A::timeout, path.ack_timeout <= 31},
      {A::retry_cnt, path.retry_cnt <= 7},
      {A::rnr_retry, path.rnr_retry <= 7},
      {A::rq_psn, path.receive_psn <= kPsnMask},
      {A::max_qp_rd_atomic, path.rd_atomic_max <= kReads},
      {A::min_rnr_timer, path.min_rnr_timer <= 31},
      {A::sq_psn, path.send_psn <= kPsnMask},
      {A::max_dest_rd_atomic, path.rd_atomic_dest_max <= kReads},
      {A::dest_qpn, path.peer_qp <= kPsnMask},
  };
  for (const auto& [attribute, is_legal] : checks) {
    if (any(given & attribute) && !is_legal) return QpRefusal{QpFault::out_of_range, attribute, from, to};
  }
  if (any(given & A::alt_path)) return QpRefusal{QpFault::not_on_roce, A::alt_path, from, to};
  if (any(given & A::path_mig_state) && values.path_migration != PathMigration::migrated) {
    return QpRefusal{QpFault::not_on_roce, A::path_mig_state, from, to};
  }
  return std::nullopt;
}

void apply(QpAttr given, const QpAttributes& values, QpAttributes& to) noexcept {
  const RcPath& path = values.path;
  const auto has = [&](QpAttr attribute) { return any(given & attribute); };
  if (has(A::en_sqd_async_notify)) to.en_sqd_async_notify = values.en_sqd_async_notify;
  if (has(A::access_flags)) to.access = values.access;
  if (has(A::pkey_index)) to.pkey_index = values.pkey_index;
  if (has(A::port)) to.port = values.port;
  if (has(A::av)) {
    to.path.peer_host = path.peer_host;
    to.path.traffic_class = path.traffic_class;
  }
  if (has(A::path_mtu)) to.path.mtu = path.mtu;
  if (has(A::timeout)) to.path.ack_timeout = path.ack_timeout;
  if (has(A::retry_cnt)) to.path.retry_cnt = path.retry_cnt;
  if (has(A::rnr_retry)) to.path.rnr_retry = path.rnr_retry;
  if (has(A::rq_psn)) to.path.receive_psn = path.receive_psn;
  if (has(A::max_qp_rd_atomic)) to.path.rd_atomic_max = path.rd_atomic_max;
  if (has(A::min_rnr_timer)) to.path.min_rnr_timer = path.min_rnr_timer;
  if (has(A::sq_psn)) to.path.send_psn = path.send_psn;
  if (has(A::max_dest_rd_atomic)) to.path.rd_atomic_dest_max = path.rd_atomic_dest_max;
  if (has(A::dest_qpn)) to.path.peer_qp = path.peer_qp;
}

}  // namespace bx::sim
