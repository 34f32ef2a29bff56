// SPDX-License-Identifier: BSD-3-Clause
// The steps of a message that are measured by themselves.
#pragma once

#include <bx/bx.h>

#include <cstdint>

#include "libbx/core/credits.h"

namespace bench {

// Both ends of one lane's credits in one direction.
struct Credits {
  bx::core::CreditLedger ledger{16};
  bx::core::CreditIssuer issuer{16};
};

// All that one message does to the credits of its direction: it takes one, arrives, its receive is posted
// again, and a message back tells of it. False if the protocol was broken.
inline bool update(Credits& credits) noexcept {
  credits.ledger.consume();
  const bool received = credits.issuer.on_received();
  credits.issuer.on_reposted();
  const auto notice = credits.issuer.notice();
  return received && credits.ledger.on_grant(notice.credit_grant, 16) &&
         credits.issuer.on_control_ack(notice.control_ack);
}

// One piece of registered memory and back.
inline void allocate_and_free(bx::Worker& worker) noexcept {
  const auto buffer = worker.allocate(64);
  if (!buffer) __builtin_trap();
}

}  // namespace bench
