// SPDX-License-Identifier: GPL-2.0-only
// Hands what happens to a NIC to the devices of all hosts that have one of its ports; each takes what is its
// own (SimDevice).
#pragma once

#include <algorithm>
#include <vector>

#include "sim/model/nic.h"

namespace bx::sim {

class NicEvents final : private NicListener {
 public:
  explicit NicEvents(Nic& nic) { nic.set_listener(this); }
  NicEvents(const NicEvents&) = delete;
  NicEvents& operator=(const NicEvents&) = delete;

  void add(NicListener* listener) { listeners_.push_back(listener); }
  void remove(NicListener* listener) { std::erase(listeners_, listener); }

 private:
  void on_nic_event(NicEventKind kind, std::uint32_t id) override {
    for (NicListener* listener : listeners_) listener->on_nic_event(kind, id);
  }

  std::vector<NicListener*> listeners_;
};

}  // namespace bx::sim
