// SPDX-License-Identifier: GPL-2.0-only
// Which source sends next. Short answers go before data, so that a peer's progress does not wait behind our
// bulk; within a class, priorities that are not paused take turns, and within a priority sources do, a
// quantum of packets each:
//
//   control  [p0] [p1] .. [p7]      each a list of sources, oldest turn first
//   data     [p0] [p1] .. [p7]
//
// A source is on at most one list, and only while it has something to send: idle queue pairs cost nothing.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "libbx/base/intrusive_list.h"
#include "sim/model/rc_environment.h"
#include "sim/model/units.h"

namespace bx::sim {

class TxSchedule {
 public:
  explicit TxSchedule(std::uint32_t quantum_packets) : quantum_packets_(quantum_packets) {}

  [[nodiscard]] bool empty() const noexcept { return control_.ready == 0 && data_.ready == 0; }
  // Nothing happens if the source is scheduled or has nothing to send.
  void add(TxSource& source) { add(source, source.tx_class()); }
  // For who knows the source's class.
  void add(TxSource& source, TxClass tx_class) {
    if (source.linked() || tx_class == TxClass::nothing) return;
    add_to(tx_class == TxClass::control ? control_ : data_, source);
  }
  // The next frame of a priority that is not in `paused` (bit p: priority p), or null.
  Frame* next(std::uint8_t paused) {
    Frame* frame = next_of(control_, paused);
    return frame != nullptr ? frame : next_of(data_, paused);
  }
  // Whose turn it may be next, or null; what is paused is not asked.
  [[nodiscard]] const TxSource* peek() noexcept {
    Lists& lists = control_.ready != 0 ? control_ : data_;
    return lists.ready == 0 ? nullptr : lists.by_priority[std::countr_zero(lists.ready)].front();
  }

 private:
  struct Lists {
    std::array<IntrusiveList<TxSource>, kPriorities> by_priority;
    std::uint8_t ready = 0;          // bit p: by_priority[p] may have a source
    std::uint8_t last = 0;           // priority that sent last
    std::uint32_t packets_left = 0;  // of the quantum of the source at the front of `last`
  };

  static void add_to(Lists& lists, TxSource& source) {
    lists.by_priority[source.priority()].push_back(source);
    lists.ready = static_cast<std::uint8_t>(lists.ready | (1U << source.priority()));
  }

  Frame* next_of(Lists& lists, std::uint8_t paused) {
    for (;;) {
      const auto sendable = static_cast<std::uint8_t>(lists.ready & ~paused);
      if (sendable == 0) return nullptr;
      const std::uint8_t priority = choose(lists, sendable);
      IntrusiveList<TxSource>& sources = lists.by_priority[priority];
      TxSource* source = sources.pop_front();
      // Sources also go away by themselves: they fail, or are destroyed.
      if (sources.empty()) lists.ready = static_cast<std::uint8_t>(lists.ready & ~(1U << priority));
      if (source == nullptr) continue;
      Frame* frame = source->produce();
      put_back(lists, *source);
      if (frame != nullptr) return frame;
    }
  }

  // Stays with a source until its quantum is used, then moves to the next priority.
  std::uint8_t choose(Lists& lists, std::uint8_t sendable) const noexcept {
    const bool stay = lists.packets_left > 0 && ((sendable >> lists.last) & 1U) != 0;
    if (!stay) {
      const unsigned from = lists.last + 1U;
      const auto rotated = std::rotr(sendable, static_cast<int>(from % kPriorities));
      lists.last =
          static_cast<std::uint8_t>((from + static_cast<unsigned>(std::countr_zero(rotated))) % kPriorities);
      lists.packets_left = quantum_packets_;
    }
    --lists.packets_left;
    return lists.last;
  }

  void put_back(Lists& lists, TxSource& source) {
    const TxClass tx_class = source.tx_class();
    if (source.linked() || tx_class == TxClass::nothing) {
      lists.packets_left = 0;
      return;
    }
    Lists& to = tx_class == TxClass::control ? control_ : data_;
    if (&to == &lists && lists.packets_left > 0) {
      lists.by_priority[source.priority()].push_front(source);
      lists.ready = static_cast<std::uint8_t>(lists.ready | (1U << source.priority()));
      return;
    }
    lists.packets_left = 0;
    add_to(to, source);
  }

  Lists control_;
  Lists data_;
  std::uint32_t quantum_packets_;
};

}  // namespace bx::sim
