// SPDX-License-Identifier: GPL-2.0-only
// Asks at the end of a run for what must hold of every run (oracle.h), whatever its scenario.
#pragma once

#include "harness/measure/oracle.h"
#include "harness/run/traffic.h"
#include "harness/run/world.h"

namespace bx::harness {

// Whether the run came to its end: one that did not has frames under way, and that is said already.
enum class RanOut : std::uint8_t { no, yes };

// After the acknowledgements had time to come home: a worker still holds something.
void check_idle(World& world, Oracle& oracle);
// Nothing was faster than the closed form, nothing lossless was dropped, the network has kept its promises
// and holds nothing, nobody sent without a credit.
void check_promises(const Traffic& traffic, const Settings& settings, RanOut ran_out, Oracle& oracle);
// When all is said and done: events go on although nobody has anything to do. Takes simulated time.
void check_event_queue(World& world, Oracle& oracle);

}  // namespace bx::harness
