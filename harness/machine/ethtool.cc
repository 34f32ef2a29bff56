// SPDX-License-Identifier: GPL-2.0-only
#include "harness/machine/ethtool.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace bx::harness {
namespace {

// One question to the driver of an interface (ethtool's ioctl, linux/ethtool.h).
class Ethtool {
 public:
  explicit Ethtool(const std::string& interface) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    interface.copy(request_.ifr_name, IFNAMSIZ - 1);
  }
  ~Ethtool() {
    if (socket_ >= 0) ::close(socket_);
  }
  Ethtool(const Ethtool&) = delete;
  Ethtool& operator=(const Ethtool&) = delete;

  bool ask(void* command) {
    request_.ifr_data = static_cast<char*>(command);
    return socket_ >= 0 && ::ioctl(socket_, SIOCETHTOOL, &request_) == 0;
  }

 private:
  int socket_;
  ifreq request_{};
};

std::uint32_t count_of(Ethtool& ethtool) {
  alignas(ethtool_sset_info) std::byte memory[sizeof(ethtool_sset_info) + sizeof(std::uint32_t)]{};
  auto* info = reinterpret_cast<ethtool_sset_info*>(memory);
  info->cmd = ETHTOOL_GSSET_INFO;
  info->sset_mask = 1ULL << static_cast<unsigned>(ETH_SS_STATS);
  if (!ethtool.ask(info) || info->sset_mask == 0) return 0;
  std::uint32_t count = 0;
  std::memcpy(&count, memory + sizeof(ethtool_sset_info), sizeof count);
  return std::min(count, kInterfaceCountersMax);
}

std::vector<NamedCount> ask_driver(const std::string& interface) {
  Ethtool ethtool(interface);
  const std::uint32_t count = count_of(ethtool);
  std::vector<NamedCount> counts;
  if (count == 0) return counts;
  std::vector<std::uint64_t> names((sizeof(ethtool_gstrings) + std::size_t{count} * ETH_GSTRING_LEN) / 8 + 1);
  auto* strings = reinterpret_cast<ethtool_gstrings*>(names.data());
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_STATS;
  strings->len = count;
  std::vector<std::uint64_t> values(sizeof(ethtool_stats) / 8 + count + 1);
  auto* stats = reinterpret_cast<ethtool_stats*>(values.data());
  stats->cmd = ETHTOOL_GSTATS;
  stats->n_stats = count;
  if (!ethtool.ask(strings) || !ethtool.ask(stats)) return counts;
  const std::uint32_t given = std::min({count, strings->len, stats->n_stats});
  const char* name = reinterpret_cast<const char*>(names.data()) + sizeof(ethtool_gstrings);
  const std::byte* value = reinterpret_cast<const std::byte*>(values.data()) + sizeof(ethtool_stats);
  for (std::uint32_t i = 0; i < given; ++i) {
    NamedCount one{std::string(name, ::strnlen(name, ETH_GSTRING_LEN)), 0};
    std::memcpy(&one.value, value + std::size_t{i} * 8, 8);
    counts.push_back(std::move(one));
    name += ETH_GSTRING_LEN;
  }
  return counts;
}

}  // namespace

std::vector<NamedCount> read_interface_counters(const SystemView& system, const std::string& interface) {
  if (system.is_this_machine()) return ask_driver(interface);
  return parse_ethtool(system.run({"ethtool", "-S", interface}).value_or(""));
}

std::vector<NamedCount> parse_ethtool(std::string_view text) {
  std::vector<NamedCount> counts;
  while (!text.empty() && counts.size() < kInterfaceCountersMax) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::size_t colon = line.rfind(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view number = line.substr(colon + 2);
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc{} && stop != number.data())
      counts.push_back({std::string(line.substr(0, colon)), value});
  }
  return counts;
}

}  // namespace bx::harness
