// SPDX-License-Identifier: BSD-3-Clause
// Which slots of memory the requests of one step use, and how: a use that could race with an earlier one is
// refused. `user` is a queue pair, which carries out its requests in order.
#pragma once

#include <array>
#include <cstdint>

#include "tests/differential/program.h"

namespace bx::differential {

class Hazards {
 public:
  void clear() noexcept { *this = {}; }

  // Read by the requester's own device, when it likes to until the request is complete.
  [[nodiscard]] bool local_source(Side side, const Place& place) noexcept {
    Use& use = at(side, place);
    if (use.written || use.exclusive) return false;
    return use.read_locally = true;
  }
  // Written by the answer to a READ or an atomic.
  [[nodiscard]] bool local_target(Side side, const Place& place) noexcept {
    Use& use = at(side, place);
    if (use.touched()) return false;
    return use.exclusive = true;
  }
  [[nodiscard]] bool remote_read(Side side, const Place& place, std::uint32_t user) noexcept {
    Use& use = at(side, place);
    if (use.exclusive || (use.written && use.writer != user)) return false;
    use.readers_differ = use.readers_differ || (use.read_remotely && use.reader != user);
    use.reader = user;
    return use.read_remotely = true;
  }
  // `ordered`: the request is fenced.
  [[nodiscard]] bool remote_write(Side side, const Place& place, std::uint32_t user, bool ordered) noexcept {
    Use& use = at(side, place);
    if (use.exclusive || use.read_locally || (use.written && use.writer != user)) return false;
    if (use.read_remotely && (use.readers_differ || use.reader != user || !ordered)) return false;
    use.writer = user;
    return use.written = true;
  }

 private:
  struct Use {
    bool read_locally = false;
    bool exclusive = false;
    bool read_remotely = false;
    bool readers_differ = false;
    bool written = false;
    std::uint32_t reader = 0;
    std::uint32_t writer = 0;
    [[nodiscard]] bool touched() const noexcept {
      return read_locally || exclusive || read_remotely || written;
    }
  };
  Use& at(Side side, const Place& place) noexcept { return uses_[index(side)][place.region][place.slot]; }

  std::array<std::array<std::array<Use, kReceiveSlots>, kRegions>, 2> uses_{};
};

}  // namespace bx::differential
