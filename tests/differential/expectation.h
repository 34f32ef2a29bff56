// SPDX-License-Identifier: BSD-3-Clause
// Where SoftRoCE (rdma_rxe of Linux 6.1) is known to end a request in another way than verbs say. Each entry
// is as narrow as it can be: it holds for completions of one kind, if our side has exactly what the standard
// says and SoftRoCE exactly what it is known to have. If our side has what only SoftRoCE may have, that is a
// difference too, although the two are equal. docs/sim-model.md lists them ("Differences from SoftRoCE").
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tests/differential/outcome.h"

namespace bx::differential {

struct Expectation {
  const char* name;
  Queue queue;
  Fault fault;            // of the request or receive
  fabric::WcStatus ours;  // what the standard says
  fabric::WcStatus theirs;
  bool theirs_is_wrong;  // on any such completion; else the status is right for another reason as well
  const char* clause;    // of the InfiniBand Architecture Specification, volume 1, release 1.4
};

std::span<const Expectation> expectations();

// Accepts what an entry describes, and counts how often each did.
class KnownDifferences final : public Tolerance {
 public:
  [[nodiscard]] bool accepts(const Stream& stream, const Event& ours, const Event& theirs) override;
  [[nodiscard]] bool accepts_surplus(const Stream& stream, const Event& theirs) override;
  [[nodiscard]] bool is_wrong_on_both(const Stream& stream, const Event& event) const override;
  // In the order of expectations().
  [[nodiscard]] std::span<const std::uint64_t> used() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t surplus() const noexcept { return surplus_; }

 private:
  std::vector<std::uint64_t> used_ = std::vector<std::uint64_t>(expectations().size());
  std::uint64_t surplus_ = 0;
};

}  // namespace bx::differential
