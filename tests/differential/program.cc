// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/program.h"

#include <sstream>

namespace bx::differential {
namespace {

using fabric::SendFlags;

constexpr const char* name_of(Side side) {
  return side == Side::a ? "a" : "b";
}

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string rights(fabric::Access access) {
  std::string text;
  if (allows(access, fabric::Access::remote_read)) text += "r";
  if (allows(access, fabric::Access::remote_write)) text += "w";
  if (allows(access, fabric::Access::remote_atomic)) text += "a";
  return text.empty() ? "local" : text;
}

void print(std::ostream& out, const Place& place) {
  out << 'r' << int{place.region} << '.' << int{place.slot} << '+' << place.offset;
  if (place.length > 0) out << ':' << place.length;
  if (place.key == Key::unknown) out << " unknown-key";
  if (place.key == Key::stale) out << " stale-key";
  if (place.bounds == Bounds::before) out << " starts-before";
  if (place.bounds == Bounds::behind) out << " ends-behind";
  if (place.bounds == Bounds::wrapping) out << " wraps";
}

void print(std::ostream& out, const std::vector<Place>& pieces) {
  out << '[';
  for (const Place& piece : pieces) {
    if (&piece != pieces.data()) out << ", ";
    print(out, piece);
  }
  out << ']';
}

void print(std::ostream& out, const Request& request) {
  out << "    #" << request.id << ' ' << fabric::to_string(request.opcode) << ' ';
  print(out, request.pieces);
  if (returns_data(request.opcode) || request.opcode == fabric::Opcode::rdma_write ||
      request.opcode == fabric::Opcode::rdma_write_with_imm) {
    out << " at ";
    print(out, request.target);
  }
  if (!has(request.flags, SendFlags::signaled)) out << " unsignalled";
  if (has(request.flags, SendFlags::inlined)) out << " inline";
  if (has(request.flags, SendFlags::fenced)) out << " fenced";
  if (request.fault != Fault::none) out << "  <-- " << to_string(request.fault);
  out << '\n';
}

void print(std::ostream& out, const Action& action) {
  const auto end = [&](const auto& at) -> std::ostream& {
    return out << 'c' << int{at.connection} << ' ' << name_of(at.side);
  };
  std::visit(Overloaded{
                 [&](const Connect& connect) {
                   const fabric::PathConfig& path = connect.path;
                   out << "  connect c" << int{connect.connection} << ": SRQs " << int{connect.srq[0]} << ", "
                       << int{connect.srq[1]} << (connect.one_cq ? ", one CQ" : ", two CQs")
                       << ", send depth " << connect.send_depth << ", MTU " << path.mtu_bytes
                       << ", ACK timeout " << int{path.ack_timeout} << ", retry " << int{path.retry_cnt}
                       << ", RNR retry " << int{path.rnr_retry} << ", READs " << int{path.rd_atomic_max};
                   if (connect.bad != BadConnect::none)
                     out << ", bad attribute " << static_cast<int>(connect.bad);
                   out << '\n';
                 },
                 [&](const Post& post) {
                   out << "  post ";
                   end(post) << '\n';
                   for (const Request& request : post.requests) print(out, request);
                 },
                 [&](const PostReceives& post) {
                   out << "  receives " << name_of(post.side) << " SRQ " << int{post.srq} << '\n';
                   for (const Receive& receive : post.receives) {
                     out << "    #" << receive.id << ' ';
                     print(out, receive.pieces);
                     if (receive.fault != Fault::none) out << "  <-- " << to_string(receive.fault);
                     out << '\n';
                   }
                 },
                 [&](const Fail& fail) {
                   out << "  fail ";
                   end(fail) << '\n';
                 },
                 [&](const Destroy& destroy) {
                   out << "  destroy ";
                   end(destroy) << '\n';
                 },
                 [&](const Register& wish) {
                   out << (wish.again ? "  register " : "  deregister ") << name_of(wish.side) << " r"
                       << int{wish.region};
                   if (wish.again) out << ' ' << rights(wish.access);
                   out << '\n';
                 },
             },
             action);
}

}  // namespace

std::string_view to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::local_key:
      return "local key";
    case Fault::local_bounds:
      return "local bounds";
    case Fault::remote_key:
      return "remote key";
    case Fault::remote_bounds:
      return "remote bounds";
    case Fault::permission:
      return "permission";
    case Fault::crooked_atomic:
      return "crooked atomic";
    case Fault::atomic_length:
      return "length of an atomic";
  }
  return "?";
}

std::uint32_t length_of(const std::vector<Place>& pieces) noexcept {
  std::uint32_t bytes = 0;
  for (const Place& piece : pieces) bytes += piece.length;
  return bytes;
}

std::string to_string(const Program& program) {
  std::ostringstream out;
  for (const Side side : {Side::a, Side::b}) {
    const SideSetup& setup = program.setup[index(side)];
    out << "side " << name_of(side) << ": regions";
    for (const fabric::Access access : setup.access) out << ' ' << rights(access);
    out << "; SRQ depths";
    for (const std::uint32_t depth : setup.srq_depth) out << ' ' << depth;
    out << '\n';
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    out << "step " << i << (program.steps[i].racy ? " (racy)\n" : "\n");
    for (const Action& action : program.steps[i].actions) print(out, action);
  }
  return out.str();
}

}  // namespace bx::differential
