// SPDX-License-Identifier: BSD-3-Clause
// Every knob of the library, declared once: name, unit, default, range and one sentence. `bx config` prints
// this table; scenario files, knob files and the environment set knobs through it (the reading is the
// harness's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bx {

enum class Unit : std::uint8_t {
  count,
  bytes,
  nanoseconds,
  flag,    // 0 or 1, written false and true
  choice,  // index into KnobSpec::choices
};

enum class RendezvousPolicy : std::uint8_t { pull, granted_write };
enum class WindowMode : std::uint8_t { fixed, adaptive };    // "static", "adaptive"
enum class WindowDivision : std::uint8_t { chunks, peers };  // of the receiver's window
enum class CreditMode : std::uint8_t { fixed, shared };
enum class HugePages : std::uint8_t { automatic, off, prefer, require };  // "auto", "off", ...

// X(member, name, unit, default, minimum, maximum, sentence)
#define BX_KNOBS(X)                                                                                          \
  X(peers_max, "peers.max", count, 64, 1, 65536,                                                             \
    "Peers this worker can be connected to at once; its completion queue is sized for exactly that many.")   \
  X(peers_idle_close, "peers.idle_close", nanoseconds, 0, 0, 86'400'000'000'000,                             \
    "A peer that this worker opened and has not used for so long, or for up to twice that, is closed; its "  \
    "sessions end, and the next connect opens it again. 0 keeps it.")                                        \
  X(calls_max, "calls.max", count, 1024, 1, 65536, "Calls this worker can have outstanding as a client.")    \
  X(requests_max, "requests.max", count, 1024, 1, 65536, "Requests this worker can be serving at once.")     \
  X(transfers_max, "transfers.max", count, 2048, 1, 32768,                                                   \
    "Rendezvous transfers this worker can have in progress: incoming, of its requests, and of its answers.") \
  X(streams_max, "streams.max", count, 64, 1, 65536,                                                         \
    "Streams this worker can be reading, and as many that it can be writing.")                               \
  X(call_deadline, "calls.deadline", nanoseconds, 10'000'000'000, 1'000, 3'600'000'000'000,                  \
    "Deadline of a call that does not name one.")                                                            \
  X(lanes_per_peer, "lanes.per_peer", count, 1, 1, 8,                                                        \
    "Queue pairs to a peer that sessions are spread over; the smaller of both ends is used.")                \
  X(lanes_control, "lanes.control", flag, 0, 0, 1,                                                           \
    "A lane more for credit grants, ends of transfers and grants of WRITEs; used if both ends have it.")     \
  X(lanes_fair, "lanes.fair", flag, 1, 0, 1,                                                                 \
    "Messages to a peer that wait go by deficit round robin over the bytes of its sessions; off, in the "    \
    "order they came.")                                                                                      \
  X(send_depth, "send.depth", count, 128, 8, 16384, "Send-queue slots of one lane.")                         \
  X(send_control_reserve, "send.control_reserve", count, 4, 1, 64,                                           \
    "Send-queue slots of a lane that only credit grants may take, so that credits always move.")             \
  X(eager_max, "eager.max", bytes, 8192, 256, 1'048'576,                                                     \
    "Longest payload sent eagerly into a posted receive; longer ones go by rendezvous.")                     \
  X(inline_max, "inline.max", bytes, 220, 0, 1024,                                                           \
    "Longest message, header included, that is copied into the work request if the device can.")             \
  X(coalesce_max, "coalesce.max", bytes, 1024, 0, 16'384,                                                    \
    "Longest SEND that small messages of one turn to one peer are put into together; 0 sends each by "       \
    "itself.")                                                                                               \
  X(gather_parts_max, "gather.parts_max", count, 8, 1, 8,                                                    \
    "Parts of one message that the NIC gathers, if the device can; of more, and with 1 of any, a copy is "   \
    "sent.")                                                                                                 \
  X(rendezvous_policy, "rendezvous.policy", choice, 0, 0, 1,                                                 \
    "How a long payload travels: the receiver pulls it by RDMA READ, or the sender writes where granted.")   \
  X(rendezvous_chunk, "rendezvous.chunk", bytes, 65'536, 4096, 1'073'741'824,                                \
    "Bytes moved by one READ or one granted WRITE; the unit in which a transfer is scheduled.")              \
  X(rendezvous_reads_max, "rendezvous.reads_max", count, 16, 1, 128,                                         \
    "READs outstanding on one lane (bounded by the device's rd_atomic limit too).")                          \
  X(credits_per_peer, "credits.per_peer", count, 16, 2, 4096,                                                \
    "Receives posted on behalf of each peer; of a shared pool, the most that one peer may have.")            \
  X(credits_mode, "credits.mode", choice, 0, 0, 1,                                                           \
    "Whether each peer has receives of its own, or all share credits.pool and are granted what they ask "    \
    "for.")                                                                                                  \
  X(credits_pool, "credits.pool", count, 1024, 2, 1'048'576,                                                 \
    "Receives posted for all peers together, if they share; each is entitled to its part of peers.max.")     \
  X(credits_floor, "credits.floor", count, 4, 2, 4096,                                                       \
    "Receives of a shared pool that every peer has from the start and that are never lent to others.")       \
  X(credits_ask, "credits.ask", flag, 0, 0, 1,                                                               \
    "Ask for credits when half, and again when three quarters of them are used up and more waits, even of "  \
    "a peer that keeps receives for us alone.")                                                              \
  X(receive_spare, "credits.spare_slots", count, 64, 0, 65536,                                               \
    "Receive slots beyond the credits, lent to the application for zero-copy receives; when none is left, "  \
    "copy out.")                                                                                             \
  X(lend_percent, "credits.lend_percent", count, 75, 0, 100,                                                 \
    "Share of the spare slots that may be kept before payloads are copied out; 0 copies every one.")         \
  X(window_enabled, "window.enabled", flag, 1, 0, 1,                                                         \
    "Bound the bytes in flight; off, only credits and queue depths bound them.")                             \
  X(window_per_peer, "window.per_peer", bytes, 262'144, 4096, 68'719'476'736,                                \
    "Bytes in flight to or from one peer.")                                                                  \
  X(window_receiver, "window.receiver", bytes, 262'144, 4096, 68'719'476'736,                                \
    "Bytes that all peers together may be sending to this worker by rendezvous.")                            \
  X(window_per_session, "window.per_session", bytes, 0, 0, 68'719'476'736,                                   \
    "Bytes of eager messages and WRITEs that one session may have in flight; 0: as many as its peer.")       \
  X(window_nic_low, "window.nic_low", bytes, 0, 0, 68'719'476'736,                                           \
    "While all peers together have less than this in flight, a session may exceed its own and its peer's "   \
    "bound; 0 lends nothing.")                                                                               \
  X(window_nic_high, "window.nic_high", bytes, 0, 0, 68'719'476'736,                                         \
    "Bytes of eager messages and WRITEs that all peers together may have in flight; 0: no bound.")           \
  X(window_mode, "window.mode", choice, 0, 0, 1,                                                             \
    "Whether window.per_peer (out) and window.receiver stay as they are or are where an adaptive window "    \
    "begins, which follows the delay.")                                                                      \
  X(window_adaptive_min, "window.adaptive_min", bytes, 65'536, 4096, 68'719'476'736,                         \
    "Least that an adaptive window shrinks to.")                                                             \
  X(window_adaptive_max, "window.adaptive_max", bytes, 8'388'608, 4096, 68'719'476'736,                      \
    "Most that an adaptive window grows to.")                                                                \
  X(window_target_delay, "window.target_delay", nanoseconds, 20'000, 1'000, 100'000'000,                     \
    "Delay beyond that of the idle path at which an adaptive window stops growing: the queue it accepts.")   \
  X(window_division, "window.division", choice, 0, 0, 1,                                                     \
    "How peers share window.receiver: chunk by chunk in turn, or by peer, each its share by weight.")        \
  X(window_share_min, "window.share_min", bytes, 65'536, 4096, 68'719'476'736,                               \
    "Least share of window.receiver of a peer that has something to send, if the window is divided by "      \
    "peers.")                                                                                                \
  X(window_weight, "window.weight", count, 1, 1, 1024,                                                       \
    "Weight of this worker at receivers that divide their window by peers; told at connect.")                \
  X(memory_arena, "memory.arena", bytes, 268'435'456, 16'777'216, 1'099'511'627'776,                         \
    "Registered memory of this worker: buffers, receive slots and headers.")                                 \
  X(memory_send, "memory.send", bytes, 0, 0, 1'099'511'627'776,                                              \
    "Most of memory.arena that the application's buffers may take, those being sent included; 0: three "     \
    "quarters.")                                                                                             \
  X(memory_receive, "memory.receive", bytes, 0, 0, 1'099'511'627'776,                                        \
    "Most of memory.arena that receive slots, lane headers and incoming payloads may take; 0: three "        \
    "quarters.")                                                                                             \
  X(memory_user, "memory.user", bytes, 1'073'741'824, 0, 1'099'511'627'776,                                  \
    "Most of the application's own memory that may be registered at once, beside memory.arena.")             \
  X(memory_user_regions, "memory.user_regions", count, 64, 0, 65536,                                         \
    "Registrations of the application's own memory at once, those cached included.")                         \
  X(memory_huge_pages, "memory.huge_pages", choice, 0, 0, 3,                                                 \
    "Pages of memory.arena: auto prefers huge ones if the device pins memory; prefer falls back to "         \
    "smaller ones.")                                                                                         \
  X(path_mtu, "path.mtu", bytes, 4096, 256, 4096, "Path MTU asked for; the smaller of both ends is used.")   \
  X(path_ack_timeout, "path.ack_timeout", count, 14, 1, 31, "Local ACK timeout, 4.096 us * 2^n.")            \
  X(path_retry_cnt, "path.retry_cnt", count, 7, 0, 7, "Retransmissions before a lane fails.")                \
  X(path_rnr_retry, "path.rnr_retry", count, 0, 0, 7,                                                        \
    "Attempts after a receiver-not-ready NAK; 0 because credits make one a bug, 7 is for ever.")             \
  X(path_min_rnr_timer, "path.min_rnr_timer", count, 12, 1, 31,                                              \
    "RNR NAK timer code (12 is 0.64 ms); code 0 would stall a sender for 655 ms and is refused.")            \
  X(path_traffic_class, "path.traffic_class", count, 104, 0, 255,                                            \
    "IP traffic class of the lanes: DSCP << 2.")                                                             \
  X(path_control_traffic_class, "path.control_traffic_class", count, 192, 0, 255,                            \
    "IP traffic class of the control lane, whose few small messages need no lossless class.")                \
  X(connect_deadline, "connect.deadline", nanoseconds, 5'000'000'000, 1'000'000, 600'000'000'000,            \
    "Time a connection handshake may take.")                                                                 \
  X(turn_completions_max, "turn.completions_max", count, 256, 1, 65536,                                      \
    "Completions handled in one turn before posts are flushed.")

struct Config {
#define BX_KNOB_MEMBER(member, name, unit, value, low, high, sentence) std::uint64_t member = value;
  BX_KNOBS(BX_KNOB_MEMBER)
#undef BX_KNOB_MEMBER
};

struct KnobSpec {
  std::string_view name;
  Unit unit;
  std::uint64_t Config::*member;
  std::uint64_t default_value;
  std::uint64_t minimum;
  std::uint64_t maximum;
  std::string_view sentence;
  std::span<const std::string_view> choices;  // for Unit::choice, in the order of the index
};

// The table, in the order above.
std::span<const KnobSpec> knobs() noexcept;
// Null when there is none of that name.
const KnobSpec* find_knob(std::string_view name) noexcept;

}  // namespace bx
