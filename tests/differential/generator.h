// SPDX-License-Identifier: BSD-3-Clause
// A random program from a seed, such that verbs decide its outcome:
//
//   - what may fail goes one way of its connection in a step, for the failure of one end cuts off the other's
//     requests at a moment that only time decides;
//   - one queue pair a step takes receives from a shared receive queue;
//   - within a step nobody writes what somebody else reads or writes (Hazards), and one queue pair writes
//   what it
//     reads only behind a fence (IBA 1.4, 9.5: WRITEs behind a READ may be seen by it);
//   - an end whose peer may be dead has a short patience (ACK timeout and retries);
//   - a request that waits for a receive for ever is resolved in the next step: by receives, by failing or
//     destroying one of its ends.
#pragma once

#include "tests/differential/program.h"

namespace bx::differential {

struct GeneratorConfig {
  std::uint64_t seed = 1;
  // Leaves out what real devices may end in several ways:
  //   - what was sent before the device finds a request at fault is completed or flushed: such a request
  //   comes
  //     first;
  //   - the local memory of a READ or an atomic is looked at before it is sent, or when its answer comes, and
  //   what
  //     is behind it may be carried out by then: nothing is behind it;
  //   - SoftRoCE never sends a fenced request again while a READ or an atomic is out, itself included (in
  //     rxe_wqe_is_fenced of Linux 6.1): what may be sent again is not fenced;
  //   - a WRITE_WITH_IMM that the peer refuses takes a receive with it, or does not: it is of the last step;
  //   - SoftRoCE counts the sequence NAK behind an RNR NAK as a retry, and a machine may stand still longer
  //   than an
  //     ACK timeout: there are retries to spare.
  bool for_device = false;
};

Program generate(const GeneratorConfig& config);

}  // namespace bx::differential
