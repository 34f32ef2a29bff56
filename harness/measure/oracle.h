// SPDX-License-Identifier: GPL-2.0-only
// What must hold of every run, whatever the scenario: bytes conserved, nothing faster than the closed form,
// no drop in a lossless class, every call completed exactly once with the right bytes, nothing unfinished at
// the end. A breach names the promise and says the numbers; it makes the run fail.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bx::harness {

struct Breach {
  std::string promise;  // one of the names below
  std::string detail;
};

namespace promise {
inline constexpr std::string_view kNetwork = "network";  // the fabric's own audit
inline constexpr std::string_view kLosslessDrop =
    "lossless-drop";                                            // a packet of a lossless class was dropped
inline constexpr std::string_view kClosedForm = "closed-form";  // faster than is possible
inline constexpr std::string_view kCallFailed = "call-failed";  // a call completed with an error
inline constexpr std::string_view kOnce = "exactly-once";       // a call or request completed or came twice
inline constexpr std::string_view kRightBytes = "right-bytes";  // a payload differs from what was sent
inline constexpr std::string_view kFinished = "finished";       // calls that never completed
inline constexpr std::string_view kIdle = "idle-at-end";        // a worker still holds something
inline constexpr std::string_view kReceiverReady = "receiver-ready";  // a receiver-not-ready NAK
inline constexpr std::string_view kConnected = "connected";           // a session could not be opened
inline constexpr std::string_view kAlive = "alive";                   // the process of the run died
inline constexpr std::string_view kSameDigest = "same-digest";        // a second run differed (--twice)
}  // namespace promise

class Oracle {
 public:
  // Of each promise this many breaches are kept in full; the rest is counted.
  static constexpr std::size_t kDetailsMax = 8;

  void breach(std::string_view promise, std::string detail);
  [[nodiscard]] bool ok() const noexcept { return tallies_.empty(); }
  // In the order in which the promises were first broken, with "and N more" where details were left out.
  [[nodiscard]] std::vector<Breach> breaches() const;

 private:
  struct Tally {
    std::string promise;
    std::vector<std::string> details;
    std::uint64_t count = 0;
  };
  std::vector<Tally> tallies_;
};

}  // namespace bx::harness
