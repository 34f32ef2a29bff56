// SPDX-License-Identifier: GPL-2.0-only
// What holds for the whole machine and for this process.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "harness/base/units.h"
#include "harness/doctor/doctor.h"

namespace bx::harness {
namespace {

using enum Diagnosis::Level;

Diagnosis of_machine(Diagnosis::Level level, std::string check, std::string text, std::string remedy = {}) {
  return {level, "machine", std::move(check), std::move(text), std::move(remedy)};
}

std::string size_text(std::uint64_t bytes) {
  return format_approximately(static_cast<double>(bytes), "bytes");
}

// What follows `key` on its line, without white space before it.
std::optional<std::string> field_of(const std::string& text, std::string_view key) {
  std::size_t at = text.starts_with(key) ? 0 : text.find("\n" + std::string(key));
  if (at == std::string::npos) return std::nullopt;
  at = text.find(key, at) + key.size();
  at = text.find_first_not_of(" \t", at);
  if (at == std::string::npos) return std::nullopt;
  return text.substr(at, text.find('\n', at) - at);
}

std::optional<std::uint64_t> number_at_start(std::string_view text, int base = 10) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return number;
}

Diagnosis check_kernel(const SystemView& system) {
  const auto release = system.read("/proc/sys/kernel/osrelease");
  if (!release) return of_machine(warn, "kernel", "its version cannot be read", "mount /proc");
  const std::size_t dot = release->find('.');
  const auto major = number_at_start(*release);
  const auto minor =
      dot == std::string::npos ? std::nullopt : number_at_start(std::string_view(*release).substr(dot + 1));
  // From 5.12 on, pages registered with a device are copied for the child by fork(2).
  if (major && minor && (*major < 5 || (*major == 5 && *minor < 12))) {
    return of_machine(
        warn, "kernel", fmt::format("Linux {}", *release),
        "with Linux before 5.12 a process that registers memory must not fork, or set RDMAV_FORK_SAFE=1");
  }
  return of_machine(ok, "kernel", fmt::format("Linux {}", *release));
}

// libibverbs.so.1.14.44.0 is that of rdma-core 44.0.
Diagnosis check_rdma_core(const SystemView& system) {
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    const auto file = system.link_name(fmt::format("{}/libibverbs.so.1", folder));
    if (!file) continue;
    constexpr std::string_view kStem = "libibverbs.so.1.";
    const std::size_t dot = file->starts_with(kStem) ? file->find('.', kStem.size()) : std::string::npos;
    return of_machine(ok, "rdma-core",
                      dot == std::string::npos ? *file : "rdma-core " + file->substr(dot + 1));
  }
  return of_machine(fail, "rdma-core", "libibverbs is not installed",
                    "install rdma-core's libibverbs1 and ibverbs-providers");
}

// CAP_IPC_LOCK exempts from the limit of locked memory.
bool may_lock_all(const SystemView& system) {
  constexpr unsigned kIpcLock = 14;
  const auto status = system.read("/proc/self/status");
  const auto field = status ? field_of(*status, "CapEff:") : std::nullopt;
  const auto effective = field ? number_at_start(*field, 16) : std::nullopt;
  return effective && ((*effective >> kIpcLock) & 1U) != 0;
}

Diagnosis check_memory_lock(const SystemView& system, const Config& config) {
  const auto limits = system.read("/proc/self/limits");
  const auto field = limits ? field_of(*limits, "Max locked memory") : std::nullopt;
  if (!field)
    return of_machine(warn, "memory-lock", "the limit cannot be read", "mount /proc; see ulimit -l");
  if (field->starts_with("unlimited")) return of_machine(ok, "memory-lock", "no limit");
  const std::uint64_t limit = number_at_start(*field).value_or(0);
  if (may_lock_all(system)) {
    return of_machine(ok, "memory-lock",
                      fmt::format("{}, from which this process is exempt", size_text(limit)));
  }
  const std::uint64_t needed = config.memory_arena;
  const std::string text =
      fmt::format("{}; a worker registers {} (memory.arena)", size_text(limit), size_text(needed));
  if (limit >= needed) return of_machine(ok, "memory-lock", text);
  return of_machine(fail, "memory-lock", text,
                    "ulimit -l unlimited; for good '* - memlock unlimited' in /etc/security/limits.conf, or "
                    "LimitMEMLOCK=infinity in the service's unit");
}

