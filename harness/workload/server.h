// SPDX-License-Identifier: GPL-2.0-only
// The service behind every workload: answers as many bytes as the request asks for, filled with the call's
// pattern.
#pragma once

#include <bx/bx.h>

#include <cstdint>

#include "harness/workload/ledger.h"

namespace bx::harness {

class Server final : public Service {
 public:
  Server(std::uint32_t host, Ledger& ledger, Oracle& oracle)
      : host_(host), ledger_(ledger), oracle_(oracle) {}
  // By which it notes when requests arrive; it must outlive the server.
  void set_clock(const fabric::Reactor& clock) noexcept { clock_ = &clock; }
  void handle(Request request) noexcept override;

 private:
  std::uint32_t host_;
  Ledger& ledger_;
  Oracle& oracle_;
  const fabric::Reactor* clock_ = nullptr;
};

}  // namespace bx::harness
