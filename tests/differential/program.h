// SPDX-License-Identifier: BSD-3-Clause
// A program for two hosts, over the boundary libbx/fabric: plain values, the same for every fabric that runs
// it.
//
//   Program
//     setup     what each side has from the start: the rights of its regions, its shared receive queues
//     steps     each a list of actions, then a drain: until what must complete has completed
//
// What a program leads to is decided by the semantics of verbs and not by time; the generator (generator.h)
// keeps it so. Any part of the steps may be left out and the rest still runs, which is what shrinking needs:
// an action that names what does not exist does nothing.
//
// Memory of a side: regions of kSlots slots of kSlotBytes, guard bytes before, between and behind them.
// Region 0 takes receives, each in a slot of its own; the others are for everything else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "libbx/fabric/types.h"

namespace bx::differential {

inline constexpr std::size_t kRegions = 6;
inline constexpr std::size_t kSlots = 6;           // of a region but the first
inline constexpr std::size_t kReceiveSlots = 64;   // of region 0, used in turn
inline constexpr std::uint32_t kSlotBytes = 2304;  // nine packets of the smallest path MTU
inline constexpr std::size_t kSrqs = 2;            // of a side
inline constexpr std::size_t kConnections = 3;
inline constexpr std::uint32_t kPiecesMax = 4;  // elements of a request and of a receive
inline constexpr std::uint32_t kInlineMax = 64;

enum class Side : std::uint8_t { a, b };
constexpr Side other(Side side) noexcept {
  return side == Side::a ? Side::b : Side::a;
}
constexpr std::size_t index(Side side) noexcept {
  return static_cast<std::size_t>(side);
}

// What is wrong with a request or a receive, by intent. A label: the other fields carry it out.
enum class Fault : std::uint8_t {
  none,
  local_key,       // an lkey that is none
  local_bounds,    // an element that reaches beyond its region
  remote_key,      // an rkey that is none
  remote_bounds,   // a range that reaches beyond its region
  permission,      // a region that does not give the right
  crooked_atomic,  // an address that is no multiple of eight
  atomic_length,   // a local buffer of another length than eight
};
inline constexpr std::size_t kFaults = 8;
std::string_view to_string(Fault fault) noexcept;

enum class Key : std::uint8_t { good, unknown, stale };  // stale: of the region's last registration, if any
enum class Bounds : std::uint8_t { inside, before, behind, wrapping };

// Memory of one side; `offset` is that in the slot.
struct Place {
  std::uint8_t region = 1;
  std::uint8_t slot = 0;
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  Key key = Key::good;
  Bounds bounds = Bounds::inside;
};

struct Request {
  std::uint32_t id = 0;  // unique in the program
  fabric::Opcode opcode = fabric::Opcode::send;
  fabric::SendFlags flags = fabric::SendFlags::signaled;
  std::vector<Place> pieces{};
  Place target{};  // of WRITE, READ and atomics; its length is not used
  std::uint32_t imm = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  Fault fault = Fault::none;
};

struct Receive {
  std::uint32_t id = 0;
  std::vector<Place> pieces{};
  Fault fault = Fault::none;
};

// Attributes that connect() must refuse, tried before the right ones.
enum class BadConnect : std::uint8_t { none, mtu, ack_timeout, retry_cnt, rnr_retry, rnr_timer };

// Makes both queue pairs of a connection, new ones if it has some, and connects them.
struct Connect {
  std::uint8_t connection = 0;
  std::array<std::uint8_t, 2> srq{};  // of each side
  bool one_cq = false;                // sends and receives complete in one queue
  std::uint32_t send_depth = 8;
  fabric::PathConfig path{};
  BadConnect bad = BadConnect::none;
};
struct Post {
  std::uint8_t connection = 0;
  Side side{};
  std::vector<Request> requests{};
};
struct PostReceives {
  Side side{};
  std::uint8_t srq = 0;
  std::vector<Receive> receives{};
};
struct Fail {  // fail()
  std::uint8_t connection = 0;
  Side side{};
};
struct Destroy {
  std::uint8_t connection = 0;
  Side side{};
};
struct Register {  // anew, with new keys; or only away
  Side side{};
  std::uint8_t region = 1;
  bool again = true;
  fabric::Access access = fabric::Access::local;
};
using Action = std::variant<Connect, Post, PostReceives, Fail, Destroy, Register>;

struct Step {
  std::vector<Action> actions{};
  // Requests are in flight when their queue pair is failed: how many of them are carried out is free, and so
  // is the memory that they name.
  bool racy = false;
};

struct SideSetup {
  std::array<fabric::Access, kRegions> access{};
  std::array<std::uint32_t, kSrqs> srq_depth{};
};

struct Program {
  std::uint64_t seed = 0;
  std::array<SideSetup, 2> setup{};
  std::vector<Step> steps{};
};

constexpr bool is_atomic(fabric::Opcode opcode) noexcept {
  return opcode == fabric::Opcode::fetch_add || opcode == fabric::Opcode::cmp_swap;
}
constexpr bool returns_data(fabric::Opcode opcode) noexcept {
  return opcode == fabric::Opcode::rdma_read || is_atomic(opcode);
}
// Whether it uses up a receive of the peer.
constexpr bool consumes(fabric::Opcode opcode) noexcept {
  return opcode == fabric::Opcode::send || opcode == fabric::Opcode::send_with_imm ||
         opcode == fabric::Opcode::rdma_write_with_imm;
}
std::uint32_t length_of(const std::vector<Place>& pieces) noexcept;

// For a person: a line an action or request.
std::string to_string(const Program& program);

}  // namespace bx::differential
