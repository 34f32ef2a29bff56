// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/expectation.h"

#include <algorithm>

namespace bx::differential {
namespace {

using fabric::WcStatus;

constexpr std::array kExpectations{
    Expectation{"an lkey that is none", Queue::send, Fault::local_key, WcStatus::local_protection,
                WcStatus::local_qp_operation, true, "11.6.2"},
    Expectation{"a receive with an lkey that is none", Queue::receive, Fault::local_key,
                WcStatus::local_protection, WcStatus::local_qp_operation, true, "11.6.2"},
    Expectation{"a message longer than its receive, at the receiver", Queue::receive, Fault::none,
                WcStatus::local_length, WcStatus::local_qp_operation, true, "9.7.4.1.6, 11.6.2"},
    Expectation{"a message longer than its receive, at the sender", Queue::send, Fault::none,
                WcStatus::remote_invalid_request, WcStatus::remote_operation, false, "9.7.4.1.6, 9.9.3"},
    Expectation{"an atomic at an address that is not aligned", Queue::send, Fault::crooked_atomic,
                WcStatus::remote_invalid_request, WcStatus::local_qp_operation, true, "9.7.4.1.4"},
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

// A WRITE_WITH_IMM whose rkey, range or right is wrong: SoftRoCE has taken a receive for it by then, and
// completes that in error. By the standard the responder tells of such a fault by an asynchronous event
// (9.9.3, class C).
bool KnownDifferences::accepts_surplus(const Stream& stream, const Event& theirs) {
  if (stream.queue != Queue::receive || theirs.status != WcStatus::remote_access) return false;
  ++surplus_;
  return true;
}

bool KnownDifferences::is_wrong_on_both(const Stream& stream, const Event& event) const {
  if (stream.queue == Queue::receive && event.status == WcStatus::remote_access) return true;
  return std::ranges::any_of(kExpectations, [&](const Expectation& known) {
    return known.theirs_is_wrong && known.queue == stream.queue && known.fault == event.fault &&
           known.theirs == event.status;
  });
}

}  // namespace bx::differential
