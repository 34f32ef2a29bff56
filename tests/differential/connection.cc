// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/connection.h"

namespace bx::differential {
namespace {

constexpr std::uint8_t kForEver = 7;

}  // namespace

Connect make_connect(Prng& random, bool for_device, std::size_t which, Connection& c) {
  c = {.exists = true,
       .alive = {true, true},
       .patient = random.chance(0.5),
       .one_cq = random.chance(0.3),
       .send_depth = static_cast<std::uint32_t>(random.between(1, 16)),
       .waits_for_ever = random.chance(0.25),
       .srq = {static_cast<std::uint8_t>(random.below(kSrqs)),
               static_cast<std::uint8_t>(random.below(kSrqs))}};
  constexpr std::array<std::uint32_t, 3> kMtus{256, 512, 1024};
  fabric::PathConfig path{
      .mtu_bytes = kMtus[random.below(kMtus.size())],
      .ack_timeout = 17,
      .retry_cnt = 6,
      .rnr_retry = c.waits_for_ever ? kForEver : static_cast<std::uint8_t>(random.below(4)),
      .min_rnr_timer = static_cast<std::uint8_t>(random.between(1, 8)),
      .rd_atomic_max = static_cast<std::uint8_t>(random.between(1, 4)),
      .rd_atomic_dest_max = static_cast<std::uint8_t>(random.between(4, 16))};
  if (!c.patient) {
    path.ack_timeout = 14;
    path.retry_cnt = static_cast<std::uint8_t>(random.between(1, 2));
    if (for_device) path.retry_cnt += 4;
  }
  auto bad = BadConnect::none;
  if (random.chance(0.15)) bad = static_cast<BadConnect>(random.between(1, 5));
  return Connect{static_cast<std::uint8_t>(which), c.srq, c.one_cq, c.send_depth, path, bad};
}

}  // namespace bx::differential
