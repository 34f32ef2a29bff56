// SPDX-License-Identifier: GPL-2.0-only
// The lower bound that no run may beat: store-and-forward over one switch at line rate, computed exactly. For
// N answers that all cross the link to one host the last bit arrives no earlier than
//
//   t_first + d  +  sum of all wire bytes * 8 / rate  +  d
//
// after the first of them could start: t_first, the serialisation of the first packet on its sender's link;
// d, the propagation of each of the two links. The request leg is not part of it. Wire bytes of S payload
// bytes at MTU P: ceil(S / P) packets with 82 bytes around each payload (the last one partial), at least 84 a
// packet, the minimum Ethernet frame. Headers of the library are not counted, so a real run can only be
// slower. Checked against the closed form that public RoCE simulators reach, which also counts the last
// acknowledgement: 64 x 1 MiB at 100 Gb/s, 1 us, MTU 4096: 5478.53 us here and 5480.54 us there.
#pragma once

#include <cstdint>
#include <span>

namespace bx::harness {

// Where the links differ, `rate` is that of the link to the receiver, t_first counts at the fastest sender's
// rate, and all bytes together take no less than what the narrowest cut between senders and receiver lets
// through.
struct LinkModel {
  std::uint64_t rate_bps = 0;         // of the receiver's link
  std::uint64_t delay_ps = 0;         // of each link
  std::uint64_t mtu = 4096;           // payload bytes of a full packet
  std::uint64_t sender_rate_bps = 0;  // of the fastest sender's link; 0: as the receiver's
  std::uint64_t cut_bps = 0;          // what passes from all senders to the receiver; 0: nothing is narrower
};

// Bytes on the wire of one message, preamble and gap included.
std::uint64_t wire_bytes(std::uint64_t payload, std::uint64_t mtu) noexcept;

// Picoseconds until the last of `answers` (payload bytes) has arrived at the one host they all go to.
std::uint64_t incast_bound_ps(const LinkModel& link, std::span<const std::uint64_t> answers) noexcept;

// The same for one answer alone, whose last packet crosses the second link after the whole answer crossed the
// first.
std::uint64_t flow_bound_ps(const LinkModel& link, std::uint64_t answer) noexcept;

}  // namespace bx::harness
