// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/preflight.h"

#include <algorithm>
#include <string>
#include <utility>

namespace bx::memory {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

int mib(std::uint64_t bytes) noexcept {
  return static_cast<int>(bytes / kMiB);
}
std::string text_of(std::uint64_t bytes) {
  return std::to_string((bytes + kMiB - 1) / kMiB) + " MiB";
}

tl::unexpected<Error> contradiction(const char* detail, std::uint64_t bytes_that_fit) {
  return fail(ErrorCode::invalid_argument, ErrorScope::operation, detail, mib(bytes_that_fit));
}

void add_error(Findings& findings, const char* detail, std::uint64_t fits, std::string text) {
  findings.push_back({.severity = Finding::Severity::error,
                      .error = {ErrorCode::exhausted, ErrorScope::device, static_cast<int>(fits), detail},
                      .text = std::move(text)});
}

constexpr const char* kLockRemedy =
    "raise it (ulimit -l, memlock in /etc/security/limits.conf, or LimitMEMLOCK= of the systemd unit)";

}  // namespace

Result<MemoryPlan> plan_memory(const Config& config, std::uint64_t receive_min,
                               const fabric::DeviceCaps& caps) {
  const std::uint64_t arena = chunks_for(config.memory_arena) * kChunkBytes;
  const std::uint64_t receive_least = chunks_for(receive_min) * kChunkBytes;
  const std::uint64_t most = arena / kChunkBytes * 3 / 4 * kChunkBytes;  // of either side, by default
  if (arena < receive_least + kChunkBytes) {
    return contradiction(
        "memory.arena: too small for the receive slots of one peer (credits.per_peer, credits.spare_slots, "
        "eager.max) and something to send; the MiB it takes are given",
        receive_least + kChunkBytes);
  }
  const std::uint64_t send_most = arena - receive_least;
  const std::uint64_t receive_most = arena - kChunkBytes;
  if (config.memory_send > send_most) {
    return contradiction(
        "memory.send: leaves too little of memory.arena to receive with; the MiB that fit are given",
        send_most);
  }
  if (config.memory_send != 0 && config.memory_send < kChunkBytes) {
    return contradiction("memory.send: less than a chunk; the MiB of one are given", kChunkBytes);
  }
  if (config.memory_receive != 0 && config.memory_receive < receive_least) {
    return contradiction(
        "memory.receive: less than the receive slots of one peer take (credits.per_peer, "
        "credits.spare_slots, eager.max); the MiB they take are given",
        receive_least);
  }
  if (config.memory_receive > receive_most) {
    return contradiction(
        "memory.receive: leaves nothing of memory.arena to send from; the MiB that fit are given",
        receive_most);
  }
  // Unless told otherwise it leaves room to receive a long payload too, if there is any.
  const std::uint64_t send_usual = std::clamp(send_most - kChunkBytes, kChunkBytes, most);
  const std::uint64_t send = config.memory_send != 0 ? config.memory_send : send_usual;
  const std::uint64_t receive =
      config.memory_receive != 0 ? config.memory_receive : std::clamp(most, receive_least, receive_most);
  return MemoryPlan{.arena = {.bytes = arena,
                              .quota = {send, receive},
                              .pages = {static_cast<HugePages>(config.memory_huge_pages), caps.pins_memory}},
                    .user_bytes = config.memory_user,
                    .user_regions = static_cast<std::uint32_t>(config.memory_user_regions)};
}

Findings check_limits(const MemoryPlan& plan, const fabric::DeviceCaps& caps, const SystemMemory& system) {
  Findings findings;
  if (plan.arena.bytes > caps.mr_bytes_max) {
    add_error(
        findings, "memory.arena: exceeds the device's longest memory region; the MiB that fit are given",
        caps.mr_bytes_max / kMiB,
        "memory.arena needs a memory region of " + text_of(plan.arena.bytes) +
            ", the device's limit (max_mr_size) is " + text_of(caps.mr_bytes_max) + ": lower memory.arena");
  }
  if (caps.mrs_max < plan.user_regions + 1) {
    add_error(findings, "memory.user_regions: with the arena's more than the device's memory regions",
              caps.mrs_max > 0 ? caps.mrs_max - 1 : 0,
              "memory.user_regions and the arena need " + std::to_string(plan.user_regions + 1) +
                  " memory regions, the device's limit (max_mr) is " + std::to_string(caps.mrs_max) +
                  ": lower memory.user_regions");
  }
  if (!caps.pins_memory) return findings;
  const std::uint64_t lockable = system.lockable_bytes();
  const std::string limit =
      ", the limit of locked memory (RLIMIT_MEMLOCK) is " + text_of(lockable) + ": " + kLockRemedy;
  if (plan.arena.bytes > lockable) {
    add_error(findings,
              "memory.arena: more than this process may lock: raise ulimit -l, memlock in "
              "/etc/security/limits.conf or LimitMEMLOCK=; the MiB that fit are given",
              lockable / kMiB,
              "memory.arena needs " + text_of(plan.arena.bytes) + " of locked memory" + limit +
                  " or lower memory.arena");
  } else if (plan.user_bytes > lockable - plan.arena.bytes) {
    findings.push_back({.severity = Finding::Severity::warning,
                        .error = {},
                        .text = "memory.arena and memory.user may need " +
                                text_of(plan.arena.bytes + plan.user_bytes) + " of locked memory" + limit});
  }
  return findings;
}

}  // namespace bx::memory
