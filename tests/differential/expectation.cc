// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/expectation.h"

namespace bx::differential {
namespace {

using fabric::WcStatus;

constexpr std::array kExpectations{
    Expectation{"an lkey that is none", Queue::send, Fault::local_key, WcStatus::local_protection,
                WcStatus::local_qp_operation, "11.6.2"},
    Expectation{"a receive with an lkey that is none", Queue::receive, Fault::local_key,
                WcStatus::local_protection, WcStatus::local_qp_operation, "11.6.2"},
    Expectation{"a message longer than its receive, at the receiver", Queue::receive, Fault::none,
                WcStatus::local_length, WcStatus::local_qp_operation, "9.7.4.1.6, 11.6.2"},
    Expectation{"a message longer than its receive, at the sender", Queue::send, Fault::none,
                WcStatus::remote_invalid_request, WcStatus::remote_operation, "9.7.4.1.6, 9.9.3"},
    Expectation{"an atomic at an address that is not aligned", Queue::send, Fault::crooked_atomic,
                WcStatus::remote_invalid_request, WcStatus::local_qp_operation, "9.7.4.1.4"},
};

}  // namespace

std::span<const Expectation> expectations() {
  return kExpectations;
}

bool KnownDifferences::accepts(const Stream& stream, const Event& ours, const Event& theirs) {
  if (ours.id != theirs.id) return false;
  for (std::size_t i = 0; i < kExpectations.size(); ++i) {
    const Expectation& known = kExpectations[i];
    if (known.queue != stream.queue || known.fault != ours.fault) continue;
    if (known.ours != ours.status || known.theirs != theirs.status) continue;
    ++used_[i];
    return true;
  }
  return false;
}

}  // namespace bx::differential
