// SPDX-License-Identifier: BSD-3-Clause
// Makes single requests and receives for the generator: opcode, length, elements, target, and one fault if
// asked for. Knows which regions give which rights and which slots the step uses already.
#pragma once

#include <array>
#include <optional>

#include "libbx/base/prng.h"
#include "tests/differential/hazards.h"
#include "tests/differential/program.h"

namespace bx::differential {

struct RequestWish {
  Side from{};
  std::uint32_t user = 0;  // for Hazards: the queue pair
  bool may_consume = true;
  bool message = false;  // an opcode that takes a receive
  bool may_fence = true;
  Fault fault = Fault::none;
};

class RequestMaker {
 public:
  explicit RequestMaker(Prng& random) : random_(random) {}

  void set_access(Side side, const std::array<fabric::Access, kRegions>& access);
  void set_access(Side side, std::uint8_t region, bool registered, fabric::Access access);
  [[nodiscard]] bool registered(Side side, std::uint8_t region) const;
  void begin_step() { hazards_.clear(); }

  // Nothing if no place is free for it in this step, or if the opcode that was drawn may not be.
  std::optional<Request> request(const RequestWish& wish);
  // A slot's worth of room, or too little of it or with a bad key.
  Receive receive(Side side, bool bad);

 private:
  fabric::Opcode opcode_for(const RequestWish& wish);
  std::uint32_t some_length();
  void set_flags(Request& request, bool may_fence);
  bool add_pieces(Request& request, const RequestWish& wish, std::uint32_t length);
  void spoil_piece(Request& request, Fault fault);
  bool set_target(Request& request, const RequestWish& wish, std::uint32_t length);
  std::optional<std::uint8_t> region_with(Side side, fabric::Access right, bool given);

  Prng& random_;
  Hazards hazards_{};
  struct Region {
    fabric::Access access{};
    bool registered = true;
  };
  std::array<std::array<Region, kRegions>, 2> regions_{};
  std::uint32_t next_id_ = 1;
  std::array<std::uint8_t, 2> next_receive_slot_{};
};

}  // namespace bx::differential
