// SPDX-License-Identifier: GPL-2.0-only
// What a network may not hold when it is at rest, that is while no frame is in use: buffer of switches that
// nobody gives back, pauses without an end, payloads without a frame. A leak of these does not keep a run
// from ending: only this look finds it. What ends by itself (a pause that nobody took back lasts as long as
// its quanta say, bytes reach memory when the bus has written them) is found too as long as it lasts: ask
// again later.
#pragma once

#include <string>
#include <vector>

#include "sim/provider/sim_network.h"

namespace bx::sim {

// Adds a line for each thing that is held, with its place and its bytes, at most kRestLinesMax and one that
// counts the rest. To be asked only while no frame is in use and no fault holds any up.
inline constexpr std::size_t kRestLinesMax = 16;
void audit_rest(SimNetwork& network, std::vector<std::string>& breaches);

}  // namespace bx::sim
