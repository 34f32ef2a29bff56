// SPDX-License-Identifier: BSD-3-Clause
// The ways in which a provider is broken on purpose, to show that the suite notices: at least one a contract
// point.
#pragma once

#include <array>
#include <cstdint>

namespace bx::conformance {

enum class Breakage : std::uint8_t {
  none,                   // the decorator alone: must pass
  claims_all_accepted,    // 1: post_send says it took everything
  allocates_in_post,      // 1: post_send allocates
  reads_elements_late,    // 1: the elements are read when the doorbell is answered, not in the call
  reorders_completions,   // 2: two completions of one queue pair are swapped
  loses_completions,      // 2: every seventh completion of a queue is not given
  wakes_inside_calls,     // 3: arm() wakes instead of saying pending
  wakes_twice,            // 3: each wake-up comes twice
  never_wakes,            // 3: no wake-up comes
  never_pending,          // 3: arm() says armed although completions are queued
  announces_too_early,    // 4: a receive completes before its payload is there
  flushes_twice,          // 5: the first flushed request completes twice
  misses_one_flush,       // 5: one flushed request never completes
  flushes_as_success,     // 5: flushed requests are said to have succeeded
  ignores_rnr,            // 6: a message without a receive is said to have arrived
  retries_for_ever,       // 6: retry_cnt and rnr_retry are not counted
  wrong_rnr_timer,        // 6: the responder's timer code is not passed on
  swallows_faults,        // 7: access and length faults are said to have succeeded
  confuses_statuses,      // 7: a remote access fault is called an operation fault
  silent_overrun,         // 8: a completion queue overruns without an event
  unchecked_destruction,  // 8: a queue destroyed too early is not noticed
  corrupts_mtu_plus_one,  // 9: the last byte of a message of MTU + 1 bytes is wrong
  drops_last_element,     // 9: a request with the most elements loses the last one
  loses_immediates,       // 4: a receive is not told the immediate
  wrong_byte_count,       // 4: a receive is told one byte more than came
};

struct BreakageName {
  Breakage breakage;
  const char* name;   // of the provider that has it
  const char* group;  // of the tests that must fail
};

inline constexpr std::array kBreakages{
    BreakageName{Breakage::claims_all_accepted, "claims_all_accepted", "Point1"},
    BreakageName{Breakage::allocates_in_post, "allocates_in_post", "Point1"},
    BreakageName{Breakage::reads_elements_late, "reads_elements_late", "Point1"},
    BreakageName{Breakage::reorders_completions, "reorders_completions", "Point2"},
    BreakageName{Breakage::loses_completions, "loses_completions", "Point2"},
    BreakageName{Breakage::wakes_inside_calls, "wakes_inside_calls", "Point3"},
    BreakageName{Breakage::wakes_twice, "wakes_twice", "Point3"},
    BreakageName{Breakage::never_wakes, "never_wakes", "Point3"},
    BreakageName{Breakage::never_pending, "never_pending", "Point3"},
    BreakageName{Breakage::announces_too_early, "announces_too_early", "Point4"},
    BreakageName{Breakage::flushes_twice, "flushes_twice", "Point5"},
    BreakageName{Breakage::misses_one_flush, "misses_one_flush", "Point5"},
    BreakageName{Breakage::flushes_as_success, "flushes_as_success", "Point5"},
    BreakageName{Breakage::ignores_rnr, "ignores_rnr", "Point6"},
    BreakageName{Breakage::retries_for_ever, "retries_for_ever", "Point6"},
    BreakageName{Breakage::wrong_rnr_timer, "wrong_rnr_timer", "Point6"},
    BreakageName{Breakage::swallows_faults, "swallows_faults", "Point7"},
    BreakageName{Breakage::confuses_statuses, "confuses_statuses", "Point7"},
    BreakageName{Breakage::silent_overrun, "silent_overrun", "Point8"},
    BreakageName{Breakage::unchecked_destruction, "unchecked_destruction", "Point8"},
    BreakageName{Breakage::corrupts_mtu_plus_one, "corrupts_mtu_plus_one", "Point9"},
    BreakageName{Breakage::drops_last_element, "drops_last_element", "Point9"},
    BreakageName{Breakage::loses_immediates, "loses_immediates", "Point4"},
    BreakageName{Breakage::wrong_byte_count, "wrong_byte_count", "Point4"},
};

}  // namespace bx::conformance
