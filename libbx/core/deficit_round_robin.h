// SPDX-License-Identifier: BSD-3-Clause
// Which session of a peer sends next over the lanes that they share: control strictly first, then data by
// bytes, in proportion to weights (deficit round robin; Shreedhar and Varghese, SIGCOMM 1995, in the form
// that pays after the message, so that nobody has to look at the size of what waits).
//
//   flow       what has a queue of its own: a session. It is "backlogged" while it is on a ring here.
//   allowance  quantum * weight bytes, given to a flow when its turn begins
//   balance    what is left of the allowance. The flow keeps its turn while it is above 0; the message that
//              brings it to 0 or below is the last of the turn, and what it took too much is a debt that the
//              next allowance pays.
//
// A message counts at most one quantum, so every turn sends a message and a step is O(1): whoever makes the
// scheduler sets the quantum to the largest message or chunk that is posted at once, or more. A flow that
// leaves the ring loses what is left of its allowance, and keeps its debt: were that forgiven, a session that
// always sends a little and then one large message would get twice its share by running empty in between.
//
// While a flow stays backlogged its bytes since then differ from its weighted share of all data bytes by less
// than its allowance and one message: at most allowance + quantum above it, allowance + weight * quantum
// below. Between two turns of a flow each other one sends less than its allowance and one quantum: nobody
// starves. Control is strict, so whoever puts a flow there bounds it by other means (pure grants by
// kControlSlots, ends of transfers by transfers.max).
//
// Invariants (check_invariants): deficit_bounded: -quantum < balance <= allowance, and above 0 only for the
// flow whose turn it is.
#pragma once

#include <cstdint>

#include "libbx/base/check.h"
#include "libbx/base/intrusive_list.h"

namespace bx::core {

enum class FlowClass : std::uint8_t { control, data };

// What a session derives from (or holds) to be scheduled. It must have left before it is destroyed.
class Flow : public ListHook<Flow> {
 public:
  static constexpr std::uint32_t kWeightMax = 1024;

  explicit Flow(FlowClass flow_class = FlowClass::data, std::uint32_t weight = 1) noexcept
      : class_(flow_class), weight_(weight) {
    BX_CHECK(weight > 0 && weight <= kWeightMax, "the weight of a flow is out of range");
  }
  [[nodiscard]] bool backlogged() const noexcept { return linked(); }
  [[nodiscard]] FlowClass flow_class() const noexcept { return class_; }
  [[nodiscard]] std::uint32_t weight() const noexcept { return weight_; }
  [[nodiscard]] std::int64_t balance() const noexcept { return balance_; }
  // Of a flow that is not backlogged: what is under way of a turn was measured by the old weight.
  void set_weight(std::uint32_t weight) noexcept {
    BX_CHECK(!backlogged() && weight > 0 && weight <= kWeightMax, "the weight of a flow is out of range");
    weight_ = weight;
  }

 private:
  template <class T>
  friend class DeficitRoundRobin;
  FlowClass class_;
  std::uint32_t weight_;
  std::int64_t balance_ = 0;
};

// T derives from Flow.
template <class T>
class DeficitRoundRobin {
 public:
  explicit DeficitRoundRobin(std::uint32_t quantum_bytes) noexcept : quantum_(quantum_bytes) {
    BX_CHECK(quantum_bytes > 0, "a quantum is at least one byte");
  }

  // The flow has something to send and nothing but its turn is missing. Nothing happens if that is known.
  void join(T& flow) noexcept {
    if (flow.backlogged()) return;
    ring(flow).push_back(flow);
  }
  // The flow has nothing to send, or may not send now (its window is closed), or is about to go.
  void leave(T& flow) noexcept {
    flow.unlink();
    if (flow.balance_ > 0) flow.balance_ = 0;
  }
  // Whose message goes next, or null. It stays the same until that message was sent, the flow leaves, or
  // control arrives.
  [[nodiscard]] T* next() noexcept {
    if (T* flow = control_.front()) return flow;
    T* flow = data_.front();
    if (flow != nullptr && flow->balance_ <= 0) flow->balance_ += allowance(*flow);
    return flow;
  }
  // A message of the flow that next() gave was posted. One that has nothing left is to leave() as well.
  void on_sent(T& flow, std::uint32_t bytes) noexcept {
    BX_CHECK(ring(flow).front() == &flow, "a flow sent out of its turn");
    if (flow.class_ == FlowClass::control) return to_back(flow);
    BX_CHECK(flow.balance_ > 0 && bytes <= quantum_, "deficit_bounded: a message of more than a quantum");
    flow.balance_ -= bytes;
    if (flow.balance_ <= 0) to_back(flow);
  }
  // Nothing of `bytes` is too large for on_sent() up to here.
  [[nodiscard]] std::uint32_t quantum() const noexcept { return quantum_; }
  [[nodiscard]] bool idle() const noexcept { return control_.empty() && data_.empty(); }

  // Walks the ring.
  void check_invariants() noexcept {
    T* const front = data_.front();
    for (T* flow = front; flow != nullptr; flow = data_.next(*flow)) {
      BX_CHECK(flow->balance_ > -std::int64_t{quantum_}, "deficit_bounded");
      BX_CHECK(flow->balance_ <= (flow == front ? allowance(*flow) : 0), "deficit_bounded");
    }
  }

 private:
  using Ring = IntrusiveList<T, Flow>;
  [[nodiscard]] std::int64_t allowance(const T& flow) const noexcept {
    return std::int64_t{quantum_} * flow.weight_;
  }
  [[nodiscard]] Ring& ring(const T& flow) noexcept {
    return flow.class_ == FlowClass::control ? control_ : data_;
  }
  void to_back(T& flow) noexcept {
    flow.unlink();
    ring(flow).push_back(flow);
  }

  std::uint32_t quantum_;
  Ring control_;
  Ring data_;
};

}  // namespace bx::core
