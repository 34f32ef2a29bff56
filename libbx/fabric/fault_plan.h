// SPDX-License-Identifier: BSD-3-Clause
// Which faults a FaultFabric injects: by chance, by seed, or exactly the n-th time that one could strike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libbx/base/prng.h"
#include "libbx/base/time.h"
#include "libbx/fabric/types.h"

namespace bx::fabric {

enum class FaultKind : std::uint8_t {
  completion_error,    // strikes a successful completion: its status is replaced, its queue pair fails
  completion_delay,    // strikes a completion: it, and all of its queue behind it, is seen later
  wake_up_lost,        // strikes the wake-up of an armed queue: it never comes
  queue_pair_failure,  // strikes a request that was posted: its queue pair fails
  creation_refused,    // strikes a call that makes something: exhausted
  short_post,          // strikes a post_send: it takes a shorter prefix, perhaps nothing
};
inline constexpr std::size_t kFaultKinds = 6;

struct PlannedFault {
  FaultKind kind{};
  std::uint64_t nth = 1;  // opportunity of its kind on the host, counted from 1
  std::string host{};     // empty: on every host
};

struct FaultPlan {
  std::uint64_t seed = 0;
  std::array<double, kFaultKinds> chances{};  // by FaultKind, of each opportunity
  std::vector<PlannedFault> planned{};
  WcStatus error_status = WcStatus::remote_operation;  // of completion_error
  Duration delay_min{1'000};                           // of completion_delay, uniform between the two
  Duration delay_max{100'000};

  [[nodiscard]] FaultPlan& with(FaultKind kind, double chance) {
    chances[static_cast<std::size_t>(kind)] = chance;
    return *this;
  }
};

// Decides for one host. Each kind draws from a stream of its own, so that adding one fault does not move the
// others.
class FaultInjector {
 public:
  FaultInjector(const FaultPlan& plan, std::string_view host,
                std::array<std::uint64_t, kFaultKinds>& injected);
  // One opportunity: true if the fault strikes, which is then counted.
  bool strikes(FaultKind kind) noexcept;
  // How long a delayed completion is held back, and how many of `count` requests a short post takes.
  Duration delay() noexcept;
  std::size_t shorter(std::size_t count) noexcept;
  [[nodiscard]] const FaultPlan& plan() const noexcept { return plan_; }

 private:
  const FaultPlan& plan_;
  std::string host_;
  std::array<std::uint64_t, kFaultKinds>& injected_;
  std::array<std::uint64_t, kFaultKinds> opportunities_{};
  std::vector<Prng> streams_;  // one a kind
};

}  // namespace bx::fabric
