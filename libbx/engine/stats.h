// SPDX-License-Identifier: BSD-3-Clause
// Counters of one worker since it was made. "stall" counts the turns in which something that was ready to be
// sent could not be, by what it lacked.
#pragma once

#include <cstdint>

namespace bx::engine {

// X(member, name, unit)
#define BX_STATS(X)                                                 \
  X(calls_started, "calls.started", "count")                        \
  X(calls_completed, "calls.completed", "count")                    \
  X(calls_failed, "calls.failed", "count")                          \
  X(requests_served, "requests.served", "count")                    \
  X(requests_refused, "requests.refused", "count")                  \
  X(messages_sent, "messages.sent", "count")                        \
  X(messages_received, "messages.received", "count")                \
  X(messages_inlined, "messages.inlined", "count")                  \
  X(messages_eager, "messages.eager", "count")                      \
  X(messages_coalesced, "messages.coalesced", "count")              \
  X(messages_offered, "messages.offered", "count")                  \
  X(streams_served, "streams.served", "count")                      \
  X(stream_parts, "streams.parts", "count")                         \
  X(messages_gathered, "messages.gathered", "count")                \
  X(gather_copied, "messages.gather_copied", "count")               \
  X(bytes_sent, "messages.bytes_sent", "bytes")                     \
  X(bytes_received, "messages.bytes_received", "bytes")             \
  X(reads_posted, "transfers.reads", "count")                       \
  X(writes_granted, "transfers.writes_granted", "count")            \
  X(transfers_completed, "transfers.completed", "count")            \
  X(transfers_dropped, "transfers.dropped", "count")                \
  X(credit_requests_sent, "credits.requests_sent", "count")         \
  X(credit_requests_received, "credits.requests_received", "count") \
  X(credits_lent, "credits.lent", "count")                          \
  X(window_lent, "window.lent", "count")                            \
  X(pure_grants_sent, "credits.pure_grants_sent", "count")          \
  X(pure_grants_received, "credits.pure_grants_received", "count")  \
  X(copied_out, "memory.copied_out", "count")                       \
  X(copied_in, "memory.copied_in", "count")                         \
  X(pressure, "memory.pressure", "count")                           \
  X(stall_credit, "stall.credit", "count")                          \
  X(stall_slot, "stall.slot", "count")                              \
  X(stall_lane, "stall.lane", "count")                              \
  X(stall_window, "stall.window", "count")                          \
  X(stall_session_window, "stall.session_window", "count")          \
  X(stall_nic_window, "stall.nic_window", "count")                  \
  X(stall_receiver_window, "stall.receiver_window", "count")        \
  X(stall_receiver_share, "stall.receiver_share", "count")          \
  X(stall_transfer, "stall.transfer", "count")                      \
  X(stall_memory, "stall.memory", "count")                          \
  X(stall_receive, "stall.receive", "count")                        \
  X(peers_opened, "peers.opened", "count")                          \
  X(peers_failed, "peers.failed", "count")                          \
  X(peers_idle_closed, "peers.idle_closed", "count")                \
  X(turns, "turns", "count")

struct Stats {
#define BX_STAT_MEMBER(member, name, unit) std::uint64_t member = 0;
  BX_STATS(BX_STAT_MEMBER)
#undef BX_STAT_MEMBER
};

}  // namespace bx::engine
