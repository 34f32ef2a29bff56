// SPDX-License-Identifier: BSD-3-Clause
// Where SoftRoCE (rdma_rxe of Linux 6.1) is known to end a request in another way than verbs say. Each entry is as
// narrow as it can be: it holds for completions of one kind, if our side has exactly what the standard says and
// SoftRoCE exactly what it is known to have; so a regression of ours that makes it do as SoftRoCE does still shows.
// docs/sim-model.md lists them ("Differences from SoftRoCE").
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tests/differential/outcome.h"

namespace bx::differential {

struct Expectation {
  const char* name;
  Queue queue;
  Fault fault;               // of the request or receive
  fabric::WcStatus ours;     // what the standard says
  fabric::WcStatus theirs;
  const char* clause;        // of the InfiniBand Architecture Specification, volume 1, release 1.4
};

std::span<const Expectation> expectations();

// Accepts what an entry describes, and counts how often each did.
class KnownDifferences final : public Tolerance {
 public:
  [[nodiscard]] bool accepts(const Stream& stream, const Event& ours, const Event& theirs) override;
  // In the order of expectations().
  [[nodiscard]] std::span<const std::uint64_t> used() const noexcept { return used_; }

 private:
  std::vector<std::uint64_t> used_ = std::vector<std::uint64_t>(expectations().size());
};

}  // namespace bx::differential
