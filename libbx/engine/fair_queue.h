// SPDX-License-Identifier: BSD-3-Clause
// The messages of one kind that wait to be sent to a peer. They go by deficit round robin over the bytes of
// their sessions (core/deficit_round_robin.h), those of one session in the order they came: a session that
// has much to send delays another by one turn, not by all that it has. With one place instead of kPlaces
// they go in the order they came, whosever they are.
//
// The sessions of a peer are numbered without limit, and the other end's are whatever it says. So sessions
// share kPlaces places by their number: up to so many sessions each has its own.
//
// Invariants: those of the round robin; whoever has a message is on its ring, or stepped aside.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "libbx/core/deficit_round_robin.h"
#include "libbx/engine/call.h"
#include "libbx/engine/session_id.h"

namespace bx::engine {

class FairQueue {
 public:
  static constexpr std::uint32_t kPlaces = 64;

  // `places`: a power of two. `quantum`: bytes of a turn of weight 1; a message counts as no more.
  FairQueue(std::uint32_t places, std::uint32_t quantum)
      : count_(places), places_(std::make_unique<Place[]>(places)), ring_(quantum) {
    BX_CHECK(std::has_single_bit(places), "the places of a queue are not a power of two");
  }
  ~FairQueue() {
    resume();
    for (std::uint32_t i = 0; i < count_; ++i) ring_.leave(places_[i]);
  }

  void push(Outgoing& message) noexcept {
    const std::uint32_t session = message.header.session;
    Place& place = places_[(session - 1) & (count_ - 1)];
    place.messages.push_back(message);
    if (place.linked()) return;
    place.set_weight(count_ > 1 ? weight_of_session(session) : 1);
    ring_.join(place);
  }
  // Whose turn it is, or null. What was in the queue may have been withdrawn, simply by being unlinked.
  [[nodiscard]] Outgoing* front() noexcept {
    while (Place* place = ring_.next()) {
      if (Outgoing* message = place->messages.front()) {
        turn_ = place;
        return message;
      }
      ring_.leave(*place);
    }
    return nullptr;
  }
  // Takes out the message that front() gave; it took `bytes`.
  void pop_sent(Outgoing& message, std::uint64_t bytes) noexcept {
    Place& place = *turn_;
    message.ListHook<Waiting>::unlink();
    ring_.on_sent(place, static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, ring_.quantum())));
    if (place.messages.empty()) ring_.leave(place);
  }
  // The one whose turn it is cannot go now, for a reason that does not hold for others; resume() brings it
  // back.
  void step_aside() noexcept {
    Place& place = *turn_;
    ring_.leave(place);
    aside_.push_back(place);
  }
  void resume() noexcept {
    while (Place* place = aside_.pop_front()) ring_.join(*place);
  }
  // Takes out any message, or gives null.
  Outgoing* pop_any() noexcept {
    Outgoing* message = front();
    if (message != nullptr) message->ListHook<Waiting>::unlink();
    return message;
  }

 private:
  struct Place : core::Flow {
    IntrusiveList<Outgoing, Waiting> messages;
  };
  std::uint32_t count_;
  std::unique_ptr<Place[]> places_;
  core::DeficitRoundRobin<Place> ring_;
  Place* turn_ = nullptr;  // whose message front() gave last
  IntrusiveList<Place, core::Flow> aside_;
};

}  // namespace bx::engine