Diagnosis check_huge_pages(const SystemView& system, const Config& config) {
  const std::string memory = system.read("/proc/meminfo").value_or("");
  const auto number = [&](std::string_view key) -> std::uint64_t {
    const auto field = field_of(memory, key);
    return field ? number_at_start(*field).value_or(0) : 0;
  };
  const std::uint64_t free = number("HugePages_Free:");
  const std::uint64_t size = number("Hugepagesize:") * 1024;
  const std::string transparent = system.read("/sys/kernel/mm/transparent_hugepage/enabled").value_or("");
  const std::uint64_t wanted = size == 0 ? 0 : (config.memory_arena + size - 1) / size;
  if (wanted != 0 && free >= wanted) {
    return of_machine(ok, "huge-pages",
                      fmt::format("{} of {} are free, a worker takes {}", free, size_text(size), wanted));
  }
  const bool can_have =
      transparent.find("[always]") != std::string::npos || transparent.find("[madvise]") != std::string::npos;
  if (can_have) {
    return of_machine(ok, "huge-pages", fmt::format("{} are free; transparent ones are taken instead", free));
  }
  return of_machine(
      warn, "huge-pages",
      fmt::format("{} are free, and there are no transparent ones: a NIC's translations of memory.arena "
                  "will not fit its cache",
                  free),
      fmt::format("sysctl vm.nr_hugepages={} for each worker, or echo madvise > "
                  "/sys/kernel/mm/transparent_hugepage/enabled",
                  std::max<std::uint64_t>(wanted, 1)));
}

// The unified hierarchy's folder of this process, or nothing.
std::optional<std::string> cgroup_of(const SystemView& system) {
  const auto text = system.read("/proc/self/cgroup");
  const auto path = text ? field_of(*text, "0::") : std::nullopt;
  if (!path) return std::nullopt;
  return "/sys/fs/cgroup" + (*path == "/" ? std::string() : *path);
}

void check_cgroup(const SystemView& system, const Config& config, std::vector<Diagnosis>& out) {
  const std::size_t before = out.size();
  const auto folder = cgroup_of(system);
  if (folder) {
    const auto memory = system.read_number(*folder + "/memory.max");
    if (memory && *memory < 2 * config.memory_arena) {
      out.push_back(
          of_machine(*memory < config.memory_arena ? fail : warn, "cgroup-memory",
                     fmt::format("memory.max is {}, memory.arena {}", size_text(*memory),
                                 size_text(config.memory_arena)),
                     "raise memory.max of the cgroup (MemoryMax= of the unit), or lower memory.arena"));
    }
    const std::string rdma = system.read(*folder + "/rdma.max").value_or("");
    if (rdma.find('=') != std::string::npos &&
        rdma.find_first_of("0123456789", rdma.find('=')) != std::string::npos) {
      const std::string line = rdma.substr(0, rdma.find('\n'));
      out.push_back(
          of_machine(warn, "cgroup-rdma", fmt::format("rdma.max limits handles and objects: {}", line),
                     fmt::format("echo 'DEVICE hca_handle=max hca_object=max' > {}/rdma.max", *folder)));
    }
    const std::string cpu = system.read(*folder + "/cpu.max").value_or("max");
    if (!cpu.starts_with("max")) {
      out.push_back(
          of_machine(warn, "cgroup-cpu", fmt::format("cpu.max is {}", cpu),
                     "a worker that polls uses its core all the time and will be throttled: remove the limit "
                     "or wait by events"));
    }
  }
  if (out.size() == before)
    out.push_back(of_machine(ok, "cgroup", folder ? "no limit that matters" : "none"));
}

}  // namespace

std::vector<Diagnosis> diagnose_machine(const SystemView& system, const Config& config) {
  std::vector<Diagnosis> out{check_kernel(system), check_rdma_core(system), check_memory_lock(system, config),
                             check_huge_pages(system, config)};
  check_cgroup(system, config, out);
  return out;
}

}  // namespace bx::harness
