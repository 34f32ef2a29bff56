// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/request_maker.h"

#include <algorithm>

namespace bx::differential {
namespace {

using fabric::Access;
using fabric::Opcode;
using fabric::SendFlags;

constexpr std::uint32_t kAtomicBytes = 8;
// A message that its device finds fault with fits into one packet: whether packets before the fault are sent
// is free.
constexpr std::uint32_t kFaultyLengthMax = 256;
constexpr std::uint32_t kImmMax = 1'000'000;

Access right_for(Opcode opcode) {
  if (is_atomic(opcode)) return Access::remote_atomic;
  return opcode == Opcode::rdma_read ? Access::remote_read : Access::remote_write;
}

bool has_target(Opcode opcode) {
  return opcode != Opcode::send && opcode != Opcode::send_with_imm;
}

bool is_local(Fault fault) {
  return fault == Fault::local_key || fault == Fault::local_bounds;
}

}  // namespace

void RequestMaker::set_access(Side side, const std::array<Access, kRegions>& access) {
  for (std::size_t i = 0; i < kRegions; ++i) regions_[index(side)][i] = {access[i], true};
}

void RequestMaker::set_access(Side side, std::uint8_t region, bool registered, Access access) {
  regions_[index(side)][region] = {access, registered};
}

bool RequestMaker::registered(Side side, std::uint8_t region) const {
  return regions_[index(side)][region].registered;
}

std::optional<Request> RequestMaker::request(const RequestWish& wish) {
  Request request{.id = next_id_++, .opcode = opcode_for(wish), .fault = wish.fault};
  if (consumes(request.opcode) && !wish.may_consume) return std::nullopt;
  std::uint32_t length = is_atomic(request.opcode) ? kAtomicBytes : some_length();
  const bool remote = wish.fault == Fault::remote_key || wish.fault == Fault::remote_bounds ||
                      wish.fault == Fault::permission;
  if ((is_local(wish.fault) || remote) && length == 0) length = 1;  // nothing is looked at for no bytes
  if (is_local(wish.fault)) length = std::min(length, kFaultyLengthMax);
  if (wish.fault == Fault::atomic_length) length = random_.chance(0.5) ? 4 : 16;
  request.imm = static_cast<std::uint32_t>(random_.below(kImmMax));
  request.compare_add = random_.below(3);
  request.swap = random_.below(3);
  set_flags(request, wish.may_fence);
  if (has_target(request.opcode) && !set_target(request, wish, length)) return std::nullopt;
  if (!add_pieces(request, wish, length)) return std::nullopt;
  return request;
}

Opcode RequestMaker::opcode_for(const RequestWish& wish) {
  const auto among = [&](std::initializer_list<Opcode> opcodes) {
    return *(opcodes.begin() + random_.below(opcodes.size()));
  };
  if (wish.message) return among({Opcode::send, Opcode::send_with_imm, Opcode::rdma_write_with_imm});
  switch (wish.fault) {
    case Fault::crooked_atomic:
    case Fault::atomic_length:
      return among({Opcode::fetch_add, Opcode::cmp_swap});
    case Fault::remote_key:
    case Fault::remote_bounds:
    case Fault::permission:
      return among({Opcode::rdma_write, Opcode::rdma_write_with_imm, Opcode::rdma_read, Opcode::fetch_add,
                    Opcode::cmp_swap});
    default:
      return static_cast<Opcode>(random_.below(7));
  }
}

// Around packet boundaries of all path MTUs, and anything.
std::uint32_t RequestMaker::some_length() {
  switch (random_.below(5)) {
    case 0:
      return static_cast<std::uint32_t>(random_.below(3));
    case 1:
      return static_cast<std::uint32_t>(random_.between(1, kInlineMax + 1));
    case 2:
      return static_cast<std::uint32_t>(256 * random_.between(1, 8) + random_.between(0, 2) - 1);
    default:
      return static_cast<std::uint32_t>(random_.between(1, kSlotBytes));
  }
}

void RequestMaker::set_flags(Request& request, bool may_fence) {
  auto flags = random_.chance(0.65) ? SendFlags::signaled : SendFlags::none;
  if (random_.chance(0.15) && may_fence) flags = flags | SendFlags::fenced;
  if (random_.chance(0.1)) flags = flags | SendFlags::solicited;
  request.flags = flags;
}

bool RequestMaker::set_target(Request& request, const RequestWish& wish, std::uint32_t length) {
  const Side there = other(wish.from);
  const bool denied = wish.fault == Fault::permission;
  const auto region = region_with(there, right_for(request.opcode), !denied);
  if (!region) return false;
  Place& target = request.target;
  target = {.region = *region, .slot = static_cast<std::uint8_t>(random_.below(kSlots))};
  if (is_atomic(request.opcode)) {
    target.offset = static_cast<std::uint32_t>(random_.below(2) * kAtomicBytes);  // so that they meet
    if (wish.fault == Fault::crooked_atomic) target.offset += 4;
  } else {
    target.offset = static_cast<std::uint32_t>(random_.below(kSlotBytes - length + 1));
  }
  if (wish.fault == Fault::remote_key) target.key = random_.chance(0.5) ? Key::unknown : Key::stale;
  if (wish.fault == Fault::remote_bounds) target.bounds = static_cast<Bounds>(random_.between(1, 3));
  if (wish.fault != Fault::none && wish.fault != Fault::local_key && wish.fault != Fault::local_bounds) {
    return true;  // it is not to be carried out
  }
  if (request.opcode == Opcode::rdma_read) return hazards_.remote_read(there, target, wish.user);
  return hazards_.remote_write(there, target, wish.user, has(request.flags, SendFlags::fenced));
}

std::optional<std::uint8_t> RequestMaker::region_with(Side side, Access right, bool given) {
  std::vector<std::uint8_t> found;
  for (std::uint8_t i = 1; i < kRegions; ++i) {
    const Region& region = regions_[index(side)][i];
    if (region.registered && allows(region.access, right) == given) found.push_back(i);
  }
  if (found.empty()) return std::nullopt;
  return found[random_.below(found.size())];
}

bool RequestMaker::add_pieces(Request& request, const RequestWish& wish, std::uint32_t length) {
  const auto region = region_with(wish.from, Access::local, true);
  if (!region) return false;
  const bool whole = is_atomic(request.opcode) || length < kPiecesMax;
  std::uint64_t count = whole ? 1 : random_.between(1, kPiecesMax);
  if (length == 0) count = 0;
  std::uint32_t left = length;
  for (; count > 0; --count) {
    const std::uint32_t bytes =
        count == 1 ? left : static_cast<std::uint32_t>(random_.between(1, left - (count - 1)));
    Place piece{.region = *region,
                .slot = static_cast<std::uint8_t>(random_.below(kSlots)),
                .offset = static_cast<std::uint32_t>(random_.below(kSlotBytes - bytes + 1)),
                .length = bytes};
    if (is_atomic(request.opcode)) piece.offset = piece.offset / kAtomicBytes * kAtomicBytes;
    const bool free = returns_data(request.opcode) ? hazards_.local_target(wish.from, piece)
                                                   : hazards_.local_source(wish.from, piece);
    if (!free) return false;
    request.pieces.push_back(piece);
    left -= bytes;
  }
  if (is_local(wish.fault)) {
    spoil_piece(request, wish.fault);
  } else if (!returns_data(request.opcode) && length <= kInlineMax && random_.chance(0.4)) {
    request.flags = request.flags | SendFlags::inlined;
  }
  return true;
}

void RequestMaker::spoil_piece(Request& request, Fault fault) {
  Place& piece = request.pieces[random_.below(request.pieces.size())];
  if (fault == Fault::local_key) {
    piece.key = random_.chance(0.5) ? Key::unknown : Key::stale;
  } else {
    piece.bounds = static_cast<Bounds>(random_.between(1, 3));
  }
}

Receive RequestMaker::receive(Side side, bool bad) {
  std::uint8_t& next = next_receive_slot_[index(side)];
  Receive receive{.id = next_id_++};
  Place piece{.region = 0, .slot = next, .length = kSlotBytes};
  next = static_cast<std::uint8_t>((next + 1U) % kReceiveSlots);
  if (bad && random_.chance(0.3)) {
    receive.fault = Fault::local_key;
    piece.key = random_.chance(0.5) ? Key::unknown : Key::stale;
  } else if (bad) {
    piece.length = static_cast<std::uint32_t>(random_.below(600));
  }
  // In several pieces, and backwards in memory, so that their order shows.
  std::uint32_t left = piece.length;
  const bool bad_end = receive.fault != Fault::none && random_.chance(0.5);  // a message may not reach it
  for (std::uint64_t count = random_.between(1, kPiecesMax); count > 0 && left > 0; --count) {
    const std::uint32_t bytes = count == 1 ? left : static_cast<std::uint32_t>(random_.between(1, left));
    left -= bytes;
    Place part = piece;
    part.offset = left;
    part.length = bytes;
    if (bad_end && count > 1) part.key = Key::good;
    receive.pieces.push_back(part);
  }
  return receive;
}

}  // namespace bx::differential
