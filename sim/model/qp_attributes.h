// SPDX-License-Identifier: GPL-2.0-only
// What modify and query of a reliable connected queue pair speak of: its states, its attributes with the bit
// of each (those of enum ibv_qp_attr_mask), and which attributes each transition demands, allows and refuses.
//
// The table is that of IBA 1.4, 11.2.5.3 (table 91), as Linux enforces it for RC in ib_modify_qp_is_ok. What
// it allows and RoCE has not (an alternate path) is refused by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/model/memory_table.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

// Names are those of ibv_modify_qp(3) without IBV_QP_.
enum class QpAttr : std::uint32_t {
  none = 0,
  state = 1U << 0U,
  cur_state = 1U << 1U,
  en_sqd_async_notify = 1U << 2U,
  access_flags = 1U << 3U,
  pkey_index = 1U << 4U,
  port = 1U << 5U,
  qkey = 1U << 6U,
  av = 1U << 7U,
  path_mtu = 1U << 8U,
  timeout = 1U << 9U,
  retry_cnt = 1U << 10U,
  rnr_retry = 1U << 11U,
  rq_psn = 1U << 12U,
  max_qp_rd_atomic = 1U << 13U,
  alt_path = 1U << 14U,
  min_rnr_timer = 1U << 15U,
  sq_psn = 1U << 16U,
  max_dest_rd_atomic = 1U << 17U,
  path_mig_state = 1U << 18U,
  cap = 1U << 19U,
  dest_qpn = 1U << 20U,
  rate_limit = 1U << 25U,
};
constexpr QpAttr operator|(QpAttr a, QpAttr b) noexcept {
  return static_cast<QpAttr>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr QpAttr operator&(QpAttr a, QpAttr b) noexcept {
  return static_cast<QpAttr>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr QpAttr without(QpAttr a, QpAttr b) noexcept {
  return static_cast<QpAttr>(static_cast<std::uint32_t>(a) & ~static_cast<std::uint32_t>(b));
}
constexpr bool any(QpAttr a) noexcept {
  return a != QpAttr::none;
}

// RoCE has no automatic path migration: a queue pair is always MIGRATED (IBA 1.4, 17.2.8).
enum class PathMigration : std::uint8_t { migrated, rearm, armed };

struct QpAttributes {
  QpState state = QpState::reset;
  QpState cur_state = QpState::reset;
  bool en_sqd_async_notify = false;
  bool sq_draining = false;      // query only: in SQD, messages that had begun are not acknowledged yet
  MemoryAccess access{};         // what the peer may do: remote_read, remote_write, remote_atomic
  std::uint16_t pkey_index = 0;  // there is one partition key, 0xffff
  std::uint8_t port = 1;
  PathMigration path_migration = PathMigration::migrated;
  RcPath path{};  // av: peer_host and traffic_class; path_mtu, timeout and so on: what their names say
};

enum class QpFault : std::uint8_t {
  no_such_transition,  // whatever the attributes
  missing,             // the transition demands the attribute
  not_allowed,         // the transition refuses the attribute
  out_of_range,        // the attribute's value
  wrong_state,         // cur_state is not the present state
  draining,            // SQD is left, or changed in, only when the queue is drained
  not_on_roce,         // alternate paths, migration
};

// Why modify() refused: nothing has changed.
struct QpRefusal {
  QpFault fault = QpFault::no_such_transition;
  QpAttr attribute = QpAttr::none;  // one bit: the lowest that is at fault; none for a transition
  QpState from = QpState::reset;
  QpState to = QpState::reset;
  friend bool operator==(const QpRefusal&, const QpRefusal&) = default;
};

[[nodiscard]] std::string_view to_string(QpState state) noexcept;     // as in the standard: "RTR"
[[nodiscard]] std::string_view to_string(QpAttr attribute) noexcept;  // of one bit: "IBV_QP_AV"
[[nodiscard]] std::string to_string(const QpRefusal& refusal);

// What a transition demands and what else it allows, without `state` and `cur_state`'s own rule.
struct QpTransition {
  bool valid = false;
  QpAttr required = QpAttr::none;
  QpAttr optional = QpAttr::none;
};
[[nodiscard]] const QpTransition& transition(QpState from, QpState to) noexcept;

// Nothing if `given` suits the transition; else the refusal: first a missing attribute, then one too many.
[[nodiscard]] std::optional<QpRefusal> check_mask(QpState from, QpState to, QpAttr given) noexcept;
// Whether the values of the attributes in `given` are in range. `ports` is how many ports the NIC has.
[[nodiscard]] std::optional<QpRefusal> check_values(QpState from, QpState to, QpAttr given,
                                                    const QpAttributes& values, std::uint8_t ports) noexcept;
// Copies the attributes in `given`, bar the state, from `values` to `to`.
void apply(QpAttr given, const QpAttributes& values, QpAttributes& to) noexcept;

}  // namespace bx::sim
